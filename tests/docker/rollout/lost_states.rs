//! A solver leaves a state from which nothing can be started.

use serde_json::json;

use super::endings::{block, run_rollout, run_rollout_of};
use super::solver::with_small_disk;
use crate::support::bench::copy;
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Server};

/// A solver is root in its container. It can prevent that a further round begins. Its failed
/// submission must have a verdict all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_cannot_be_started_is_the_solvers_failure() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        // A file in the place of the folder where the engine mounts the guest.
        let spoil = "mv /.termsmith /older && touch /.termsmith";
        Answer::Text(block(if assistant == 0 { spoil } else { "submit" }))
    })
    .await;
    let (found, document) =
        tokio::task::block_in_place(|| run_rollout(&server, &["--arm", "self-correction", "--rounds", "1"]));
    assert_eq!(found, json!(["sandbox_lost", "fail", "policy", false, 0.0]));
    assert_eq!(document["extra"]["rounds"].as_array().unwrap().len(), 1);
}

/// The image would have the zeros of sparse files, and fill the host's disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_too_large_for_an_image_is_the_solvers_failure() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        Answer::Text(block(if assistant == 0 { "cd /tmp; truncate -s 40M a b c" } else { "submit" }))
    })
    .await;
    for (kind, task) in [("judged in place", "sound-modes"), ("judged in a clean room", "room-files")] {
        let args = ["--arm", "self-correction", "--rounds", "1"];
        let folder = tempfile::tempdir().unwrap();
        let task = with_small_disk(folder.path(), task);
        let (found, document) = tokio::task::block_in_place(|| run_rollout_of(&task, &server, &args));
        assert_eq!(found, json!(["submitted", "fail", "policy", false, 0.0]), "{kind}");
        // No second round began.
        assert_eq!(document["extra"]["rounds"], json!([]), "{kind}: {document:#}");
        let cause = document["extra"]["cause"].as_str().unwrap();
        assert!(cause.contains("larger than its disk limit of 64 MiB"), "{kind}: {cause}");
    }
}

/// A loss without evidence is confirmed by executing the recorded turns again. A turn that gives
/// another status each time must not hide it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_is_not_hidden_by_a_turn_that_cannot_be_repeated() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        Answer::Text(block(match assistant {
            0 => "(exit $((RANDOM % 250)))",
            1 => "rm -rf /app /bin/bash /usr/bin/bash; exit",
            _ => "ls",
        }))
    })
    .await;
    let (found, _) = tokio::task::block_in_place(|| run_rollout(&server, &[]));
    assert_eq!(found, json!(["sandbox_lost", "fail", "policy", false, 0.0]));
}

/// Files from a solver's first step can prevent that the second one is prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_cannot_be_prepared_is_the_solvers_failure() {
    const SORTED: &str = "cd /app; LC_ALL=C sort names.txt > sorted.txt";
    for (name, spoil) in [
        ("a folder where a file of the step belongs", "mkdir -p /app/setup.sh/x"),
        ("the step's user removed", "sed -i /^nobody:/d /etc/passwd"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let task = folder.path().join("task");
        copy(&task_dir("sound-two-steps"), &task);
        std::fs::create_dir_all(task.join("steps/pick/workdir")).unwrap();
        std::fs::write(task.join("steps/pick/workdir/setup.sh"), "true\n").unwrap();
        let manifest = std::fs::read_to_string(task.join("task.toml")).unwrap();
        let manifest =
            manifest.replace("name = \"pick\"\n", "name = \"pick\"\n\n[steps.agent]\nuser = \"nobody\"\n");
        std::fs::write(task.join("task.toml"), manifest).unwrap();
        let server = Server::start(move |body, _| {
            let messages = body["messages"].as_array().unwrap();
            let begins = !messages.iter().any(|message| message["role"] == "assistant");
            Answer::Text(block(&if begins { format!("{SORTED}; {spoil}") } else { "submit".to_owned() }))
        })
        .await;
        let (found, _) = tokio::task::block_in_place(|| run_rollout_of(&task, &server, &[]));
        assert_eq!(found, json!(["submitted", "fail", "policy", false, 0.0]), "{name}");
    }
}
