//! Runs an episode in a fresh container and judges the resulting state.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::agent::{AgentError, Ended};
use crate::model::{Assume, Blame, End, Outcome, Verdict};
use crate::sandbox::{Engine, EngineError, Image, Sandbox, SandboxError};
use crate::verify::{
    Act, Blamed, Control, Foreign, HashedTask, Images, Judging, Keep, MissingRunner, Mode, NoVerdict,
    SANDBOX_LOST, SlotPermit, TrialContext, TrialError, TrialRunner, VerifierLog, control_in_place,
    is_contended_beside, judge, judge_and_keep, ready_in_place, settled, solve_in_place, solver_container,
};

use super::record::RolloutError;

/// How a task is evaluated.
#[derive(Clone, Copy, Debug)]
pub enum Evaluation<'a> {
    /// A task of ours, judged in the clean room.
    CleanRoom(&'a HashedTask<'a>),
    /// A task of another maker, judged as it declares.
    InPlace { task: &'a Foreign, images: &'a Images },
}

/// Who holds the trial slot while a verdict is made. Agents wait for models most of the time; judging uses the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The caller holds a slot for the whole rollout.
    Held,
    /// A slot is acquired before judging.
    ForJudging,
}

/// A finished episode and its verdict.
#[derive(Debug)]
pub struct Evaluated {
    pub ended: Ended,
    pub verdict: Verdict,
    pub log: VerifierLog,
    /// The judged state, if it was to be kept.
    pub kept: Option<Image>,
    pub engine: &'static str,
}

