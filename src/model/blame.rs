//! Whose fault it is that something has no result.

use serde::{Deserialize, Serialize};

/// Whose fault a loss or an error is. It decides what becomes of the work: a verdict, a rejection, another try, or an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// What was done in the sandbox caused it: a failure of the solver, with a reward of 0.
    Solver,
    /// The task's own files cause it, whoever solves: the task is rejected or reported.
    Task,
    /// The engine, the host, or somebody else on it: tried again in fresh containers, never stored, never a reward.
    Infra,
    /// termsmith or its user asked for something that cannot be: an error message, and nothing is stored.
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
