//! Trials without a verdict. The evidence says who is at fault; if it does not, a control trial
//! decides.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::foreign::Unsupported;
use crate::model::{Assume, Blame, Outcome, Verdict};
use crate::retry::{Again, Backoff, retry};
use crate::sandbox::{Engine, EngineError, SandboxError};

/// The cause of a verdict if the solver destroyed its sandbox. The details are only in `observed/`.
pub const SANDBOX_LOST: &str = "sandbox_lost";

/// Attempts in fresh containers if the infrastructure fails. After them the trial is left open.
const BACKOFF: Backoff = Backoff { attempts: 4, base: Duration::from_secs(1), cap: Duration::from_secs(4) };
/// Maximum wait for an engine that answered before. An engine with many containers takes tens of
/// seconds to restart.
const ENGINE_RETURNS: Duration = Duration::from_secs(60);
/// Time between two pings of the engine.
const PING_PAUSE: Duration = Duration::from_millis(500);

/// Why a trial has no verdict.
#[derive(Debug, thiserror::Error)]
pub enum NoVerdict {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{}: {error}", phase.describe())]
    Sandbox { phase: Phase, error: SandboxError },
    /// This host cannot make the trial's condition in the task's image.
    #[error("the trial under the condition `{condition}` could not run: {why}")]
    Unmet { condition: &'static str, why: String },
    /// The containers kept running, but the tests ended without readable results.
    #[error("the verifier gave no results: {cause}")]
    NoResults { cause: String },
    /// The tests ended after a message that their runner is missing, e.g. pytest.
    #[error("the tests could not run: {line}")]
    NoRunner { line: String },
    /// This engine cannot run the task. The task has no defect.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The tests, or programs that they started, met their time limits on a busy host.
    #[error("time limits were met on a busy host: {cause}")]
    OutOfTime { cause: String },
}

/// The phase of a trial in which its sandbox was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Files and settings were prepared, before the solver started.
    Prepare,
    /// The solver worked in the sandbox.
    Solve,
    /// The solver's programs and services ran in the sandbox.
    Programs,
    /// The tests ran in the sandbox.
    Verify,
}

impl Phase {
    fn describe(self) -> &'static str {
        match self {
            Self::Prepare => "while a container was prepared",
            Self::Solve => "while the solver worked",
            Self::Programs => "while the solver's programs ran",
            Self::Verify => "while the tests ran",
        }
    }

    /// The cause in a verdict.
    fn cause(self) -> &'static str {
        match self {
            Self::Prepare => "not_prepared",
            Self::Solve => SANDBOX_LOST,
            Self::Programs => "programs_lost",
            Self::Verify => "verifier_lost",
        }
    }
}

impl NoVerdict {
    /// Who is at fault. `None` if the evidence does not say.
    pub fn blame(&self) -> Option<Blame> {
        match self {
            Self::Engine(error) => Some(error.blame()),
            Self::Sandbox { phase: Phase::Solve | Phase::Programs, error } => error.blame(),
            // The container met a limit, and the solver did not act in it. Either the solver's work
            // or the task's tests are the cause.
            Self::Sandbox { phase: Phase::Prepare | Phase::Verify, error } => match error.blame() {
                Some(Blame::Infra) => Some(Blame::Infra),
                Some(Blame::Caller) => Some(Blame::Caller),
                Some(Blame::Task) => Some(Blame::Task),
                Some(Blame::Solver) | None => None,
            },
            Self::Unmet { .. } | Self::Unsupported(_) => Some(Blame::Caller),
            Self::NoResults { .. } | Self::NoRunner { .. } | Self::OutOfTime { .. } => None,
        }
    }

