//! The whole pipeline on a real engine: run, run again, kill, resume, shard, merge.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::support::bench::{Bench, assert_same, containers_of, copy, files, names};

/// Two domains and three tasks. They include a bug fix with programs and a task from scratch, and
/// are few enough for five runs. Attacks on verifiers are tested in `tests/docker/gauntlet.rs`.
const SELECTION: [&str; 8] =
    ["--seed", "7", "--count", "3", "--domain", "coding,data_science", "--rigor", "quick"];

/// The log of the run that the tests of this file share.
const LOG: &str = "whole.jsonl";

fn run(out: &str) -> Vec<&str> {
    let mut args = vec!["run", "--out", out];
    args.extend(SELECTION);
    args
}

/// One uninterrupted run. The tests of this file share it, although they may run in separate
/// processes.
fn reference() -> &'static Bench {
    static REFERENCE: std::sync::OnceLock<Bench> = std::sync::OnceLock::new();
    REFERENCE.get_or_init(|| {
        Bench::shared("pipeline", |bench| {
            let mut args = run("whole");
            args.extend(["-vv", "--log-file", LOG]);
            bench.run(&args).ok().says("certified");
        })
    })
}

#[test]
fn a_run_makes_tasks_trajectories_and_data() {
    let bench = reference();
    let certified: Vec<_> =
        fs::read_dir(bench.path("whole/tasks")).unwrap().map(|task| task.unwrap().path()).collect();
    assert_eq!(certified.len(), 3, "{:?}", names(&bench.path("whole/rejected")));
    for task in &certified {
        for file in [
            "task.toml",
            "instruction.md",
            "environment/Dockerfile",
            "tests/test.sh",
            "tests/classes.json",
            "solution/solve.sh",
        ] {
            assert!(task.join(file).exists(), "{} lacks {file}", task.display());
        }
        let certificate: serde_json::Value =
            serde_json::from_slice(&fs::read(task.join("certificate.json")).unwrap()).unwrap();
        assert_eq!(certificate["certified"], true);
        bench.run(&["verify-certificate", task.to_str().unwrap()]).ok();
        let kinds: Vec<_> =
            certificate["rows"].as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect();
        for kind in ["lint", "build", "untouched", "reference", "second_solution", "wrong_solution"] {
            assert!(kinds.contains(&kind), "no {kind} row in {kinds:?}");
        }
        assert!(certificate["checks"].as_array().unwrap().iter().any(|check| check["class"] == "F2P"));
    }
    assert_eq!(names(&bench.path("whole/trajectories")).len(), 12);
    for file in
        ["data/README.md", "data/sft/train-00000-of-00001.parquet", "report/audit.json", "report/audit.txt"]
    {
        assert!(bench.path("whole").join(file).exists(), "no {file}");
    }
}

#[test]
fn logs_tell_units_trials_rollouts_and_turns_apart() {
    let log = fs::read_to_string(reference().path(LOG)).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let paths: std::collections::BTreeSet<String> = lines
        .map(|line| {
            let mut spans = line["spans"].as_array().cloned().unwrap_or_default();
            // The beginning and the end of a span are events inside its parents.
            spans.extend(
                line.get("span")
                    .filter(|_| ["new", "close"].contains(&line["fields"]["message"].as_str().unwrap_or("")))
                    .cloned(),
            );
            let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap_or("?")).collect();
            names.join(" ")
        })
        .collect();
    for path in ["termsmith unit trial", "termsmith unit rollout", "termsmith unit rollout turn"] {
        assert!(paths.contains(path), "no event in {path}: {paths:?}");
    }
}

#[test]
fn a_second_run_changes_nothing_and_needs_no_engine() {
    let bench = reference();
    let before = stamps(&bench.path("whole"));
    bench.run(&run("whole")).ok();
    assert_eq!(stamps(&bench.path("whole")), before);

    let without =
        bench.command(&run("whole")).env("DOCKER_HOST", "unix:///nowhere/docker.sock").output().unwrap();
    assert!(without.status.success(), "{}", String::from_utf8_lossy(&without.stderr));
    assert_eq!(stamps(&bench.path("whole")), before);
}

