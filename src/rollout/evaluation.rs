//! Runs an episode in a fresh container and judges the resulting state.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::agent::{AgentError, Ended};
use crate::model::{Assume, Blame, End, Judging, Outcome, Verdict};
use crate::sandbox::{EngineError, Image, LaunchSpec, LayerId, Sandbox, SandboxError};
use crate::verify::{
    Act, Blamed, Condition, Control, Judged, JudgedSteps, MissingRunner, NoVerdict, Retain, SANDBOX_LOST,
    SlotPermit, Target, TrialContext, TrialError, TrialRunner, VerifierLog, is_host_busy_beside, prepared,
    ready, settled,
};

use super::record::RolloutError;

/// Evaluates solvers at one task.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'a> {
    pub runner: &'a TrialRunner<'a>,
    pub target: &'a dyn Target,
    pub slot: Slot,
    /// What the solver's container sees of an installed agent.
    pub layer: Option<&'a LayerId>,
}

/// Who holds the trial slot while an episode is judged. Judging uses the processor, but agents wait
/// for models most of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The caller holds a slot for the whole rollout.
    Held,
    /// A slot is acquired before judging.
    ForJudging,
}

/// A finished episode with its verdict.
#[derive(Debug)]
pub struct Evaluated {
    pub ended: Ended,
    pub verdict: Verdict,
    pub log: VerifierLog,
    /// The judged state, if it was to be retained as an image.
    pub state_image: Option<Image>,
    pub engine: &'static str,
}

/// Where a round begins, and which part of its end is retained.
#[derive(Clone, Copy, Debug)]
pub struct RoundPlan<'a> {
    /// The state that another round or a fork left. `None` for the task's own image.
    pub state: Option<&'a Image>,
    pub retain: Retain,
}

impl RoundPlan<'_> {
    /// The only round: it begins in the task's image, and nothing continues from its end.
    pub const ONLY: Self = Self { state: None, retain: Retain::Nothing };
}

