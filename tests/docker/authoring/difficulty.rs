//! Measured difficulty: a task that a weak solver passes is evolved.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::author::{ENVIRONMENT, RUN, configure, good, requests, server};
use crate::support::bench::Bench;
use crate::support::engine::docker;

/// Runs with a weak solver that passes the first `easy` versions of the task. Returns the audit's
/// line about it, and the number of requests for another version.
async fn measured(easy: usize) -> (String, usize) {
    let evolved = AtomicUsize::new(0);
    let server = server(move |stage, before| {
        let version = evolved.load(Ordering::SeqCst);
        match stage {
            "evolve" => {
                evolved.fetch_add(1, Ordering::SeqCst);
                Some(format!("Please sort my guest list, version {}.", version + 1))
            }
            "environment" => Some(ENVIRONMENT.replace("\nBo\n", &format!("\nBo\nguest {version}\n"))),
            "weak" if version < easy => Some(good("blind", before)),
            _ => None,
        }
    })
    .await;
    let bench = Bench::new();
    configure(&bench, &server);
    bench.run(&[&RUN[..], &["--difficulty-attempts", "1", "--out", "out"]].concat()).ok();
    let audit = bench.run(&["audit", "--out", "out"]).ok().out;
    let line = audit.lines().find(|line| line.starts_with("difficulty: ")).unwrap_or_default();
    let evolve = requests(&server).into_iter().find(|(stage, _)| *stage == "evolve");
    let tasks = std::fs::read_dir(bench.path("out/tasks")).unwrap().count();
    assert_eq!(tasks, 1, "a task that is too easy is certified all the same");
    (line.to_owned(), evolve.map_or(0, |(_, count)| count))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_outside_of_the_difficulty_band_are_evolved() {
    if docker().await.is_none() {
        return;
    }
    let check = async |easy: usize, line: &str, asked: usize| {
        assert_eq!(measured(easy).await, (line.to_owned(), asked), "{easy} easy versions");
    };
    check(0, "difficulty: 1 wanted; 0 evolutions", 0).await;
    check(1, "difficulty: 1 wanted; 1 evolutions", 1).await;
    check(9, "difficulty: 1 too_easy; 2 evolutions", 2).await;
}
