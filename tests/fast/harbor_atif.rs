//! Harbor itself reads ATIF documents and job folders. The environment variable
//! `TERMSMITH_HARBOR_PYTHON` must name a Python with Harbor 0.24 or 0.25. Without it, the tests
//! that need Harbor do nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use termsmith::clock::instant;
use termsmith::export::atif::{Calls, Stamps, documents};
use termsmith::export::jobs::{Trial, write_job};
use termsmith::export::messages::branches;
use termsmith::model::{self, Act, Actor, Outcome, Rollout, TurnKind};
use termsmith::rollout::import::read_imports;

use crate::{fixture, shapes};

/// 2026-03-01 at noon.
const STARTED_MS: u64 = 1_772_366_400_000;

fn stamps(rollout: &Rollout) -> Stamps {
    let turn = |number: usize| instant(STARTED_MS + 250 + 1_000 * number as u64);
    Stamps { started: instant(STARTED_MS), turns: (1..=rollout.record.turns.len()).map(turn).collect() }
}

fn trial(rollout: Rollout) -> Trial {
    let calls: Vec<_> = rollout.record.calls().cloned().collect();
    Trial {
        stamps: stamps(&rollout),
        finished: instant(STARTED_MS + 3_600_000),
        details: calls
            .into_iter()
            .filter_map(|call| Some((call.clone(), shapes::detail(&call)?)))
            .collect::<BTreeMap<_, _>>(),
        verifier_output: "collected 8 items\n".to_owned(),
        rollout,
    }
}

/// Writes a document of every shape, in every way.
fn write_documents(dir: &Path) -> Vec<PathBuf> {
    let mut written = Vec::new();
    for (name, rollout) in shapes::shapes() {
        for (style, calls) in [("parsed", Calls::Parsed), ("spoken", Calls::Spoken)] {
            let base = format!("{name}-{style}");
            for document in
                documents(&rollout, &base, Some(&stamps(&rollout)), calls, shapes::detail).unwrap()
            {
                let path = dir.join(document.name);
                fs::write(&path, document.trajectory.to_json()).unwrap();
                written.push(path);
            }
        }
        for document in documents(&rollout, &format!("{name}-plain"), None, Calls::Parsed, |_| None).unwrap()
        {
            let path = dir.join(document.name);
            fs::write(&path, document.trajectory.to_json()).unwrap();
            written.push(path);
        }
    }
    written
}