impl Evaluation<'_> {
    /// Runs `solve` in a fresh container and judges the result. `solve` receives the number of the
    /// task's step (0 for a task of one step), the sandbox, the image's environment, and whom to
    /// blame for a loss without evidence.
    ///
    /// If the infrastructure fails during an episode or its verification, both run again in fresh
    /// containers ([`settled`]). `opens` opens in a fresh container what an episode opens first,
    /// e.g. a terminal. The control does the same, so that it fails too if that is the cause.
    pub async fn run(
        &self,
        plan: RoundPlan<'_>,
        mut solve: impl AsyncFnMut(usize, &Sandbox, &[(String, String)], Assume) -> Result<Ended, AgentError>,
        opens: impl AsyncFn(&Sandbox, &[(String, String)]) -> Result<(), AgentError>,
    ) -> Result<Evaluated, RolloutError> {
        let Self { runner, target, .. } = *self;
        // A busy host explains only one time limit. Otherwise a solver could keep its loss open for
        // ever.
        let excused = AtomicBool::new(false);
        settled(
            runner.retries(),
            async |assume| {
                let solve = async |step: usize, sandbox: &Sandbox, env: &[(String, String)]| {
                    let ended = solve(step, sandbox, env, assume).await?;
                    let engine = runner.engine.get().await.map_err(TrialError::Engine)?;
                    let is_excuse = async {
                        is_host_busy_beside(engine, sandbox).await && !excused.swap(true, Ordering::Relaxed)
                    };
                    Ok::<_, RolloutError>(of_divergence(ended, assume, is_excuse).await?)
                };
                self.try_once(plan, assume, solve).await
            },
            async |error| {
                if is_without_runner(error) {
                    // The control of a trial without work is the task's own solution.
                    return runner.control(target, Act::Nothing).await;
                }
                if let Err(error) = self.open_once(&opens).await {
                    tracing::debug!(%error, "no episode could begin in the control's container");
                    return Control::Lost;
                }
                runner.control(target, Act::Idle).await
            },
        )
        .await
    }

    /// Opens in a fresh container what an episode opens first, e.g. a terminal.
    async fn open_once(
        &self,
        opens: &impl AsyncFn(&Sandbox, &[(String, String)]) -> Result<(), AgentError>,
    ) -> Result<(), RolloutError> {
        let (sandbox, env) = fresh(self.runner, self.target, self.layer).await?;
        opens(&sandbox, &env).await?;
        sandbox.destroy().await;
        Ok(())
    }

    async fn try_once(
        &self,
        plan: RoundPlan<'_>,
        assume: Assume,
        mut solve: impl AsyncFnMut(usize, &Sandbox, &[(String, String)]) -> Result<Ended, RolloutError>,
    ) -> Result<Evaluated, RolloutError> {
        let Self { runner, target, slot, layer } = *self;
        let engine = runner.engine.get().await.map_err(TrialError::Engine)?;
        let images = target.images(runner, Condition::Ordinary).await.map_err(TrialError::Engine)?;
        let context = TrialContext::new(engine, &images, target, Condition::Ordinary).await;
        let missing_runner = MissingRunner::of(target, Act::Nothing, assume);
        let context = TrialContext { assume, missing_runner, layer, ..context.map_err(TrialError::Engine)? };
        if plan.retain == Retain::StateImage {
            context.config.check_savable().map_err(TrialError::Engine)?;
        }
        let mut sandbox = match launched(&context, target, plan.state).await {
            Ok(sandbox) => sandbox,
            Err(error) if plan.state.is_some() && may_be_of_state(&error) => {
                ready(&context, target).await?.destroy().await;
                return Evaluated::not_started(&error.to_string(), assume, engine.name());
            }
            Err(error) => return Err(error.into()),
        };
        let (mut ends, mut judged) = (Vec::new(), JudgedSteps::default());
        for step in 0..target.steps().len() {
            if step > 0
                && let Err(lost) = prepared(&context, target, step, &sandbox).await
            {
                // The solver acted in the container, so its changes can be the reason.
                judged.add(Judged::lost(lost));
                break;
            }
            // An error drops the sandbox, which removes it.
            let ended = solve(step, &sandbox, &context.config.env).await?;
            if let Some(verdict) = without_judging(&ended) {
                sandbox.destroy().await;
                return Ok(Evaluated::unjudged(ended, verdict, judged.log, engine.name()));
            }
            ends.push(ended);
            if target.judging() != Judging::Shared {
                slot.end_processes(&sandbox).await;
            }
            // The slot is taken only now. An episode that waits for a model holds none.
            let _slot = slot.take(runner).await;
            match judged.add(target.judge(&context, step, sandbox, plan.retain).await) {
                Some(next) => sandbox = next,
                None => break,
            }
        }
        let verdict = judged.verdict(target, assume)?;
        let ended = of_all(ends);
        let verdict = at_the_end_of(&ended, verdict);
        let JudgedSteps { log, state_image, .. } = judged;
        Ok(Evaluated { ended, verdict, log, state_image, engine: engine.name() })
    }
}

/// A solver's container in which its first step can begin. If `state` is given, the preparation was
/// done there already.
async fn launched(
    context: &TrialContext<'_>,
    target: &dyn Target,
    state: Option<&Image>,
) -> Result<Sandbox, NoVerdict> {
    let Some(image) = state else { return ready(context, target).await };
    let sandbox = context.engine.launch(&LaunchSpec { image, ..target.solver(context) }).await?;
    target.begin(0, &sandbox).await?;
    Ok(sandbox)
}

/// Fails if no image can hold the state of the task's containers. A further round or a fork needs
/// one, so this is checked before an episode.
pub(super) async fn check_savable(runner: &TrialRunner<'_>, target: &dyn Target) -> Result<(), TrialError> {
    let images = target.images(runner, Condition::Ordinary).await?;
    Ok(runner.engine.get().await?.image_config(&images.solver).await?.check_savable()?)
}

/// A fresh container for a solver, with its image's environment.
pub(super) async fn fresh(
    runner: &TrialRunner<'_>,
    target: &dyn Target,
    layer: Option<&LayerId>,
) -> Result<(Sandbox, Vec<(String, String)>), TrialError> {
    let engine = runner.engine.get().await?;
    let images = target.images(runner, Condition::Ordinary).await?;
    let context = TrialContext::new(engine, &images, target, Condition::Ordinary).await?;
    let context = TrialContext { layer, ..context };
    let sandbox = ready(&context, target).await?;
    Ok((sandbox, context.config.env))
}