    /// The verdict, if the solver or the task is at fault.
    pub(super) fn verdict(self, assume: Assume) -> Result<Verdict, Self> {
        let outcome = match assume.blame(self.blame()) {
            Some(Blame::Solver) => Outcome::Fail,
            // A control without results does not explain time limits. The host may still be the
            // cause.
            Some(Blame::Task) if matches!(self, Self::OutOfTime { .. }) => return Err(self),
            Some(Blame::Task) => Outcome::VerifierError,
            Some(Blame::Infra | Blame::Caller) | None => return Err(self),
        };
        let cause = match &self {
            Self::Engine(error) => error.to_string(),
            Self::Sandbox { phase, .. } => phase.cause().to_owned(),
            Self::NoResults { cause } | Self::OutOfTime { cause } => cause.clone(),
            Self::Unmet { .. } | Self::NoRunner { .. } | Self::Unsupported(_) => self.to_string(),
        };
        Ok(Verdict::without_checks(outcome, cause))
    }
}

/// Decides about a `verdict` on tests that met time limits on a busy host. It stands only if a
/// control was judged at the same time, because then the solver's own work is slow.
pub(super) fn despite_load(verdict: Verdict, assume: Assume, cause: &str) -> Result<Verdict, NoVerdict> {
    match assume {
        Assume::SolverAtFault => Ok(verdict),
        Assume::TaskAtFault | Assume::Nothing => Err(NoVerdict::OutOfTime { cause: cause.to_owned() }),
    }
}

/// An error that names who is at fault.
pub trait Blamed {
    /// `None` if the evidence does not say.
    fn blame(&self) -> Option<Blame>;
}

impl Blamed for NoVerdict {
    fn blame(&self) -> Option<Blame> {
        self.blame()
    }
}

impl Blamed for EngineError {
    fn blame(&self) -> Option<Blame> {
        Some(self.blame())
    }
}

/// Result of a control trial. The control is the untouched task or its reference, judged at the
/// same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The control was judged, so the solver is at fault for the loss.
    Judged,
    /// The control gave no results either, though its containers kept running. The task is at
    /// fault.
    NoResults,
    /// The control was lost too. The infrastructure is at fault.
    Lost,
}

impl Control {
    /// What a control's verdict proves.
    pub(super) fn of(verdict: &Result<Verdict, NoVerdict>) -> Self {
        match verdict {
            Ok(verdict) if verdict.is_judged() => Self::Judged,
            Ok(_) | Err(NoVerdict::NoResults { .. } | NoVerdict::NoRunner { .. }) => Self::NoResults,
            // If a busy host gave the control no time, the control says nothing about the task.
            Err(
                NoVerdict::Engine(_)
                | NoVerdict::Sandbox { .. }
                | NoVerdict::Unmet { .. }
                | NoVerdict::Unsupported(_)
                | NoVerdict::OutOfTime { .. },
            ) => Self::Lost,
        }
    }
}

/// Context of retries.
#[derive(Clone, Copy, Debug)]
pub struct Retries<'a> {
    /// The engine. If it has answered before, a retry waits for it.
    pub engine: Option<&'a Engine>,
    /// After cancellation nothing is retried.
    pub drain: &'a CancellationToken,
    backoff: Backoff,
}

impl<'a> Retries<'a> {
    /// Retries on `engine` until `drain` is cancelled.
    pub fn new(engine: Option<&'a Engine>, drain: &'a CancellationToken) -> Self {
        Self { engine, drain, backoff: BACKOFF }
    }
}

