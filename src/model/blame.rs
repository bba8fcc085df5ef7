//! Responsibility for a missing result.

use serde::{Deserialize, Serialize};

/// Who is responsible for a loss or an error. It decides what happens to the work: a verdict, a
/// rejection, a retry, or an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Caused by what was done in the sandbox: a failure of the solver, with a reward of 0.
    Solver,
    /// Caused by the task's own files, independent of the solver: the task is rejected or reported.
    Task,
    /// Caused by the engine, the host, or another process on it: retried in fresh containers, never
    /// stored, never a reward.
    Infra,
    /// termsmith or its user requested something impossible: an error message, and nothing is
    /// stored.
    Caller,
}

impl Blame {
    /// The id used in logs and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Solver => "solver",
            Self::Task => "task",
            Self::Infra => "infra",
            Self::Caller => "caller",
        }
    }
}
