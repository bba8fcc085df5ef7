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

/// Who is at fault for a loss whose evidence does not say. Only a control shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assume {
    /// No control has run, so such a loss has no verdict.
    #[default]
    Nothing,
    /// A control was judged at the same time.
    SolverAtFault,
    /// The tests gave no results for the control either.
    TaskAtFault,
}

impl Assume {
    /// Who is at fault: as the evidence says, or else as assumed.
    pub fn blame(self, evidence: Option<Blame>) -> Option<Blame> {
        evidence.or(match self {
            Self::Nothing => None,
            Self::SolverAtFault => Some(Blame::Solver),
            Self::TaskAtFault => Some(Blame::Task),
        })
    }
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