impl Evaluation<'_> {
    /// Runs `solve` in a fresh container (of `state`, if given), and judges the result. `solve` receives the number of the task's step (0
    /// for a task of one step), the sandbox and the image's environment.
    ///
    /// If the infrastructure fails during an episode or its verification, both run again in fresh
    /// containers ([`settled`]). `solve` is then called again, with whom it must blame for a loss
    /// without evidence. `opens` opens in a fresh container what an episode opens first,
    /// e.g. a terminal: a control has to do the same.
    pub async fn run(
        &self,
        runner: &TrialRunner<'_>,
        slot: Slot,
        state: Option<&Image>,
        keep: Keep,
        mut solve: impl AsyncFnMut(usize, &Sandbox, &[(String, String)], Assume) -> Result<Ended, AgentError>,
        opens: impl AsyncFn(&Sandbox, &[(String, String)]) -> Result<(), AgentError>,
    ) -> Result<Evaluated, RolloutError> {
        let no_runner = AtomicBool::new(false);
        // A busy host explains one time limit. Otherwise a solver could keep its loss open for ever.
        let excused = AtomicBool::new(false);
        settled(
            runner.retries(),
            async |assume| {
                let solve = async |step: usize, sandbox: &Sandbox, env: &[(String, String)]| {
                    let ended = solve(step, sandbox, env, assume).await?;
                    let engine = runner.engine.get().await.map_err(TrialError::Engine)?;
                    let is_excuse = async {
                        is_contended_beside(engine, sandbox).await && !excused.swap(true, Ordering::Relaxed)
                    };
                    Ok::<_, RolloutError>(of_divergence(ended, assume, is_excuse).await?)
                };
                let tried = self.try_once(runner, slot, state, keep, assume, solve).await;
                no_runner.store(matches!(&tried, Err(error) if is_without_runner(error)), Ordering::Relaxed);
                tried
            },
            async || match self {
                Self::InPlace { task, images } if no_runner.load(Ordering::Relaxed) => {
                    let Ok(engine) = runner.engine.get().await else { return Control::Lost };
                    let missing_runner = MissingRunner::AsksControl;
                    let context = TrialContext { missing_runner, ..TrialContext::new(engine, images) };
                    // The control of no work is the task's own solution.
                    control_in_place(context, task, Act::Nothing).await
                }
                Self::InPlace { .. } | Self::CleanRoom(_) => self.control(runner, &opens).await,
            },
        )
        .await
    }

    /// A control trial of the untouched task, beside a container in which an episode could begin.
    async fn control(
        &self,
        runner: &TrialRunner<'_>,
        opens: &impl AsyncFn(&Sandbox, &[(String, String)]) -> Result<(), AgentError>,
    ) -> Control {
        let opened = async {
            let (sandbox, env) = self.ready(runner).await?;
            opens(&sandbox, &env).await?;
            sandbox.destroy().await;
            Ok::<_, RolloutError>(())
        };
        if let Err(error) = opened.await {
            tracing::debug!(%error, "no episode could begin in the control's container");
            return Control::Lost;
        }
        match self {
            Self::CleanRoom(hashed) => runner.control(hashed).await,
            Self::InPlace { task, images } => match runner.engine.get().await {
                Ok(engine) => control_in_place(TrialContext::new(engine, images), task, Act::Idle).await,
                Err(_) => Control::Lost,
            },
        }
    }

    async fn try_once(
        &self,
        runner: &TrialRunner<'_>,
        slot: Slot,
        state: Option<&Image>,
        keep: Keep,
        assume: Assume,
        mut solve: impl AsyncFnMut(usize, &Sandbox, &[(String, String)]) -> Result<Ended, RolloutError>,
    ) -> Result<Evaluated, RolloutError> {
        let engine = runner.engine.get().await.map_err(TrialError::Engine)?;
        if keep == Keep::State {
            self.check_kept(runner, engine).await?;
        }
        match self {
            Self::CleanRoom(hashed) => {
                let image = runner.image(hashed).await.map_err(TrialError::Engine)?;
                let config = engine.image_config(&image).await.map_err(TrialError::Engine)?;
                let spec = solver_container(state.unwrap_or(&image), hashed.task);
                let sandbox = match (engine.launch(&spec).await, state) {
                    (Ok(sandbox), _) => sandbox,
                    (Err(error), Some(_)) if may_be_of_files(&error) => {
                        let pristine = engine.launch(&solver_container(&image, hashed.task)).await;
                        pristine.map_err(TrialError::Engine)?.destroy().await;
                        return Evaluated::not_started(&error.to_string(), assume, engine.name());
                    }
                    (Err(error), _) => return Err(TrialError::Engine(error).into()),
                };
                // An error drops the sandbox, which removes it.
                let ended = solve(0, &sandbox, &config.env).await?;
                if let Some(verdict) = without_judging(&ended) {
                    sandbox.destroy().await;
                    return Ok(Evaluated::unjudged(ended, verdict, engine.name()));
                }
                slot.end_processes(&sandbox).await;
                let _slot = slot.take(runner).await;
                let images = Images::from(image);
                let context = TrialContext { assume, ..TrialContext::new(engine, &images) };
                let (judged, kept) = match keep {
                    Keep::Nothing => (judge(context, hashed.task, sandbox).await, None),
                    Keep::State => match judge_and_keep(context, hashed.task, sandbox).await {
                        Ok((judged, kept)) => (Ok(judged), kept),
                        Err(error) => (Err(error), None),
                    },
                };
                let judged = judged?;
                let verdict = at_the_end_of(&ended, judged.verdict);
                Ok(Evaluated { ended, verdict, log: judged.log, kept, engine: engine.name() })
            }
            Self::InPlace { task, images } => {
                let context = TrialContext { assume, ..TrialContext::new(engine, images) };
                let (mut held, mut begun) = (None, false);
                let solved = solve_in_place(context, task, state, keep, async |step, sandbox, env| {
                    begun = true;
                    // An episode that waits for a model holds no slot.
                    held = None;
                    let ended = solve(step, sandbox, env).await?;
                    if matches!(task.mode, Mode::Separate { .. }) {
                        slot.end_processes(sandbox).await;
                    }
                    // Judging begins when the slot is acquired.
                    held = slot.take(runner).await;
                    let judging =
                        if without_judging(&ended).is_some() { Judging::Skip } else { Judging::Judge };
                    Ok::<_, RolloutError>((ended, judging))
                });
                let solved = match (solved.await, state) {
                    (Ok(solved), _) => solved,
                    (Err(error), Some(_)) if !begun && may_be_of_state(&error) => {
                        ready_in_place(TrialContext::new(engine, images), task).await?.0.destroy().await;
                        return Evaluated::not_started(&error.to_string(), assume, engine.name());
                    }
                    (Err(error), _) => return Err(error),
                };
                drop(held);
                let ended = of_all(solved.solvers);
                let verdict = match (without_judging(&ended), solved.verdict) {
                    (Some(verdict), _) => verdict,
                    (None, Some(verdict)) => at_the_end_of(&ended, verdict),
                    (None, None) => {
                        let cause = "the task has no step that could be judged".to_owned();
                        return Err(NoVerdict::NoResults { cause }.into());
                    }
                };
                Ok(Evaluated { ended, verdict, log: solved.log, kept: solved.kept, engine: engine.name() })
            }
        }
    }
}

