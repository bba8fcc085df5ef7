//! Why a command stopped before all of its work was done.

use crate::llm::CallError;

/// Why work stopped early. If both happened, the budget counts: it is the cause, since it stops further work as an interruption does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    Interrupted,
    /// A cap was reached, so no further request was sent.
    OutOfBudget,
}

impl Stop {
    /// The stop that a failed model call belongs to, or `None` if the call itself failed.
    pub(super) fn of(error: &CallError) -> Option<Self> {
        match error {
            CallError::Budget(_) => Some(Self::OutOfBudget),
            CallError::Cancelled(_) | CallError::ShuttingDown => Some(Self::Interrupted),
            CallError::Auth { .. }
            | CallError::Key { .. }
            | CallError::Refused { .. }
            | CallError::ContextLength { .. }
            | CallError::ContentFilter { .. }
            | CallError::Exhausted { .. }
            | CallError::NoRole { .. }
            | CallError::NoPrice { .. }
            | CallError::Cassette(_)
            | CallError::Store(_)
            | CallError::Record { .. }
            | CallError::Client(_) => None,
        }
    }
}

/// Whether every other call would fail in the same way.
pub(super) fn ends_everything(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Budget(_)
            | CallError::Auth { .. }
            | CallError::Key { .. }
            | CallError::NoRole { .. }
            | CallError::NoPrice { .. }
            | CallError::Client(_)
    )
}
