use std::convert::Infallible;
use std::fmt::Write as _;

use crate::clock::instant;
use crate::export::atif::Stamps;
use crate::export::shapes::{detail, shapes};
use crate::model::{FailureKind, Rollout};

use super::*;

/// 2026-03-01, 12:00 UTC.
const STARTED_MS: u64 = 1_772_366_400_000;

fn trial(rollout: Rollout) -> Trial {
    let turns = rollout.record.turns.len();
    let calls: Vec<_> = rollout.record.calls().cloned().collect();
    Trial {
        stamps: Stamps {
            started: instant(STARTED_MS),
            turns: (1..=turns).map(|second| instant(STARTED_MS + 1_000 * second as u64)).collect(),
        },
        finished: instant(STARTED_MS + 60_000),
        details: calls.into_iter().filter_map(|call| Some((call.clone(), detail(&call)?))).collect(),
        verifier_output: "8 passed\n".to_owned(),
        rollout,
    }
}

fn write(jobs: &Path, trials: Vec<Trial>) -> Result<Job, JobError<Infallible>> {
    write_job(jobs, "run-1", trials.into_iter().map(Ok))
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Every path below `dir`, sorted.
fn listing(dir: &Path) -> String {
    fn visit(dir: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    visit(dir, dir, &mut found);
    found.sort();
    found.into_iter().fold(String::new(), |mut text, path| {
        let _ = writeln!(text, "{path}");
        text
    })
}

#[test]
fn a_job_folder() {
    let jobs = tempfile::tempdir().unwrap();
    let trials: Vec<_> = shapes().into_iter().map(|(_, rollout)| trial(rollout)).collect();
    let job = write(jobs.path(), trials.clone()).unwrap();
    assert_eq!(job.trials, trials.len());
    insta::assert_snapshot!("files", listing(jobs.path()));

    let root = fs::canonicalize(jobs.path()).unwrap().display().to_string();
    let text = |path: &str| {
        let text = fs::read_to_string(job.path.join(path)).unwrap();
        text.replace(&root, "<jobs>").replace(env!("CARGO_PKG_VERSION"), "<version>")
    };
    insta::assert_snapshot!("config", text("config.json"));
    insta::assert_snapshot!("result", text("result.json"));
    insta::assert_snapshot!("trial-result", text("games-roll-up-2__0000000200000000/result.json"));

    // A second export without changes writes nothing. Trials that are gone are removed.
    let before = fs::metadata(job.path.join("result.json")).unwrap().modified().unwrap();
    write(jobs.path(), trials.clone()).unwrap();
    assert_eq!(fs::metadata(job.path.join("result.json")).unwrap().modified().unwrap(), before);
    write(jobs.path(), trials[..1].to_vec()).unwrap();
    assert_eq!(read(&job.path.join("result.json"))["n_total_trials"], 1);
    assert_eq!(fs::read_dir(&job.path).unwrap().count(), 3);
}

#[test]
fn rewards_and_exceptions() {
    let jobs = tempfile::tempdir().unwrap();
    for (name, rollout) in shapes() {
        let job = write(jobs.path(), vec![trial(rollout.clone())]).unwrap();
        let folder =
            fs::read_dir(&job.path).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap().path();
        let result = read(&folder.join("result.json"));
        let masked = rollout.record.failure_kind().masks();
        assert_eq!(folder.join("verifier/reward.txt").exists(), !masked, "{name}");
        assert_eq!(folder.join("exception.txt").exists(), masked, "{name}");
        assert_eq!(result["exception_info"].is_null(), !masked, "{name}");
        let reward = &result["verifier_result"]["rewards"]["reward"];
        match rollout.record.failure_kind() {
            FailureKind::None => assert_eq!(*reward, 1.0, "{name}"),
            kind if kind.masks() => assert!(reward.is_null(), "{name}"),
            _ => assert_eq!(*reward, 0.0, "{name}"),
        }
    }
}

#[test]
fn invalid_documents_are_refused() {
    let jobs = tempfile::tempdir().unwrap();
    for name in ["", ".hidden", "../up", "a/b", "a b"] {
        let refused = write_job(jobs.path(), name, Vec::<Result<Trial, Infallible>>::new());
        assert!(matches!(refused, Err(JobError::Name(found)) if found == name));
    }
    let foreign = jobs.path().join("run-1/trial__1");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("config.json"), r#"{"job_id": null}"#).unwrap();
    assert!(matches!(write(jobs.path(), Vec::new()), Err(JobError::Foreign(_))));
    assert!(foreign.join("config.json").exists());
    assert!(matches!(write_job(jobs.path(), "b", [Err("broken")]), Err(JobError::Source("broken"))));
}
