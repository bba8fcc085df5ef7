//! Imports rollouts of other harnesses: Harbor's jobs and trials, single ATIF files, terminus logs.
//!
//! The files are untrusted input. Each is read whole, up to a limit, and never through a link. Only
//! its format is checked. A trial that cannot be imported is refused with a reason, and the others
//! are imported.
//!
//! Missing data stays missing. Without a reward there is no verdict on the agent. Without checks
//! there is one check, `reward`.

mod atif;
mod document;
mod folders;
mod logs;
mod outcome;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::folder::{WalkError, shown};
use crate::model::{HandoffShown, IdError, Shown, TaskMetadata, TrajectoryRecord};

/// An imported rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The file that it was read from.
    pub path: PathBuf,
    /// Files with its continuations, one for each part after a summary.
    pub parts: Vec<PathBuf>,
    pub record: TrajectoryRecord,
    /// Observations after each turn.
    pub shown: Vec<Vec<Shown>>,
    /// One for each handoff.
    pub handoffs: Vec<HandoffShown>,
    pub metadata: TaskMetadata,
    /// The source's reward. The verdict only says whether it is 1.
    pub reward: Option<f64>,
    /// Start time as ISO 8601, if the source has one.
    pub started: Option<String>,
    /// What was left out of the file, e.g. a number that none of our formats holds.
    pub notes: Vec<String>,
}

/// The rollouts found below a path.
#[derive(Debug, Default)]
pub struct Imports {
    /// Ordered by path.
    pub rollouts: Vec<Imported>,
    /// Rollouts that cannot be imported.
    pub refused: Vec<ImportError>,
    /// Files of other formats beside rollouts, e.g. an agent's session file.
    pub skipped: Vec<PathBuf>,
}

/// Why a rollout cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Read(#[from] WalkError),
    #[error("`{}` is not valid: {source}", shown(path))]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error("`{}` cannot be imported: {problem}", shown(path))]
    Refused { path: PathBuf, problem: Problem },
    #[error(
        "`{}` is neither an ATIF file nor a folder with trials\nhint: give a Harbor job folder, a trial folder, a `trajectory.json` or a folder of such files",
        shown(.0)
    )]
    Nothing(PathBuf),
}

/// What is wrong with a document that was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("its format is `{0}`\nhint: ATIF-v1.0 to ATIF-v1.8 can be imported")]
    Version(String),
    #[error("its step {at} has the number {found}")]
    StepNumber { at: usize, found: u64 },
    #[error("its step {0} holds images or audio, and rollouts are text")]
    Media(usize),
    #[error(
        "the conversation was summarised before its step {0}, so later observations of the agent are missing\nhint: with `linear_history` Harbor writes a file for each part"
    )]
    Summarised(usize),
    #[error(
        "it continues in `{0}`, which is not a readable file beside it\nhint: copy the whole folder of the trial"
    )]
    Continuation(String),
    #[error(
        "it is a continuation of another file, after a summary or in a later step\nhint: give the first file, `<id>.json`"
    )]
    Part,
    #[error("it is the conversation in which a model wrote a summary, not a rollout")]
    Aside,
    #[error("its end is missing\nhint: copy it again")]
    Torn,
    #[error("the agent wrote no message")]
    NoTurns,
    #[error("there is no prompt before the first message of the agent")]
    NoPrompt,
    #[error("it has no `agent/trajectory.json` and no episodes")]
    NoTrajectory,
    #[error("the name or digest of its task is not valid: {0}")]
    Id(#[from] IdError),
}

/// Reads every rollout at or below `path`: an ATIF file, a folder of them, a trial folder, a job
/// folder or a folder of jobs.
pub fn read_imports(path: &Path) -> Result<Imports, ImportError> {
    folders::read(path)
}

/// Largest size of one file, in bytes. Token ids of long rollouts take tens of megabytes.
const MOST_BYTES: u64 = 128 << 20;

/// The text of the file at `path`. `None` if there is no file.
fn read_text(path: &Path) -> Result<Option<String>, ImportError> {
    let Some(bytes) = crate::folder::read_file(path, MOST_BYTES)? else { return Ok(None) };
    // Logs hold what a terminal printed, e.g. half a character.
    let text = String::from_utf8(bytes);
    Ok(Some(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())))
}

fn refused(path: &Path, problem: Problem) -> ImportError {
    ImportError::Refused { path: path.to_owned(), problem }
}

fn malformed(path: &Path) -> impl Fn(serde_json::Error) -> ImportError {
    move |source| ImportError::Malformed { path: path.to_owned(), source }
}