#[test]
fn harbor_reads_what_is_written_for_it() {
    // The folder stays for Harbor's commands, which are run by hand: `harbor view`, `harbor traces
    // export`.
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("harbor-sample");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let documents = write_documents(&dir);
    let jobs = dir.join("jobs");
    // Each task has several attempts, so that there is a pass@k to compare.
    let attempts = (0..12).map(|number| fixture::rollout("security", number % 2, number, 2, 8 - number % 3));
    let groups = [
        ("every-shape", shapes::shapes().into_iter().map(|(_, rollout)| rollout).collect()),
        ("attempts", attempts.collect::<Vec<_>>()),
    ];
    for (name, rollouts) in groups {
        let count = rollouts.len();
        let job =
            write_job(&jobs, name, rollouts.into_iter().map(|rollout| Ok::<_, Infallible>(trial(rollout))));
        assert_eq!(job.unwrap().trials, count);
    }
    let Some(python) = std::env::var_os("TERMSMITH_HARBOR_PYTHON") else {
        eprintln!("skipped: TERMSMITH_HARBOR_PYTHON names no Python with Harbor");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/check_harbor_jobs.py");
    let checked = Command::new(python)
        .arg(script)
        .arg(&jobs)
        .args(&documents)
        .env("HARBOR_TELEMETRY", "0")
        .output()
        .unwrap();
    let (out, error) = (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(checked.status.success(), "{out}\n{error}");
    let expected = format!("atif {}, jobs 2, trials {}", documents.len(), shapes::shapes().len() + 12);
    assert!(out.contains(&expected), "{out}");
    print!("{out}");
}

fn back(path: &Path) -> Vec<Rollout> {
    let imports = read_imports(path).unwrap();
    let mut rollouts = Vec::new();
    for imported in imports.rollouts {
        rollouts.push(Rollout {
            left_out: 0,
            id: imported.path.display().to_string(),
            rewards: imported.record.rewards(&[]),
            round_rewards: Vec::new(),
            record: imported.record,
            metadata: imported.metadata,
            shown: imported.shown,
            handoffs: imported.handoffs,
            threads: Vec::new(),
            labels: Vec::new(),
            judge: String::new(),
        });
    }
    // Only the rollout without messages is refused.
    assert!(imports.refused.iter().all(|refused| refused.to_string().contains("the agent says nothing")));
    rollouts
}

/// A rollout that is exported and imported has the same messages, kinds, acts, usage and verdict.
#[track_caller]
fn check_return(name: &str, out: &Rollout, back: &Rollout) {
    assert_eq!(branches(back).unwrap(), branches(out).unwrap(), "{name}");
    let (one, other) = (&out.record, &back.record);
    assert_eq!(
        (&one.system, &one.prompt, &one.tools),
        (&other.system, &other.prompt, &other.tools),
        "{name}"
    );
    assert_eq!((&one.verdict, &one.fork), (&other.verdict, &other.fork), "{name}");
    assert_eq!((&one.task, one.attempt, &one.task_digest), (&other.task, other.attempt, &other.task_digest));
    assert_eq!(out.metadata.skills, back.metadata.skills);
    let scripted = matches!(one.actor, Actor::Scripted { .. });
    for (written, read) in one.turns.iter().zip(&other.turns) {
        assert_eq!(
            (&written.content, written.kind, written.cut_off),
            (&read.content, read.kind, read.cut_off),
            "{name}"
        );
        assert!(scripted || (&written.reasoning, written.usage) == (&read.reasoning, read.usage), "{name}");
        assert_eq!(written.tool_calls, read.tool_calls, "{name}");
    }
}

#[test]
fn exported_rollouts_are_imported_unchanged() {
    for (name, rollout) in shapes::shapes() {
        // Imported rollouts have neither our agent's name nor our metadata.
        if rollout.record.turns.is_empty() || matches!(rollout.record.actor, Actor::Imported(_)) {
            continue;
        }
        // Chat templates refuse an empty message.
        let mut rollout = rollout;
        rollout
            .record
            .turns
            .iter_mut()
            .filter(|turn| turn.content == " ")
            .for_each(|turn| turn.content.push('.'));
        let dir = tempfile::tempdir().unwrap();
        for (style, calls) in [("parsed", Calls::Parsed), ("spoken", Calls::Spoken)] {
            for document in documents(&rollout, style, None, calls, |_| None).unwrap() {
                fs::write(dir.path().join(document.name), document.trajectory.to_json()).unwrap();
            }
            let [found] = back(&dir.path().join(format!("{style}.json"))).try_into().unwrap();
            check_return(name, &rollout, &found);
            if calls == Calls::Spoken {
                let acts = |rollout: &Rollout| -> Vec<_> {
                    rollout.record.turns.iter().map(|turn| turn.acts.clone()).collect()
                };
                assert_eq!(acts(&found), acts(&rollout), "{name}");
            }
        }
        let jobs = dir.path().join("jobs");
        write_job(&jobs, "job", [Ok::<_, Infallible>(trial(rollout.clone()))]).unwrap();
        let [found] = back(&jobs).try_into().unwrap();
        check_return(name, &rollout, &found);
    }
}

/// Trials as Harbor's own models write them.
#[test]
fn trials_written_by_harbor_are_imported() {
    let Some(python) = std::env::var_os("TERMSMITH_HARBOR_PYTHON") else {
        eprintln!("skipped: TERMSMITH_HARBOR_PYTHON names no Python with Harbor");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/make_harbor_job.py");
    let made =
        Command::new(python).arg(script).arg(dir.path().join("job")).env("HARBOR_TELEMETRY", "0").output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let imports = read_imports(dir.path()).unwrap();
    assert_eq!(imports.refused.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    let outcomes: Vec<_> = imports.rollouts.iter().map(|imported| imported.record.verdict.outcome).collect();
    let fates = [Outcome::Pass, Outcome::Fail, Outcome::Timeout, Outcome::VerifierError, Outcome::Infra];
    assert_eq!(outcomes, fates.iter().cycle().take(9).copied().collect::<Vec<_>>());
    for (minor, imported) in imports.rollouts.iter().enumerate() {
        let record = &imported.record;
        let scaffold = if minor % 2 == 0 { "terminus-json" } else { "terminus-2-rendered" };
        assert_eq!((record.scaffold.as_str(), record.prompt.as_str()), (scaffold, "Task"));
        let kinds: Vec<_> = record.turns.iter().map(|turn| turn.kind).collect();
        assert_eq!(kinds, [TurnKind::Acted, TurnKind::Claimed, TurnKind::Submitted], "{minor}");
        let keys = |turn: &model::Turn| turn.acts == [Act::Keys { keys: "ls\n".to_owned() }];
        assert!(record.turns.iter().all(keys), "{minor}");
        assert!(
            record.turns.iter().all(|turn| turn.tool_calls.is_empty() && turn.usage.is_some()),
            "{minor}"
        );
        let shown: Vec<Vec<&str>> = imported
            .shown
            .iter()
            .map(|shown| shown.iter().map(|shown| shown.content.as_str()).collect())
            .collect();
        assert_eq!(shown, [vec!["src"], vec!["sure?"], vec![]], "{minor}");
    }
}