/// Runs `attempt` until it has a result, or leaves it open.
///
/// Failures of the infrastructure are retried in fresh containers. After a loss without evidence, a
/// control is judged and `attempt` runs again. If it is lost again although the control was judged,
/// the solver is at fault. The argument of `attempt` says so, and `attempt` must then turn the loss
/// into a verdict. `control` gets the loss.
pub async fn settled<T, E: Blamed>(
    retries: Retries<'_>,
    mut attempt: impl AsyncFnMut(Assume) -> Result<T, E>,
    control: impl AsyncFn(&E) -> Control,
) -> Result<T, E> {
    let mut assume = Assume::Nothing;
    retry(
        &retries.backoff,
        "trial",
        async |_| {
            let error = match attempt(assume).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if error.blame().is_some() {
                return Err(error);
            }
            assume = match control(&error).await {
                Control::Judged => Assume::SolverAtFault,
                Control::NoResults => Assume::TaskAtFault,
                Control::Lost => return Err(error),
            };
            tracing::debug!(?assume, "retrying a loss without evidence beside a control");
            attempt(assume).await
        },
        |error| match error.blame() {
            Some(Blame::Infra) | None if !retries.drain.is_cancelled() => Again::Yes,
            Some(Blame::Solver | Blame::Task | Blame::Infra | Blame::Caller) | None => Again::Never,
        },
        async |pause| {
            tokio::select! {
                () = retries.drain.cancelled() => {}
                () = async {
                    tokio::time::sleep(pause).await;
                    engine_returns(retries.engine).await;
                } => {}
            }
            Ok(())
        },
    )
    .await
}