impl Slot {
    /// Ends the solver's processes before the wait for a slot. Otherwise they could change files
    /// while it waits, and the verdict would depend on the length of the wait. In the shared mode
    /// of other makers' tasks they live on, because the tests may need them.
    async fn end_processes(self, sandbox: &Sandbox) {
        if self == Self::ForJudging
            && let Err(error) = sandbox.end_processes().await
        {
            // Judging ends them too, and reports the cause.
            tracing::debug!(%error, "the solver's processes could not be ended before the wait for a slot");
        }
    }

    /// Waits for a slot, if the caller holds none. `None` also in an interrupted run: it gives out
    /// no slots, and judges its finished episodes without them.
    async fn take(self, runner: &TrialRunner<'_>) -> Option<SlotPermit> {
        match self {
            Self::Held => None,
            Self::ForJudging => runner.slot().await.ok(),
        }
    }
}

impl Evaluated {
    /// The result of an episode that cannot begin in the state that the solver left, although a
    /// pristine container begins at the same time. It is a loss without evidence, until a control
    /// confirms that the solver is at fault.
    fn not_started(why: &str, assume: Assume, engine: &'static str) -> Result<Self, RolloutError> {
        let message = format!("the state that the solver left cannot be started: {why}");
        match assume {
            Assume::SolverAtFault => {
                let verdict = Verdict::without_checks(Outcome::Fail, SANDBOX_LOST);
                let ended = Ended::because(End::SandboxLost, message);
                Ok(Self::unjudged(ended, verdict, VerifierLog::default(), engine))
            }
            Assume::TaskAtFault | Assume::Nothing => {
                Err(AgentError::Sandbox(SandboxError::Failed { message }).into())
            }
        }
    }

    /// `log` is the log of the earlier steps.
    fn unjudged(ended: Ended, verdict: Verdict, mut log: VerifierLog, engine: &'static str) -> Self {
        log.output.push_str(&ended.cause);
        Self { ended, verdict, log, state_image: None, engine }
    }
}

/// Whether the tests of an episode could not run.
fn is_without_runner(error: &RolloutError) -> bool {
    matches!(error, RolloutError::Trial(TrialError::NoVerdict(NoVerdict::NoRunner { .. })))
}

/// Whether files in an image can be the reason why none of its containers starts, e.g. a file in
/// place of a folder that the engine needs. An engine in trouble can give the same errors.
fn may_be_of_files(error: &EngineError) -> bool {
    matches!(error, EngineError::NotStarted { .. } | EngineError::Guest { .. } | EngineError::Refused { .. })
}

/// Whether the solver's state can be the reason why an episode does not begin in it: its files, or
/// a missing user.
fn may_be_of_state(error: &NoVerdict) -> bool {
    match error {
        NoVerdict::Engine(error) => may_be_of_files(error) || matches!(error, EngineError::NoSuchUser { .. }),
        NoVerdict::Sandbox { .. }
        | NoVerdict::NoResults { .. }
        | NoVerdict::NoRunner { .. }
        | NoVerdict::OutOfTime { .. } => error.blame().is_none(),
        NoVerdict::Unmet { .. } | NoVerdict::Unsupported(_) => false,
    }
}

/// Decides about an episode whose recorded turns had other effects when they were executed again.
///
/// If they were executed again because of a loss, and the solver is to blame for it, that loss
/// decides. Otherwise a solver could hide the loss behind a command with another effect each time,
/// e.g. `date`. One difference decides nothing: only one of the two runs met a time limit, and the
/// host is busy.
async fn of_divergence(
    ended: Ended,
    assume: Assume,
    host_busy: impl Future<Output = bool>,
) -> Result<Ended, NoVerdict> {
    match (ended.end, assume) {
        (End::ResumeDiverged, Assume::SolverAtFault) if ended.limit_differs && host_busy.await => {
            Err(NoVerdict::OutOfTime { cause: ended.cause })
        }
        (End::ResumeDiverged, Assume::SolverAtFault) => Ok(Ended { end: End::SandboxLost, ..ended }),
        _ => Ok(ended),
    }
}

