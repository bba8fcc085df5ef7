//! Recognises work that was left open, because infrastructure failed or the command stopped early.
//! Nothing was stored for it, and the same command completes it.

use super::exit::Status;
use super::failure::fault_status;
use super::say;
use crate::pipeline::{Fault, PrepareError, Stop};
use crate::sandbox::EngineError;

/// Whether the infrastructure is to blame. Such work was retried, and is then left open.
pub(super) fn is_left_open(fault: &Fault) -> bool {
    fault.is_left_open()
}

/// Whether no engine answers at all.
pub(super) fn is_unreachable(fault: &Fault) -> bool {
    matches!(fault, Fault::Engine(EngineError::Unreachable { .. }))
}

/// Like [`is_left_open`], for rollouts.
pub(super) fn is_rollout_left_open(error: &PrepareError) -> bool {
    matches!(error, PrepareError::Fault(fault) if is_left_open(fault))
}

/// The line of a summary about open work.
pub(super) fn summary(count: usize) -> String {
    format!("{count} left open: infrastructure failed; run the same command to complete them")
}

/// The exit status of a command with several units or rollouts that ended with these statuses. Open
/// work decides, because the same command can complete it and will report the rest again.
pub(super) fn combined(statuses: impl Iterator<Item = Status>) -> Status {
    const PRECEDENCE: [Status; 8] = [
        Status::TryAgain,
        Status::NoEngine,
        Status::Io,
        Status::BadInput,
        Status::Usage,
        Status::Interrupted,
        Status::Failed,
        Status::Ok,
    ];
    let rank = |status: &Status| PRECEDENCE.iter().position(|known| known == status);
    statuses.min_by_key(rank).unwrap_or(Status::Ok)
}

/// The status of a command that stopped early. Its other results do not change it.
pub(super) fn stop_status(stop: Stop) -> Status {
    match stop {
        Stop::OutOfBudget => {
            say::note("the budget is spent; with a higher one the same command continues");
            Status::TryAgain
        }
        Stop::Interrupted => Status::Interrupted,
    }
}

/// The status of a unit without a result.
pub(super) fn unit_status(fault: &Fault) -> Status {
    if is_left_open(fault) { Status::TryAgain } else { fault_status(fault) }
}

/// The status of a rollout without a result.
pub(super) fn rollout_status(error: &PrepareError) -> Status {
    match error {
        PrepareError::Fault(fault) => unit_status(fault),
        // The rollout is kept without a model's labels. The same command asks for them again.
        PrepareError::Judge(_) => Status::TryAgain,
        PrepareError::Read(_) | PrepareError::Unsupported { .. } => Status::BadInput,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentError;
    use crate::authoring::StageError;
    use crate::llm::{BudgetExceeded, CallError, ModelRole};
    use crate::rollout::RolloutError;

    #[test]
    fn open_work_decides_the_exit_status() {
        let check = |statuses: &[Status], expect: Status| {
            assert_eq!(combined(statuses.iter().copied()), expect, "{statuses:?}");
        };
        check(&[], Status::Ok);
        check(&[Status::Ok, Status::Failed], Status::Failed);
        check(&[Status::BadInput, Status::TryAgain], Status::TryAgain);
        check(&[Status::BadInput, Status::Failed], Status::BadInput);
    }

    #[test]
    fn only_infrastructure_leaves_work_open() {
        let transport =
            EngineError::Transport { action: "start a container", message: "connection reset".to_owned() };
        let refused =
            EngineError::Refused { action: "make a container", status: 400, message: "no".to_owned() };
        let busy = EngineError::Refused { action: "make a container", status: 500, message: "no".to_owned() };
        let check = |error: EngineError, expect: Status| {
            let text = error.to_string();
            assert_eq!(unit_status(&Fault::Engine(error)), expect, "{text}");
        };
        check(transport, Status::TryAgain);
        check(busy, Status::TryAgain);
        check(EngineError::Guest { message: "reset".to_owned() }, Status::TryAgain);
        check(refused, Status::NoEngine);
        assert_eq!(unit_status(&Fault::Drained), Status::Interrupted);
        let earlier = "games-model-0000".to_owned();
        assert_eq!(unit_status(&Fault::AwaitsRequest { earlier }), Status::TryAgain);
    }

    /// A failed model call gives the same status whoever called: an author's stage, a unit's
    /// solver, a campaign's agent.
    #[test]
    fn failed_calls_have_their_own_status() {
        let check = |call: fn() -> CallError, expect: Status| {
            let solver = || Fault::from(RolloutError::Agent(AgentError::Call(call())));
            assert_eq!(unit_status(&Fault::from(StageError::Call(call()))), expect);
            assert_eq!(
                unit_status(&Fault::from(StageError::Rollout(AgentError::Call(call()).into()))),
                expect
            );
            assert_eq!(unit_status(&solver()), expect);
            assert_eq!(rollout_status(&solver().into()), expect);
        };
        let budget = || CallError::Budget(BudgetExceeded::Tokens { spent: 9, wanted: 2, cap: 10, usual: 2 });
        check(budget, Status::TryAgain);
        check(|| CallError::ShuttingDown, Status::Interrupted);
        check(|| CallError::NoRole { role: ModelRole::Solver }, Status::BadInput);
    }
}
