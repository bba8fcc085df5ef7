//! A task that several paths lead to is run once. Its result counts for each of its directories.

use serde_json::Value;

use crate::support::bench::{Bench, copy};
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Server};

/// A model that passes a task whose test checks only that the output exists.
async fn server() -> Server {
    Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let before = messages.iter().filter(|message| message["role"] == "assistant").count();
        let command = if before == 0 { "touch /app/errors.txt" } else { "submit" };
        Answer::Text(format!("So.\n\n```bash\n{command}\n```"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_rollout_is_run_twice_at_once() {
    let server = server().await;
    let base_url = server.base_url();
    let bench = Bench::new();
    for place in ["tasks/one", "tasks/two", "others/one"] {
        copy(&task_dir("weak-existence"), &bench.path(place));
        bench.write(&format!("{place}/certificate.json"), "{}");
    }
    // Its certificate cannot be marked as revoked, because a folder has the mark's name.
    std::fs::create_dir(bench.path("others/one/revoked.json")).unwrap();
    let check = |tasks: &[&str], more: &[&str], code: i32, ids: usize, requests: usize| {
        let mut args = vec!["--json", "rollout", "--scaffold", "bash-block", "--out", "out"];
        args.extend(["--base-url", &base_url, "--model", "m"]);
        args.extend(more.iter().chain(tasks));
        let ran = tokio::task::block_in_place(|| bench.run(&args)).ends(code);
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["rollouts"].as_array().unwrap().len(), ids, "{tasks:?}: {report:#}");
        assert_eq!(server.requests(), requests, "{tasks:?}");
        ran
    };
    // Paths that overlap, and copies of a task with and without a name of their own.
    check(&["tasks", "tasks/one", "others"], &["-k", "2"], 0, 2, 4);
    let adversary = ["--adversary", "blind", "--sft", "all"];
    let ran = check(&["tasks", "others"], &adversary, 74, 1, 6);
    assert!(
        ran.err.contains("not marked as revoked: ") && ran.err.contains("others/one/revoked.json"),
        "{}",
        ran.err
    );
    for place in ["tasks/one", "tasks/two"] {
        assert!(bench.path(place).join("revoked.json").is_file(), "{place}");
        assert!(!bench.path(place).join(".new").exists(), "{place}");
    }
    // The exports were written nevertheless.
    let report = std::fs::read_to_string(bench.path("out/report/rollouts.json")).unwrap();
    assert!(report.contains("\"adversary"), "{report}");
    assert!(bench.path("out/data/README.md").is_file());
}
