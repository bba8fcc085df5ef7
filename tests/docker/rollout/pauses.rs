//! Pauses of a solver's container, and stops of termsmith, take no time from a solver.

use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::endings::block;
use crate::support::bench::{Bench, containers_of, files};
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Server};

/// Work that takes a good part of the time limit.
const WORK: &str = "sleep 8; chmod 755 /srv/keys; chmod 600 /srv/keys/host.key; chmod 644 /srv/keys/host.pub; \
                    chown -R 0:0 /srv/keys";
const LIMIT_SECONDS: &str = "25";
/// Longer than the limit, and than the wait for a late answer.
const DISTURBANCE: Duration = Duration::from_secs(60);

/// Runs a rollout. `begin` runs a second after the model was first asked, and `end` after the
/// disturbance. Returns the rollout's document.
async fn disturbed(begin: impl Fn(&Child) + Send, end: impl Fn(&Child) + Send) -> Value {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let said = messages.iter().filter(|message| message["role"] == "assistant").count();
        Answer::Text(block(if said == 0 { WORK } else { "submit" }))
    })
    .await;
    let (bench, task, base_url) = (Bench::new(), task_dir("sound-modes"), server.base_url());
    let task = task.display().to_string();
    let args = ["--json", "rollout", &task, "--scaffold", "bash-block", "--out", "out", "--model", "m"];
    let args = [&args[..], &["--base-url", &base_url, "--trial-seconds", LIMIT_SECONDS, "--sft", "all"]];
    let mut running = bench.spawn(&args.concat());
    server.until(1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(running.try_wait().unwrap(), None, "it works");
    begin(&running);
    tokio::time::sleep(DISTURBANCE).await;
    end(&running);
    let ended = tokio::task::spawn_blocking(move || running.wait().unwrap()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let files = files(&bench.path("out/trajectories"));
    let (_, document) = files.iter().find(|(path, _)| path.extension().is_some_and(|e| e == "json")).unwrap();
    serde_json::from_slice(document).unwrap()
}

fn passed(what: &str, document: &Value) {
    let extra = &document["extra"];
    let found = (extra["end"].as_str(), extra["outcome"].as_str(), extra["reward"].as_f64());
    assert_eq!(found, (Some("submitted"), Some("pass"), Some(1.0)), "{what}: {document}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbances_of_the_host_are_no_time_outs() {
    let engine = |action: &'static str| {
        move |child: &Child| {
            let ours = containers_of(&[child.id()]);
            let ids = ours.iter().map(|line| line.split(' ').next().unwrap());
            let done = Command::new("docker").arg(action).args(ids).output().unwrap();
            assert!(done.status.success(), "{action} {ours:?}: {done:?}");
        }
    };
    let signal = |signal: Signal| move |child: &Child| kill_process(Pid::from_child(child), signal).unwrap();
    let (paused, stopped) = tokio::join!(
        disturbed(engine("pause"), engine("unpause")),
        disturbed(signal(Signal::STOP), signal(Signal::CONT)),
    );
    passed("docker pause", &paused);
    passed("SIGSTOP of termsmith", &stopped);
}