#[test]
fn shards_merge_into_the_whole() {
    let whole = reference();
    let bench = Bench::new();
    for (shard, out) in [("0/2", "left"), ("1/2", "right")] {
        let mut args = run(out);
        args.extend(["--shard", shard]);
        bench.run(&args).ok();
    }
    let (left, right) = (names(&bench.path("left/store")), names(&bench.path("right/store")));
    assert!(!left.is_empty() && !right.is_empty());
    for folder in ["store", "observed"] {
        copy(&bench.path("left").join(folder), &bench.path("merged").join(folder));
        copy(&bench.path("right").join(folder), &bench.path("merged").join(folder));
    }
    assert_same(&bench.path("merged/store"), &whole.path("whole/store"));
}

#[test]
fn a_run_killed_at_any_point_continues() {
    let whole = reference();
    let total = names(&whole.path("whole/store")).len();
    let bench = Bench::new();
    let mut killed = Vec::new();
    // The run is killed after a given number of records. The numbers are spread over the whole run.
    for stop in 1..=killings() {
        let mut child = bench.spawn(&run("killed"));
        wait_for_records(&bench.path("killed/store"), total * stop / (killings() + 1), &mut child);
        child.kill().unwrap();
        killed.push(child.id());
        child.wait().unwrap();
    }
    bench.run(&run("killed")).ok();
    assert_same(&bench.path("killed/store"), &whole.path("whole/store"));
    assert_eq!(names(&bench.path("killed/observed")), names(&whole.path("whole/observed")));
    let leftovers: Vec<_> = names(&bench.path("killed"))
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".scratch") || path.to_string_lossy().contains(".tmp"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    assert_eq!(containers_of(&killed), Vec::<String>::new());
}

/// Number of kills. `make conformance` sets a larger one.
fn killings() -> usize {
    std::env::var("TERMSMITH_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

#[test]
fn the_first_interrupt_drains_and_the_same_command_continues() {
    let whole = reference();
    let bench = Bench::new();
    let mut child = bench.spawn(&run("drained"));
    wait_for_records(&bench.path("drained/store"), 8, &mut child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(130 | 0)), "{code:?}");
    bench.run(&run("drained")).ok();
    assert_same(&bench.path("drained/store"), &whole.path("whole/store"));
}

#[test]
fn trajectories_show_errors_and_recovery_and_honest_labels() {
    let bench = reference();
    let mut outcomes = Vec::new();
    for (path, bytes) in files(&bench.path("whole/trajectories")) {
        let trajectory: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(trajectory["schema_version"], "ATIF-v1.7", "{}", path.display());
        assert_eq!(trajectory["extra"]["teacher"], "scripted");
        outcomes.push(trajectory["extra"]["reward"].as_f64().unwrap());
    }
    assert!(outcomes.contains(&1.0) && outcomes.contains(&0.0), "{outcomes:?}");
}

#[test]
fn a_task_can_be_verified_by_hand() {
    let bench = reference();
    let task = fs::read_dir(bench.path("whole/tasks")).unwrap().next().unwrap().unwrap().path();
    let task = task.to_str().unwrap();
    bench.run(&["verify", task]).ok().says("passed");
    bench.run(&["verify", task, "--nothing"]).ends(1).says("failed");
    bench.write("mine.sh", "true\n");
    let json = bench.run(&["--json", "verify", task, "--solution", "mine.sh"]).ends(1);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["verdict"]["outcome"], "fail");
}

fn wait_for_records(store: &Path, count: usize, child: &mut Child) {
    while names(store).len() < count && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn stamps(dir: &Path) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    names(dir)
        .into_iter()
        .filter(|path| path != Path::new(".lock"))
        .map(|path| {
            let modified = fs::metadata(dir.join(&path)).unwrap().modified().unwrap();
            (path, modified)
        })
        .collect()
}
