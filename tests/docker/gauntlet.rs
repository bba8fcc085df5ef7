//! Screens some tasks of the corpus in `tests/gauntlet/`: one for each way of judging, and some
//! defects that only a trial can show. `make gauntlet` screens the whole corpus.

use termsmith::model::{Certificate, Judging, Outcome, RowKind, Timings};

use crate::support::bench::Bench;
use crate::support::corpus::{prepare, task_dir};

/// The tasks that are screened here. The others have other defects, but take the same path through
/// the code.
const SAMPLE: [&str; 21] = [
    "build-fails",
    "clause-untested",
    "conftest-loaded",
    "edits-data",
    "edits-input",
    "leak-in-layer",
    "live-writer",
    "no-reward-on-failure",
    "no-test-script",
    "programs-as-root",
    "room-interpreter",
    "runner-missing",
    "sound-edited-data",
    "sound-entrypoint",
    "sound-moved-input",
    "sound-separate-verifier",
    "sound-two-steps",
    "sound-user",
    "strict-key-order",
    "untouched-passes",
    "weak-magic-number",
];

#[test]
fn planted_defects_are_found_and_sound_tasks_are_not_blamed() {
    let bench = Bench::new();
    let corpus = bench.path("corpus");
    prepare(&corpus, &SAMPLE);
    let out = bench.path("screen");
    let args = ["screen", "--summary", "--out", out.to_str().unwrap(), corpus.to_str().unwrap()];
    let screened = bench.run(&args);
    let last = screened.out.lines().last().unwrap_or_default().to_owned();
    assert!(
        last.ends_with(&format!("{} as expected, 0 not", SAMPLE.len())),
        "{}\n{}",
        screened.out,
        screened.err
    );
    let timings = std::fs::read_to_string(out.join("certificates/sound-user/timings.json")).unwrap();
    let timings: Timings = serde_json::from_str(&timings).unwrap();
    let (seconds, peak) = timings.most(RowKind::Reference).unwrap();
    assert!(seconds > 0.0 && seconds < f64::from(timings.agent_timeout_sec), "{timings:?}");
    // A shell and its children use more than 100 KiB, and less than the limit.
    let limit = u64::from(timings.memory_mb) << 20;
    assert!(peak.is_none_or(|peak| (100 << 10..limit).contains(&peak)), "{timings:?}");
    // A second screening reads the stored rows.
    let again = bench.run(&args);
    assert_eq!(again.out.lines().last(), Some(last.as_str()));
}

#[test]
fn a_spent_budget_leaves_mutants_out_and_says_how_many() {
    let bench = Bench::new();
    let task = task_dir("sound-makefile").display().to_string();
    let left_out = |name: &str, budget: &[&str]| {
        let out = bench.path(name);
        let mut args = vec!["--json", "screen", "--only", "mutant", "--out", out.to_str().unwrap()];
        args.extend(budget);
        args.push(&task);
        let certificate: Certificate = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
        let tried = certificate.rows.iter().filter(|row| row.kind == RowKind::Mutant).count();
        (tried, certificate.left_out as usize)
    };
    let (all, none) = left_out("all", &[]);
    assert_eq!(none, 0);
    assert!(all > 0);
    assert_eq!(left_out("spent", &["--budget", "0"]), (0, all));
}

#[test]
fn a_termsmith_task_passes_a_standard_screening() {
    let bench = Bench::new();
    let checked = bench
        .run(&[
            "--json",
            "recipe",
            "check",
            "data_science/settle-meter-readings",
            "--seeds",
            "1",
            "--rigor",
            "standard",
        ])
        .ok()
        .out;
    let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
    let certificate = &checked["certificate"];
    assert_eq!(certificate["certified"], true, "{certificate:#}");
    let rates = &certificate["rates"];
    for rate in ["accepted", "repelled", "steady"] {
        assert_eq!(rates[rate]["good"], rates[rate]["counted"], "{rate}: {rates:#}");
        assert!(rates[rate]["counted"].as_u64().unwrap() >= 2, "{rate}: {rates:#}");
    }
}

/// In the separate mode the solver's programs run beside the tests. Files that a solver planted
/// outside the work directory are gone.
#[test]
fn a_termsmith_task_repels_attacks_in_harbors_separate_mode() {
    let bench = Bench::new();
    bench.run(&["recipe", "render", "coding/mend-booking-cli", "--out", "task"]).ok();
    let rows = ["attack:D-07-bash", "attack:D-08-by-programs", "attack:D-36", "attack:D-37"];
    let mut args = vec!["--json", "screen", "task", "--as-harbor", "separate"];
    args.extend(rows.iter().flat_map(|row| ["--only", row]));
    let certificate: Certificate = serde_json::from_str(&bench.run(&args).ok().out).unwrap();
    assert_eq!(certificate.judging, Judging::Separate);
    let reference = certificate.rows.iter().find(|row| row.kind == RowKind::Reference).unwrap();
    assert_eq!(reference.outcome, Some(Outcome::Pass));
    let attacks = certificate.rows.iter().filter(|row| row.kind == RowKind::Attack && row.counts);
    let outcomes: Vec<_> = attacks.map(|row| (row.name.as_str(), row.outcome)).collect();
    assert!(outcomes.len() >= rows.len(), "{outcomes:?}");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == Some(Outcome::Fail)), "{outcomes:?}");
}