impl Evaluation<'_> {
    /// An error if no image can hold the state of the task's containers, for a further round or a fork: better now than after an episode.
    pub(super) async fn check_kept(
        &self,
        runner: &TrialRunner<'_>,
        engine: &Engine,
    ) -> Result<(), TrialError> {
        let image = match self {
            Self::CleanRoom(hashed) => runner.image(hashed).await?,
            Self::InPlace { images, .. } => images.solver.clone(),
        };
        Ok(engine.image_config(&image).await?.check_kept()?)
    }

    /// A fresh container for a solver, with its image's environment.
    pub(super) async fn ready(
        &self,
        runner: &TrialRunner<'_>,
    ) -> Result<(Sandbox, Vec<(String, String)>), TrialError> {
        let engine = runner.engine.get().await?;
        match self {
            Self::CleanRoom(hashed) => {
                let image = runner.image(hashed).await?;
                let config = engine.image_config(&image).await?;
                Ok((engine.launch(&solver_container(&image, hashed.task)).await?, config.env))
            }
            Self::InPlace { task, images } => {
                Ok(ready_in_place(TrialContext::new(engine, images), task).await?)
            }
        }
    }
}

impl Slot {
    /// Ends the solver's processes before the wait for a slot: jobs that change files meanwhile would make the verdict depend on how long it waits.
    /// In the shared mode of other makers' tasks the tests may need these processes, and they live on.
    async fn end_processes(self, sandbox: &Sandbox) {
        if self == Self::ForJudging
            && let Err(error) = sandbox.end_processes().await
        {
            // Judging ends them too, and finds out what is wrong.
            tracing::debug!(%error, "the solver's processes could not be ended before the wait for a slot");
        }
    }

    /// An interrupted run gives out no more slots, and judges its finished episodes without.
    async fn take(self, runner: &TrialRunner<'_>) -> Option<SlotPermit> {
        match self {
            Self::Held => None,
            Self::ForJudging => runner.slot().await.ok(),
        }
    }
}

impl Evaluated {
    /// The result of an episode that cannot begin in the state that the solver left, although a pristine container begins at the same time. Until
    /// that has been confirmed beside a control, it is a loss without evidence.
    fn not_started(why: &str, assume: Assume, engine: &'static str) -> Result<Self, RolloutError> {
        let message = format!("the state that the solver left cannot be started: {why}");
        match assume {
            Assume::SolverAtFault => {
                let verdict = Verdict::without_checks(Outcome::Fail, SANDBOX_LOST);
                Ok(Self::unjudged(Ended::because(End::SandboxLost, message), verdict, engine))
            }
            Assume::TaskAtFault | Assume::Nothing => {
                Err(AgentError::Sandbox(SandboxError::Failed { message }).into())
            }
        }
    }

    fn unjudged(ended: Ended, verdict: Verdict, engine: &'static str) -> Self {
        let log = VerifierLog { output: ended.cause.clone(), ..VerifierLog::default() };
        Self { ended, verdict, log, kept: None, engine }
    }
}

/// Whether the tests of an episode could not run.
fn is_without_runner(error: &RolloutError) -> bool {
    matches!(error, RolloutError::Trial(TrialError::NoVerdict(NoVerdict::NoRunner { .. })))
}