/// The end of a task of several judged steps. A step that timed out decides. Otherwise the last
/// step that was reached does.
fn of_all(mut steps: Vec<Ended>) -> Ended {
    let last = steps.len().saturating_sub(1);
    let telling = steps.iter().position(|ended| ended.end == End::TimedOut).unwrap_or(last);
    if telling < steps.len() {
        return steps.swap_remove(telling);
    }
    Ended::by(End::Submitted)
}

/// The verdict of an episode without a judgeable state: it was lost, or its replay differed.
fn without_judging(ended: &Ended) -> Option<Verdict> {
    match ended.end {
        End::SandboxLost => Some(Verdict::without_checks(Outcome::Fail, SANDBOX_LOST)),
        End::ResumeDiverged => Some(Verdict::without_checks(Outcome::Infra, ended.end.as_str())),
        End::Submitted
        | End::StepLimit
        | End::TimedOut
        | End::ShellEnded
        | End::TokenLimit
        | End::DollarLimit
        | End::ContextFull
        | End::ContentFiltered
        | End::RequestRefused
        | End::Imported => None,
    }
}

/// The verdict, adjusted to the end of the episode.
fn at_the_end_of(ended: &Ended, mut verdict: Verdict) -> Verdict {
    match ended.end {
        End::TimedOut => match verdict.outcome {
            Outcome::Pass | Outcome::Fail => {
                verdict.outcome = Outcome::Timeout;
                "the solver ran out of time".clone_into(&mut verdict.cause);
            }
            Outcome::Timeout | Outcome::Infra | Outcome::VerifierError => {}
        },
        End::StepLimit
        | End::TokenLimit
        | End::DollarLimit
        | End::ContextFull
        | End::ContentFiltered
        | End::RequestRefused
        | End::ShellEnded => {
            if verdict.outcome == Outcome::Fail && verdict.cause.is_empty() {
                ended.end.as_str().clone_into(&mut verdict.cause);
            }
        }
        // `without_judging` decides two of these. The others do not change a verdict.
        End::Submitted | End::SandboxLost | End::ResumeDiverged | End::Imported => {}
    }
    verdict
}

impl Blamed for RolloutError {
    fn blame(&self) -> Option<Blame> {
        match self {
            Self::Trial(error) => error.blame(),
            Self::Agent(AgentError::Engine(error)) => Some(error.blame()),
            Self::Agent(AgentError::Sandbox(error)) => error.blame(),
            Self::Agent(
                AgentError::GaveUp { .. } | AgentError::NotStarted(_) | AgentError::TooSlow { .. },
            ) => Some(Blame::Infra),
            Self::Agent(
                AgentError::Call(_)
                | AgentError::NeverAsked { .. }
                | AgentError::Foreign(_)
                | AgentError::NotInstalled { .. }
                | AgentError::CannotRun { .. }
                | AgentError::Start(_)
                | AgentError::Refused { .. }
                | AgentError::Drained
                | AgentError::Prompts(_)
                | AgentError::Script(_)
                | AgentError::Store(_),
            )
            | Self::Prompts(_)
            | Self::UnsupportedConfiguration { .. } => Some(Blame::Caller),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn turns_with_other_effects_are_the_solvers_fault_unless_a_busy_host_explains_them() {
        let check = |end: End, limit_differs: bool, assume: Assume, host_busy: bool, expect: Option<End>| {
            let ended = Ended { limit_differs, ..Ended::because(end, "turn 2".to_owned()) };
            let found = of_divergence(ended, assume, std::future::ready(host_busy));
            let found = found.now_or_never().unwrap().ok().map(|ended| ended.end);
            assert_eq!(found, expect, "{end:?} {limit_differs} {assume:?} {host_busy}");
        };
        let solver = Assume::SolverAtFault;
        check(End::ResumeDiverged, true, solver, false, Some(End::SandboxLost));
        check(End::ResumeDiverged, true, solver, true, None);
        // E.g. `date`. No load explains its difference.
        check(End::ResumeDiverged, false, solver, true, Some(End::SandboxLost));
        check(End::ResumeDiverged, true, Assume::Nothing, true, Some(End::ResumeDiverged));
        check(End::ResumeDiverged, true, Assume::TaskAtFault, false, Some(End::ResumeDiverged));
        check(End::Submitted, false, solver, true, Some(End::Submitted));
        check(End::SandboxLost, false, solver, true, Some(End::SandboxLost));
    }
}
