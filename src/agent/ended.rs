//! How an episode ended, and whether the loss of its sandbox ends it.

use super::error::AgentError;
use super::scaffold::{EpisodeContext, Machine, ScaffoldError};
use crate::model::{Act, Assume, Blame, End};
use crate::sandbox::SandboxError;

/// How an episode ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub end: End,
    /// Why the sandbox was lost, how a replayed turn differs from its record, or the end of the
    /// output of an agent with a loop of its own; otherwise empty.
    pub cause: String,
    /// Whether a replayed turn differs from its record by a time limit that it met.
    pub limit_differs: bool,
}

impl Ended {
    /// An end that needs no explanation.
    pub fn by(end: End) -> Self {
        Self::because(end, String::new())
    }

    /// An end, and why it came.
    pub fn because(end: End, cause: String) -> Self {
        Self { end, cause, limit_differs: false }
    }
}

/// Ends an episode after its sandbox was lost. Returns an error unless the solver is at fault.
pub(super) fn ended_by_loss(error: SandboxError, assume: Assume) -> Result<Ended, AgentError> {
    match assume.blame(error.blame()) {
        Some(Blame::Solver) => Ok(Ended::because(End::SandboxLost, error.to_string())),
        Some(Blame::Task | Blame::Infra | Blame::Caller) | None => Err(AgentError::Sandbox(error)),
    }
}

/// Ends an episode after a scaffold lost its sandbox. If the solver is not at fault, the error is
/// returned, and the episode runs again in a fresh container.
pub(super) fn lost(
    error: ScaffoldError,
    episode: &EpisodeContext<'_>,
) -> Result<(Ended, Vec<Act>), AgentError> {
    match error {
        ScaffoldError::Prompts(error) => Err(error.into()),
        ScaffoldError::Engine(error) => Err(error.into()),
        ScaffoldError::Drained => Err(AgentError::Drained),
        ScaffoldError::Sandbox { error, acts } => Ok((ended_by_loss(error, episode.assume)?, acts)),
    }
}

/// How an episode ends if its session, e.g. its shell, cannot be opened.
pub(super) fn not_started(error: ScaffoldError, episode: &EpisodeContext<'_>) -> Result<Ended, AgentError> {
    match (error, episode.machine) {
        (ScaffoldError::Sandbox { error, .. }, Machine::Fresh) => Err(AgentError::NotStarted(error)),
        (error, Machine::Fresh | Machine::Used) => lost(error, episode).map(|(ended, _)| ended),
    }
}