/// Whether the files in an image can be the reason why no container of it starts: a file in place of a folder that the engine needs, for example.
/// An engine in trouble can give the same answers.
fn may_be_of_files(error: &EngineError) -> bool {
    matches!(error, EngineError::NotStarted { .. } | EngineError::Guest { .. } | EngineError::Refused { .. })
}

/// The same of an error before an episode began in such an image. The user whom its task declares can be missing too.
fn may_be_of_state(error: &RolloutError) -> bool {
    match error {
        RolloutError::Trial(TrialError::Engine(error)) => {
            may_be_of_files(error) || matches!(error, EngineError::NoSuchUser { .. })
        }
        RolloutError::Trial(TrialError::NoVerdict(lost)) => lost.blame().is_none(),
        RolloutError::Trial(
            TrialError::MissingTool { .. }
            | TrialError::Unmet { .. }
            | TrialError::Unsupported(_)
            | TrialError::Store(_)
            | TrialError::Drained,
        )
        | RolloutError::Agent(_)
        | RolloutError::Prompts(_)
        | RolloutError::UnsupportedConfiguration { .. } => false,
    }
}

/// Decides about an episode whose recorded turns have other effects now.
///
/// If they were executed again because of a loss for which the solver is to blame, that loss
/// decides. Otherwise a command with another effect each time, e.g. `date`, would hide the loss.
/// One difference decides nothing: a command met a time limit only once, and the host is busy.
async fn of_divergence(
    ended: Ended,
    assume: Assume,
    contended: impl Future<Output = bool>,
) -> Result<Ended, NoVerdict> {
    match (ended.end, assume) {
        (End::ResumeDiverged, Assume::SolverAtFault) if ended.limit_differs && contended.await => {
            Err(NoVerdict::OutOfTime { cause: ended.cause })
        }
        (End::ResumeDiverged, Assume::SolverAtFault) => Ok(Ended { end: End::SandboxLost, ..ended }),
        _ => Ok(ended),
    }
}

/// The end of a task of several steps: the end of the last step reached, except that a timed-out step decides for the task.
fn of_all(mut steps: Vec<Ended>) -> Ended {
    let last = steps.len().saturating_sub(1);
    let telling = steps.iter().position(|ended| ended.end == End::TimedOut).unwrap_or(last);
    if telling < steps.len() {
        return steps.swap_remove(telling);
    }
    Ended::by(End::Submitted)
}

/// The verdict of an episode that leaves no state to judge, or none of the agent's making.
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

/// A verdict, adjusted by how the episode ended.
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
        // `without_judging` decides two of them; the others say nothing about a verdict.
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
            Self::Agent(AgentError::GaveUp { .. } | AgentError::NotBegun(_)) => Some(Blame::Infra),
            Self::Agent(
                AgentError::Call(_)
                | AgentError::NeverAsked { .. }
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
        let check = |end: End, limit_differs: bool, assume: Assume, contended: bool, expect: Option<End>| {
            let ended = Ended { limit_differs, ..Ended::because(end, "turn 2".to_owned()) };
            let found = of_divergence(ended, assume, std::future::ready(contended));
            let found = found.now_or_never().unwrap().ok().map(|ended| ended.end);
            assert_eq!(found, expect, "{end:?} {limit_differs} {assume:?} {contended}");
        };
        let solver = Assume::SolverAtFault;
        check(End::ResumeDiverged, true, solver, false, Some(End::SandboxLost));
        check(End::ResumeDiverged, true, solver, true, None);
        // E.g. `date`: no load explains it.
        check(End::ResumeDiverged, false, solver, true, Some(End::SandboxLost));
        check(End::ResumeDiverged, true, Assume::Nothing, true, Some(End::ResumeDiverged));
        check(End::ResumeDiverged, true, Assume::TaskAtFault, false, Some(End::ResumeDiverged));
        check(End::Submitted, false, solver, true, Some(End::Submitted));
        check(End::SandboxLost, false, solver, true, Some(End::SandboxLost));
    }
}