/// Waits until the engine answers, for at most [`ENGINE_RETURNS`].
async fn engine_returns(engine: Option<&Engine>) {
    let Some(engine) = engine else { return };
    let answers = async {
        while let Err(error) = engine.ping().await {
            tracing::debug!(%error, "the engine does not answer");
            tokio::time::sleep(PING_PAUSE).await;
        }
    };
    if tokio::time::timeout(ENGINE_RETURNS, answers).await.is_err() {
        tracing::warn!(seconds = ENGINE_RETURNS.as_secs(), "the engine did not answer again in time");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::sandbox::{Evidence, Loss};

    fn lost(phase: Phase, evidence: Evidence) -> NoVerdict {
        NoVerdict::Sandbox { phase, error: SandboxError::Lost(Loss { evidence, detail: String::new() }) }
    }

    fn no_results() -> NoVerdict {
        NoVerdict::NoResults { cause: "nothing".to_owned() }
    }

    fn no_runner() -> NoVerdict {
        NoVerdict::NoRunner { line: "/tests/test.sh: line 4: uvx: command not found".to_owned() }
    }

    fn out_of_time() -> NoVerdict {
        NoVerdict::OutOfTime { cause: "slow".to_owned() }
    }

    fn unreachable() -> NoVerdict {
        EngineError::Transport { action: "do it", message: "reset".to_owned() }.into()
    }

    /// `attempts` are the results in order; the last one repeats. `expect` is `None` for an attempt
    /// that is left open.
    fn check(
        attempts: &[fn() -> Option<NoVerdict>],
        control: Control,
        expect: Option<Outcome>,
        runs: usize,
        controls: usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (ran, controlled) = (RefCell::new(0), RefCell::new(0));
        let drain = CancellationToken::new();
        let ended = runtime.block_on(settled(
            Retries { backoff: Backoff { base: Duration::ZERO, ..BACKOFF }, ..Retries::new(None, &drain) },
            async |assume| {
                let number = (*ran.borrow()).min(attempts.len() - 1);
                *ran.borrow_mut() += 1;
                match attempts[number]() {
                    None => Ok(Verdict::without_checks(Outcome::Pass, "")),
                    Some(no_verdict) => no_verdict.verdict(assume),
                }
            },
            async |_| {
                *controlled.borrow_mut() += 1;
                control
            },
        ));
        assert_eq!(ended.ok().map(|verdict| verdict.outcome), expect);
        assert_eq!((ran.into_inner(), controlled.into_inner()), (runs, controls));
    }

    #[test]
    fn a_loss_becomes_a_verdict_only_by_evidence_or_experiment() {
        use Control::{Judged, Lost, NoResults};
        let oom: fn() -> _ = || Some(lost(Phase::Solve, Evidence::OutOfMemory));
        let killed: fn() -> _ = || Some(lost(Phase::Solve, Evidence::KilledFromOutside));
        let silent: fn() -> _ = || Some(lost(Phase::Solve, Evidence::Silent));
        let programs_killed: fn() -> _ = || Some(lost(Phase::Programs, Evidence::KilledFromOutside));
        let verifier_killed: fn() -> _ = || Some(lost(Phase::Verify, Evidence::KilledFromOutside));
        let verifier_oom: fn() -> _ = || Some(lost(Phase::Verify, Evidence::OutOfMemory));
        let nothing: fn() -> _ = || Some(no_results());
        let engine: fn() -> _ = || Some(unreachable());
        let slow: fn() -> _ = || Some(out_of_time());
        let fine: fn() -> _ = || None;
        check(&[fine], Lost, Some(Outcome::Pass), 1, 0);
        check(&[oom], Lost, Some(Outcome::Fail), 1, 0);
        // External failures are retried, and left open if they persist.
        check(&[killed, fine], Lost, Some(Outcome::Pass), 2, 0);
        check(&[killed], Judged, None, 4, 0);
        check(&[programs_killed, verifier_killed, engine, fine], Judged, Some(Outcome::Pass), 4, 0);
        check(&[engine], Judged, None, 4, 0);
        // Without evidence a control decides.
        check(&[silent], Judged, Some(Outcome::Fail), 2, 1);
        check(&[silent, fine], Judged, Some(Outcome::Pass), 2, 1);
        check(&[silent], Lost, None, 4, 4);
        check(&[silent, killed, silent], Judged, Some(Outcome::Fail), 3, 1);
        check(&[nothing], Judged, Some(Outcome::Fail), 2, 1);
        check(&[nothing], NoResults, Some(Outcome::VerifierError), 2, 1);
        // A task may ask to install the runner. Then the control runs the task's own solution.
        let missing: fn() -> _ = || Some(no_runner());
        check(&[missing], Judged, Some(Outcome::Fail), 2, 1);
        check(&[missing], NoResults, Some(Outcome::VerifierError), 2, 1);
        // The solver does not act in the verifier, so it is not blamed for the verifier's limits
        // alone.
        check(&[verifier_oom], Judged, Some(Outcome::Fail), 2, 1);
        check(&[verifier_oom], NoResults, Some(Outcome::VerifierError), 2, 1);
        // Work that is slower than a control's is the solver's fault. Without a control the host
        // may be the cause.
        check(&[slow], Judged, Some(Outcome::Fail), 2, 1);
        check(&[slow, fine], Judged, Some(Outcome::Pass), 2, 1);
        check(&[slow], Lost, None, 4, 4);
        check(&[slow, slow, slow, fine], Lost, Some(Outcome::Pass), 4, 3);
        check(&[slow], NoResults, None, 8, 4);
    }

    #[test]
    fn a_control_without_time_says_nothing_of_the_task() {
        let check = |verdict: Result<Outcome, NoVerdict>, expect: Control| {
            let verdict = verdict.map(|outcome| Verdict::without_checks(outcome, ""));
            assert_eq!(Control::of(&verdict), expect, "{verdict:?}");
        };
        check(Ok(Outcome::Pass), Control::Judged);
        check(Ok(Outcome::Fail), Control::Judged);
        check(Ok(Outcome::VerifierError), Control::NoResults);
        check(Err(no_results()), Control::NoResults);
        check(Err(out_of_time()), Control::Lost);
        check(Err(unreachable()), Control::Lost);
    }

    #[test]
    fn a_verdict_under_load_stands_only_beside_a_judged_control() {
        let check = |assume: Assume, stands: bool| {
            let verdict = Verdict::without_checks(Outcome::Fail, "verification timed out");
            let found = despite_load(verdict.clone(), assume, "slow");
            assert_eq!(found.as_ref().ok(), stands.then_some(&verdict), "{assume:?}: {found:?}");
        };
        check(Assume::Nothing, false);
        check(Assume::SolverAtFault, true);
        check(Assume::TaskAtFault, false);
    }
}
