//! A rollout is kept if something after it fails. The summary, the report and the data have it.

use serde_json::Value;

use super::solver::with_small_disk;
use crate::support::bench::Bench;
use crate::support::endpoint::{Answer, Server};

/// A model that runs `first` and submits. As a judge it gives nothing usable.
async fn server(first: &'static str) -> Server {
    Server::start(move |body, _| {
        let messages = body["messages"].as_array().unwrap();
        let before = messages.iter().filter(|message| message["role"] == "assistant").count();
        let command = if before == 0 { first } else { "submit" };
        Answer::Text(format!("So.\n\n```bash\n{command}\n```"))
    })
    .await
}

fn check(server: &Server, args: &[&str], code: i32, why: &str) {
    let bench = Bench::new();
    let task = with_small_disk(&bench.path(""), "sound-modes").display().to_string();
    let base_url = server.base_url();
    let mut all =
        vec!["--json", "rollout", &task, "--scaffold", "bash-block", "--sft", "all", "--out", "out"];
    all.extend(["--base-url", &base_url, "--model", "m"]);
    all.extend(args);
    // The same command again changes nothing.
    for _ in 0..2 {
        let report: Value = serde_json::from_str(&bench.run(&all).ends(code).out).unwrap();
        assert_eq!(report["rollouts"].as_array().unwrap().len(), 1, "{args:?}: {report:#}");
        assert!(report["faults"][0]["message"].as_str().unwrap().contains(why), "{args:?}: {report:#}");
        assert_eq!(report["export"]["configs"][0]["rows"], 1, "{args:?}: {report:#}");
        let report = bench.run(&["--json", "report", "--out", "out"]).ok().out;
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["solvers"][0]["counts"]["scored"], 1, "{args:?}: {report:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_is_kept_whatever_fails_after_it() {
    let idle = server("true").await;
    let large = server("truncate -s 40M a b c").await;
    tokio::task::block_in_place(|| {
        check(&idle, &["--arm", "fork", "--fork-at", "50", "-k", "2"], 65, "fewer turns than --fork-at");
        check(&large, &["--arm", "fork", "--fork-at", "1", "-k", "2"], 65, "larger than its disk limit");
        check(&idle, &["--judge", "model"], 75, "no usable");
    });
}
