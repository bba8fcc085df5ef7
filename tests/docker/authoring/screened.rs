//! Tasks of other makers are screened with clauses and blind solvers. A simulated model plays both.

use serde_json::Value;

use super::author::{INSTRUCTION, configure, requests, server};
use crate::support::bench::Bench;
use crate::support::engine::docker;

const MANIFEST: &str = "schema_version = \"1.2\"\n[task]\nname = \"someone/guests\"\n\
[verifier]\ntimeout_sec = 30.0\n[agent]\ntimeout_sec = 60.0\n[environment]\ncpus = 1\nmemory_mb = 512\n";
const DOCKERFILE: &str = "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY names.txt /app/names.txt\n";
const NAMES: &str = "Zoe\nadam\nBo\nbo\nBo\nAnna Lee\nZoe\nadam\n";
const SOLVE: &str = "#!/bin/bash\nset -euo pipefail\nexport LC_ALL=C\nsort -u names.txt > sorted.txt\nwc -l < sorted.txt > count.txt\n";
const TEST: &str = "#!/bin/bash\n/bin/rm -rf /logs/verifier/reward.txt\n/bin/mkdir -p /logs/verifier\necho 0 > /logs/verifier/reward.txt\n\
/usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C /bin/bash --noprofile --norc /tests/verify.sh && echo 1 > /logs/verifier/reward.txt\nexit 0\n";
const VERIFY: &str =
    "set -e\ncmp /tests/names.txt /app/names.txt\nsort -u /tests/names.txt | cmp - /app/sorted.txt\n";
const COUNT: &str = "sort -u /tests/names.txt | wc -l | cmp - /app/count.txt\n";

fn task(bench: &Bench, verify: &str) {
    for (path, text) in [
        ("guests/task.toml", MANIFEST),
        ("guests/instruction.md", INSTRUCTION),
        ("guests/environment/Dockerfile", DOCKERFILE),
        ("guests/environment/names.txt", NAMES),
        ("guests/solution/solve.sh", SOLVE),
        ("guests/tests/test.sh", TEST),
        ("guests/tests/verify.sh", verify),
        ("guests/tests/names.txt", NAMES),
    ] {
        bench.write(path, text);
    }
}

/// Screens the task with these checks. Returns the reasons for rejection as `kind:name`, and the
/// rows that models added.
async fn screened(verify: &str, says: fn(&str, usize) -> Option<String>) -> (Vec<String>, Vec<String>) {
    let server = server(says).await;
    let bench = Bench::new();
    configure(&bench, &server);
    task(&bench, verify);
    let args = ["screen", "guests", "--only", "clause", "--clauses", "--blind", "2", "--json"];
    let ended = bench.run(&args);
    let certificate: Value =
        serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{}{}", ended.out, ended.err));
    let named = |list: &str, keep: &dyn Fn(&str) -> bool| {
        let rows = certificate[list].as_array().unwrap().iter();
        rows.map(|row| format!("{}:{}", row["kind"].as_str().unwrap(), row["name"].as_str().unwrap()))
            .filter(|name| keep(name))
            .collect::<Vec<_>>()
    };
    let added = named("rows", &|name| name.starts_with("clause:") || name.starts_with("blind:"));
    let asked = requests(&server);
    // Models were asked only for clauses and blind attempts, and for each clause once.
    assert!(asked.iter().all(|(stage, _)| ["clauses", "blind"].contains(stage)), "{asked:?}");
    let kept = std::fs::read_to_string(bench.path("out/screen/certificates/guests/clauses.toml")).unwrap();
    assert!(kept.contains("sorted-once"), "{kept}");
    // A second screening asks and runs nothing.
    let before = server.requests();
    assert_eq!(bench.run(&args).out, ended.out);
    assert_eq!(server.requests(), before);
    (named("reasons", &|_| true), added)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_other_makers_are_screened_by_models() {
    if docker().await.is_none() {
        return;
    }
    let clauses = [
        "clause:sorted-once/several-times",
        "clause:count/all-lines",
        "clause:spelling/lower-case",
        "clause:input/sorted-in-place",
    ];

    let (reasons, rows) = screened(&format!("{VERIFY}{COUNT}"), |_, _| None).await;
    assert_eq!(reasons, [""; 0]);
    assert_eq!(rows, [&clauses[..], &["blind:1"]].concat());

    let (reasons, rows) = screened(VERIFY, |_, _| None).await;
    assert_eq!(reasons, ["clause:count/all-lines"]);
    assert_eq!(rows, clauses, "nobody tries a task that is rejected");

    let idle = |stage: &str, _| (stage == "blind").then(|| "Done.\n\n```bash\nsubmit\n```".to_owned());
    let (reasons, rows) = screened(&format!("{VERIFY}{COUNT}"), idle).await;
    assert_eq!(reasons, ["blind:unconfirmed"]);
    assert_eq!(rows, [&clauses[..], &["blind:1", "blind:2"]].concat());

    // A malformed reply is sent back to the model.
    let late =
        |stage: &str, before| (stage == "clauses" && before == 0).then(|| "Everything is clear.".to_owned());
    let (reasons, rows) = screened(&format!("{VERIFY}{COUNT}"), late).await;
    assert_eq!(reasons, [""; 0]);
    assert_eq!(rows, [&clauses[..], &["blind:1"]].concat());
}
