//! Rollouts that were played elsewhere: Harbor's jobs and trials, single ATIF files, terminus logs.
//!
//! What lies there was written by strangers. Every file is read whole within a bound and never through a link, and nothing in it
//! is believed beyond its shape: a trial that cannot be taken over is refused with its reason, and the others are taken.
//!
//! What the source does not tell is not made up: without a reward there is no verdict on the agent, without checks there is one
//! check, `reward`.

mod atif;
mod document;
mod folders;
mod logs;
mod outcome;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::folder::WalkError;
use crate::model::{Check, Facts, HandoffShown, IdError, Shown, TrajectoryRecord};

/// A rollout that was taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The file that it was read from.
    pub path: PathBuf,
    /// Files in which it goes on, each after a summary.
    pub parts: Vec<PathBuf>,
    pub record: TrajectoryRecord,
    /// What was shown after each turn.
    pub shown: Vec<Vec<Shown>>,
    /// One for each handoff.
    pub handoffs: Vec<HandoffShown>,
    pub facts: Facts,
    /// The checks of its verdict with their classes, as `TrajectoryRecord::rewards` takes them.
    pub checks: Vec<Check>,
    /// As the source has it; the verdict says only whether it is 1.
    pub reward: Option<f64>,
    /// When it began, ISO 8601, if the source says so.
    pub started: Option<String>,
}

/// What was found below a path.
#[derive(Debug, Default)]
pub struct Imports {
    /// In order of paths.
    pub taken: Vec<Imported>,
    /// What looks like a rollout and cannot be taken over.
    pub refused: Vec<ImportError>,
}

/// Why something cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Read(#[from] WalkError),
    #[error("`{path}` is not what it should be: {source}")]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error("`{path}` cannot be taken over: {problem}")]
    Refused { path: PathBuf, problem: Problem },
    #[error(
        "`{0}` is neither an ATIF file nor a folder with trials\nhint: give a Harbor job folder, a trial folder, a `trajectory.json` or a folder of such files"
    )]
    Nothing(PathBuf),
}

/// What is wrong with a document that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("its format is `{0}`\nhint: ATIF-v1.0 to ATIF-v1.8 are known")]
    Version(String),
    #[error("its step {at} has the number {found}")]
    StepNumber { at: usize, found: u64 },
    #[error("its step {0} holds images or audio, and rollouts are text")]
    Media(usize),
    #[error(
        "the conversation was summarised before its step {0}, so that what the agent then saw is not in it\nhint: with `linear_history` Harbor writes a file for each part"
    )]
    Summarised(usize),
    #[error(
        "it goes on in `{0}`, which is not a file beside it that can be read\nhint: copy the whole folder of the trial"
    )]
    Continuation(String),
    #[error(
        "it is the part after a summary, or a later step, of another file\nhint: give the file that says where it goes on, `<id>.json`"
    )]
    Part,
    #[error("it is what was asked for a summary, and no rollout")]
    Aside,
    #[error("the agent says nothing in it")]
    NoTurns,
    #[error("nobody says what the task is before the agent begins")]
    NoPrompt,
    #[error("it has no `agent/trajectory.json` and no episodes")]
    NoTrajectory,
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("its task has a name or digest that cannot be used: {0}")]
    Id(#[from] IdError),
}

/// Every rollout at or below `path`: an ATIF file, a folder of them, a trial folder, a job folder or a folder of jobs.
pub fn read_imports(path: &Path) -> Result<Imports, ImportError> {
    folders::read(path)
}

/// Bytes of one file. Token ids of long rollouts come to tens of megabytes.
const MOST_BYTES: u64 = 256 << 20;

/// The text of the file at `path`, or `None` where nothing is there.
fn read_text(path: &Path) -> Result<Option<String>, ImportError> {
    let Some(bytes) = crate::folder::read_file(path, MOST_BYTES)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|_| refused(path, Problem::NotUtf8))
}

fn refused(path: &Path, problem: Problem) -> ImportError {
    ImportError::Refused { path: path.to_owned(), problem }
}

fn malformed(path: &Path) -> impl Fn(serde_json::Error) -> ImportError {
    move |source| ImportError::Malformed { path: path.to_owned(), source }
}
