//! Who is responsible for a missing result.

use serde::{Deserialize, Serialize};

/// Who is responsible for a loss or an error. It decides what happens to the work: a verdict, a
/// rejection, a retry, or an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The actions in the sandbox are the cause. It counts as a failure of the solver, with a
    /// reward of 0.
    Solver,
    /// The task's own files are the cause, whatever the solver does. The task is rejected or
    /// reported.
    Task,
    /// The engine, the host, or another process on it is the cause. The work is retried in fresh
    /// containers. The result is never stored, and never becomes a reward.
    Infra,
    /// termsmith or its user requested something impossible. An error message is printed, and
    /// nothing is stored.
    Caller,
}

impl Blame {
    /// The id used in logs and reports, e.g. `infra`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Solver => "solver",
            Self::Task => "task",
            Self::Infra => "infra",
            Self::Caller => "caller",
        }
    }
}
