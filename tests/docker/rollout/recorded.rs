//! Recorded conversations, replayed in new containers. Their messages were written from the
//! requests alone.

use std::path::Path;

use serde_json::Value;

use crate::support::bench::Bench;
use crate::support::corpus::{prepared, task_dir};

/// The endpoint of the recordings. No server listens there.
const SETTINGS: &str = r#"
version = 1
[endpoints.hand]
base_url = "http://127.0.0.1:9/v1"
[roles.expert]
endpoint = "hand"
model = "hand-written"
max_tokens = 8192
[roles.planner]
endpoint = "hand"
model = "hand-written"
max_tokens = 2048
[roles.mentor]
endpoint = "hand"
model = "hand-written"
max_tokens = 2048
"#;

/// Like [`SETTINGS`], with a small context, for recordings with summaries.
fn small(context: u32) -> String {
    format!(
        "version = 1\n[endpoints.hand]\nbase_url = \"http://127.0.0.1:9/v1\"\nmax_context = {context}\n\
         [roles.expert]\nendpoint = \"hand\"\nmodel = \"hand-written\"\nmax_tokens = 2000\n"
    )
}

/// A recording, its task, the options of its rollouts, and their outcomes.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const ROWS: [Row; 11] = [
    ("terminus-base", "room-users", &["--scaffold", "terminus", "--early-wake"], &["pass"]),
    (
        "terminus-self-correction",
        "room-files",
        &["--scaffold", "terminus", "--early-wake", "--arm", "self-correction"],
        &["pass"],
    ),
    ("bash-base", "room-database", &["--scaffold", "bash"], &["pass"]),
    (
        "bash-plan-interactive",
        "room-package",
        &["--scaffold", "bash", "--arm", "plan-interactive"],
        &["pass"],
    ),
    (
        "bash-fork",
        "room-files",
        &["--scaffold", "bash", "--arm", "fork", "-k", "2"],
        &["pass", "pass", "pass"],
    ),
    ("react-plan", "room-service", &["--scaffold", "react", "--arm", "plan"], &["pass"]),
    ("react-interactive", "room-compiled", &["--scaffold", "react", "--arm", "interactive"], &["pass"]),
    ("block-base", "sound-logrotate", &["--scaffold", "bash-block"], &["pass"]),
    ("react-two-steps", "sound-two-steps", &["--scaffold", "react"], &["pass"]),
    (
        "bash-summarised",
        "room-users",
        &["--scaffold", "bash", "--summarise", "--settings", "context-5000.toml"],
        &["pass"],
    ),
    (
        "terminus-summarised",
        "room-compiled",
        &["--scaffold", "terminus", "--early-wake", "--summarise", "--settings", "context-6800.toml"],
        &["pass"],
    ),
];

fn run_recording(row: &Row) -> Value {
    let (name, task, how, outcomes) = row;
    let cassette =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/docker/rollout/cassettes/{name}.jsonl"));
    let replies = std::fs::read_to_string(&cassette).unwrap().lines().count();
    let bench = Bench::new();
    bench.write("termsmith.toml", SETTINGS);
    for context in [5000, 6800] {
        bench.write(&format!("context-{context}.toml"), &small(context));
    }
    let cassette = cassette.display().to_string();
    let task = prepared(&bench.path(""), task).display().to_string();
    let mut args =
        vec!["--json", "rollout", &task, "--cassette", &cassette, "--trial-seconds", "7000", "--out", "out"];
    args.extend(*how);
    let ran = bench.run(&args).ok().says(&format!("models: {replies} replies"));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let found: Vec<_> =
        report["rollouts"].as_array().unwrap().iter().map(|rollout| &rollout["outcome"]).collect();
    assert_eq!(found, *outcomes, "{name}\n{}", ran.err);
    let id = report["rollouts"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let shown = bench.run(&["--json", "show", &id, "--out", "out"]).ok();
    serde_json::from_str(&shown.out).unwrap()
}

#[test]
fn recorded_conversations_end_as_recorded() {
    let documents: Vec<Value> = std::thread::scope(|scope| {
        // Two at a time: mostly they wait for the terminal.
        let halves: Vec<_> = ROWS
            .chunks(ROWS.len() / 2)
            .map(|rows| scope.spawn(move || rows.iter().map(run_recording).collect::<Vec<_>>()))
            .collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    let document = |name: &str| {
        let at = ROWS.iter().position(|(row, ..)| *row == name).unwrap();
        &documents[at]
    };
    // After a failed round, the feedback named the check. It named no value that the instruction
    // does not have. The next round passed.
    let corrected = document("terminus-self-correction");
    assert_eq!(corrected["extra"]["rounds"].as_array().unwrap().len(), 1);
    let text = corrected.to_string();
    assert!(
        text.contains("checks failed") && text.contains("test_usage: AssertionError: kwh of … is …, not …"),
        "{text}"
    );
    // The plan came before the first message, and a question was answered.
    let guided = document("bash-plan-interactive").to_string();
    assert!(guided.contains("suggests this plan") && guided.contains("The mentor says"));
    assert!(document("react-plan").to_string().contains("suggests this plan"));
    // After a summary, a part begins with it. A step of a task begins with its own instruction.
    let parts = |name: &str| {
        let documents = document(name).as_array().unwrap().iter();
        let texts = documents.filter(|document| document["extra"]["segments"].is_u64());
        texts.map(|document| document["steps"].to_string()).collect::<Vec<_>>()
    };
    let summed_up = parts("bash-summarised");
    assert_eq!(summed_up.len(), 2);
    assert!(summed_up[1].contains("What you wrote down at its end"), "{}", summed_up[1]);
    assert!(parts("terminus-summarised")[1].contains("You are picking up work from a previous AI agent"));
    assert_eq!(parts("react-two-steps").len(), 2);
    // The attempts of a fork begin with the turns of the first one.
    assert_eq!(document("bash-fork")["extra"]["fork"]["turns"], 2);
}

#[test]
fn references_are_run_reported_and_exported() {
    let bench = Bench::new();
    let task = task_dir("sound-modes").display().to_string();
    for (scaffold, passed) in [("oracle", "2 of 2 scored passed"), ("nop", "0 of 2 scored passed")] {
        let args =
            ["rollout", &task, "--scaffold", scaffold, "-k", "2", "--out", "out", "--harbor-jobs", "jobs"];
        bench.run(&args).ok().says(passed);
        // The same command again runs nothing, and duplicates nothing.
        bench.run(&args).ok().says(passed);
    }
    let report: Value =
        serde_json::from_str(&bench.run(&["--json", "report", "--out", "out"]).ok().out).unwrap();
    insta::assert_snapshot!(
        bench.run(&["report", "--out", "out"]).ok().out.lines().take(4).collect::<Vec<_>>().join("\n")
    );
    assert_eq!(report["version"], 3);
    assert_eq!(
        std::fs::read_dir(bench.path("jobs/out"))
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().path().is_dir() })
            .count(),
        4
    );
    // Rollouts with messages can be imported. Those without are refused by name.
    bench.run(&["import", "jobs/out", "--out", "taken"]).ends(1).says("the agent wrote no message");
}
