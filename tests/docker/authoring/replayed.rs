//! Replays the recorded authoring of a task in real containers, as `make demo-model` does for
//! twelve tasks.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::engine::docker;

/// The recorded task that takes the least time. It has index 1.
const TASK: &str = "data-science-model-0001";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_authoring_becomes_a_certified_task() {
    if docker().await.is_none() {
        return;
    }
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/authoring/played");
    let file = |name: &str| recorded.join(name).to_str().unwrap().to_owned();
    let (settings, cassette) = (file("termsmith.toml"), file("cassette.jsonl.zst"));
    let bench = Bench::new();
    let plan =
        ["run", "--author", "model", "--oneshot", "--count", "12", "--seed", "2026", "--shard", "1/12"];
    // The recording has no stage `mistakes`.
    let how = ["--attempts", "0", "--rigor", "quick", "--mistakes", "0", "--out", "out"];
    let models = ["--settings", &settings, "--cassette", &cassette];
    let ran = bench.run(&[&plan[..], &how, &models].concat()).ok();
    let ran = ran.says("1 of 1 certified, 0 of 1 at the first pass, 1 repairs, 15 replies, ");
    ran.says(" 0 requests, 0 tokens");

    let task = bench.path("out/tasks").join(TASK);
    let certificate: Value =
        serde_json::from_str(&fs::read_to_string(task.join("certificate.json")).unwrap()).unwrap();
    let blind = certificate["rows"].as_array().unwrap().iter().find(|row| row["kind"] == "blind");
    assert_eq!(
        blind,
        Some(&json!({"kind": "blind", "name": "1", "outcome": "pass", "passed_of": [15, 15], "ok": true}))
    );
    bench.run(&["verify-certificate", task.to_str().unwrap()]).ok();
}
