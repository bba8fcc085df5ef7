//! Rollouts as a Harbor job folder. `harbor view` shows it, and `harbor traces export` reads it
//! (Harbor 0.24 and 0.25).
//!
//! The folder is `<jobs>/<job>/{config.json, result.json}`. Each trial has a folder
//! `<task>__<id>/{config.json, result.json, exception.txt, agent/trajectory.json,
//! verifier/{reward.txt, ctrf.json, test-stdout.txt}}`. Equal rollouts give equal bytes. A trial's
//! folder appears complete or not at all. Harbor cannot resume such a job, because it does not
//! contain the tasks.
//!
//! Masked attempts have an exception and no reward, like failures of Harbor's own infrastructure.

mod documents;
mod totals;
mod trial;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use trial::Trial;

use self::documents::Written;
use self::totals::JobTotals;
use super::atif::{AtifError, Calls, documents};
use crate::folder::read_file;
use crate::model::{File, FileTree, Key, RelPath};
use crate::store::{StoreError, publish_file, publish_tree, remove_published};

/// Maximum bytes that are read of a job's file. `result.json` lists every trial.
const LARGEST: u64 = 256 << 20;

/// Why a job folder was not written.
#[derive(Debug, thiserror::Error)]
pub enum JobError<E> {
    #[error(transparent)]
    Source(E),
    #[error(transparent)]
    Trajectory(#[from] AtifError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "`{0}` is not a valid job name\nhint: use letters, digits, `.`, `_` and `-`, and do not begin with `.`"
    )]
    Name(String),
    #[error("`{0}` holds a job that termsmith did not write\nhint: name another folder")]
    Foreign(PathBuf),
}

/// A job folder that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// `<jobs>/<job>`.
    pub path: PathBuf,
    pub trials: usize,
}

/// Writes the job `name` below `jobs` from `trials`. Trials of an earlier job of that name are
/// removed if they are not among `trials`.
pub fn write_job<E>(
    jobs: &Path,
    name: &str,
    trials: impl IntoIterator<Item = Result<Trial, E>>,
) -> Result<Job, JobError<E>> {
    if !is_name(name) {
        return Err(JobError::Name(name.to_owned()));
    }
    fs::create_dir_all(jobs).map_err(StoreError::io("create folder", jobs))?;
    // Harbor's URIs are absolute.
    let jobs = fs::canonicalize(jobs).map_err(StoreError::io("find", jobs))?;
    let path = jobs.join(name);
    let former = former_trials(&path, name).ok_or_else(|| JobError::Foreign(path.clone()))?;
    let scratch = path.join(".scratch");
    remove_published(&scratch)?;

    let mut totals = JobTotals::default();
    let mut names = BTreeSet::new();
    for trial in trials {
        let trial = trial.map_err(JobError::Source)?;
        let written = Written::new(&jobs, name, &trial);
        let tree = tree(&trial, &written)?;
        publish_tree(&scratch, &path.join(&written.name), &tree)?;
        totals.add(&trial, &written);
        names.insert(written.name);
    }
    for stale in former.difference(&names) {
        remove_published(&path.join(stale))?;
    }
    publish_file(&scratch, &path.join("config.json"), &json_file(&totals.config(&jobs, name)))?;
    // Written last. The file shows that the folder is complete.
    publish_file(&scratch, &path.join("result.json"), &json_file(&totals.result(name)))?;
    remove_published(&scratch)?;
    Ok(Job { path, trials: names.len() })
}

/// The files of one trial.
fn tree(trial: &Trial, written: &Written) -> Result<FileTree, AtifError> {
    let detail = |call: &Key| trial.details.get(call).cloned();
    let agents = documents(&trial.rollout, "trajectory", Some(&trial.stamps), Calls::Spoken, detail)?;
    let agents = agents
        .iter()
        .map(|document| (format!("agent/{}", document.name), File::text(document.trajectory.to_json())));
    let mut files = vec![
        ("config.json".to_owned(), json_file(&written.config)),
        ("result.json".to_owned(), json_file(&written.result)),
        ("verifier/test-stdout.txt".to_owned(), File::text(trial.verifier_output.clone())),
    ];
    files.extend(agents);
    if let Some(reward) = written.reward {
        files.push(("verifier/reward.txt".to_owned(), File::text(format!("{reward}\n"))));
    }
    if let Some(ctrf) = &written.ctrf {
        files.push(("verifier/ctrf.json".to_owned(), json_file(ctrf)));
    }
    if let Some(exception) = &written.exception {
        files.push((
            "exception.txt".to_owned(),
            File::text(format!("{}: {}\n", exception.class, exception.message)),
        ));
    }
    let mut tree = FileTree::default();
    for (path, file) in files {
        // All of these are plain relative paths, so this does not fail.
        if let Ok(path) = RelPath::new(&path) {
            tree.insert(path, file);
        }
    }
    Ok(tree)
}

fn json_file(value: &Value) -> File {
    File::text(format!("{value:#}\n"))
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// Trial folders that an earlier export left in `path`. `None` if another program wrote the job
/// there.
fn former_trials(path: &Path, name: &str) -> Option<BTreeSet<String>> {
    let Ok(entries) = fs::read_dir(path) else { return Some(BTreeSet::new()) };
    let ours = documents::job_id(name);
    if let Some(text) = read_file(&path.join("result.json"), LARGEST).ok()? {
        let result: Value = serde_json::from_slice(&text).ok()?;
        (result.get("id").and_then(Value::as_str) == Some(&ours)).then_some(())?;
    }
    let mut trials = BTreeSet::new();
    for entry in entries.flatten() {
        let config = entry.path().join("config.json");
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || !config.exists() {
            continue;
        }
        let config: Value = serde_json::from_slice(&read_file(&config, LARGEST).ok()??).ok()?;
        if config.get("job_id").and_then(Value::as_str) != Some(&ours) {
            return None;
        }
        trials.insert(entry.file_name().into_string().ok()?);
    }
    Some(trials)
}

#[cfg(test)]
mod tests;
