//! Why a command stopped before all of its work was done.

use crate::llm::CallError;

/// Why work stopped early. A spent budget also interrupts the other work, so `OutOfBudget` is the
/// greater one: the summary names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    Interrupted,
    /// A budget's cap was reached, so no further request was sent.
    OutOfBudget,
}

impl Stop {
    /// Why the whole command should stop after this error. `None` if only this call failed.
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
            | CallError::Unsupported { .. }
            | CallError::NoPrice { .. }
            | CallError::Cassette(_)
            | CallError::Store(_)
            | CallError::Record { .. }
            | CallError::Client(_) => None,
        }
    }
}

/// Whether every other call would fail in the same way, e.g. because the budget is spent.
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
