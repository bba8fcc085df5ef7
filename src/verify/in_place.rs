//! Trials of foreign tasks, judged as they declare: by Harbor's order of events (`trial/trial.py`, `verifier/verifier.py` of harbor 0.25),
//! in the solver's container or in a container with its artifacts.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::act::{Act, ActContext, Acted, perform};
use super::condition::Condition;
use super::foreign::{Foreign, ForeignStep};
use super::missing_runner::{MissingRunner, missing_runner};
use super::no_verdict::{Control, NoVerdict, Phase, Retries, settled};
use super::outline::{Changed, changed};
use super::reward::paid;
use super::room::VerifierLog;
use super::step_verdict::{combine, suffices};
use super::trial::{Images, Trial, TrialContext, TrialLog};
use crate::model::{Assume, FileTree, Outcome, ShellOutcome, Verdict};
use crate::sandbox::{
    Engine, EngineError, ExecLimit, Image, ImageConfig, LaunchSpec, Network, Sandbox, SandboxError,
};
use crate::syntax::shell_word;

/// Runs a trial in fresh containers until it has a verdict ([`settled`]), or leaves it open. Its control is a trial of the untouched task;
/// the control of the untouched task is its solution, if there is one.
pub async fn run_in_place(
    engine: &Engine,
    images: &Images,
    task: &Foreign,
    act: Act<'_>,
    condition: Condition<'_>,
    drain: &CancellationToken,
) -> Result<Trial, NoVerdict> {
    let context = TrialContext::new(engine, images);
    settled(
        Retries::new(Some(engine), drain),
        async |assume| {
            let missing_runner = on_missing_runner(task, act, assume);
            try_in_place(TrialContext { condition, assume, missing_runner, ..context }, task, act).await
        },
        async || {
            let missing_runner = on_missing_runner(task, act, Assume::Nothing);
            control_in_place(TrialContext { missing_runner, ..context }, task, act).await
        },
    )
    .await
}

/// What a trial of `act` does where a program that runs the tests is missing. Without a solution
/// nothing tells whether the task asks to install it; edits of a solution and attacks are judged
/// beside a solution that passes.
fn on_missing_runner(task: &Foreign, act: Act<'_>, assume: Assume) -> MissingRunner {
    match act {
        Act::Nothing | Act::Solve(_) if task.solution().is_some() && assume != Assume::SolverAtFault => {
            MissingRunner::AsksControl
        }
        Act::Nothing
        | Act::Idle
        | Act::Solve(_)
        | Act::Edit { .. }
        | Act::Vary { .. }
        | Act::Attack { .. } => MissingRunner::Ignored,
    }
}

/// A control for a trial of `act`.
pub async fn control_in_place(context: TrialContext<'_>, task: &Foreign, act: Act<'_>) -> Control {
    let control = match (act, task.solution()) {
        (Act::Nothing, Some(solution)) => Act::Solve(solution),
        (
            Act::Nothing
            | Act::Idle
            | Act::Solve(_)
            | Act::Edit { .. }
            | Act::Vary { .. }
            | Act::Attack { .. },
            _,
        ) => Act::Idle,
    };
    let trial = try_in_place(context, task, control).await;
    Control::of(&trial.map(|trial| trial.verdict))
}

/// Runs a trial once.
async fn try_in_place(context: TrialContext<'_>, task: &Foreign, act: Act<'_>) -> Result<Trial, NoVerdict> {
    let started = Instant::now();
    let TrialContext { engine, images, condition, assume, missing_runner } = context;
    let config = engine.image_config(&images.solver).await?;
    let limits = condition.limits(&task.limits);
    let workdir = task.workdir.clone().unwrap_or_else(|| config.workdir.clone());
    let network = if condition == Condition::Offline { Network::None } else { task.network.clone() };
    let spec = LaunchSpec { limits: &limits, network, ..solver(images, task, &workdir) };
    for image in [Some(&images.solver), images.verifier.as_ref()].into_iter().flatten() {
        condition.require(engine, &LaunchSpec { image, ..spec.clone() }).await?;
    }
    let mut sandbox = engine.launch(&spec).await?;
    let mut log = TrialLog { engine: engine.name().to_owned(), ..TrialLog::default() };
    let steps = StepContext { context, task, config: &config, spec: &spec };
    let mut verdicts = Vec::new();
    let mut exit = None;
    let mut ended = Vec::new();
    for (number, step) in task.steps.iter().enumerate() {
        let acted = match steps.act(step, number, act, &sandbox).await {
            Ok(acted) => acted,
            Err(lost) => return Trial::lost(lost, assume, log, started),
        };
        exit = acted.exit;
        log.exit = exit;
        ended.extend(acted.ended);
        log.used = log.used.and(acted.used);
        log.output.push_str(&acted.output);
        let Changed { outline, hashes } = match changed(&sandbox).await {
            Ok(changed) => changed,
            Err(lost) => return Trial::lost(lost, assume, log, started),
        };
        log.outline = outline;
        log.hashes(hashes);
        let (reported, same) = match steps.judge(step, number, sandbox).await {
            Ok(judged) => judged,
            Err(lost) => return Trial::lost(lost, assume, log, started),
        };
        log.verifier.output.push_str(&reported.output);
        log.reward = log.reward.or_else(|| reported.rewards.as_ref().ok().and_then(paid));
        let goes_on = suffices(step, &reported);
        verdicts.push(reported);
        match same {
            Some(same) if goes_on => sandbox = same,
            _ => break,
        }
    }
    let mut verdict = match combine(task, &verdicts, &mut log.verifier) {
        Ok(verdict) => verdict,
        Err(error) => {
            let lost = NoVerdict::NoResults { cause: error.to_string() };
            return Trial::lost(lost, assume, log, started);
        }
    };
    if let Some(lost) = not_run(&verdict, &log.verifier, missing_runner) {
        return Trial::lost(lost, assume, log, started);
    }
    let solving = matches!(act, Act::Solve(_) | Act::Edit { .. });
    if solving && exit == Some(ShellOutcome::TimedOut) && verdict.is_judged() {
        verdict.outcome = Outcome::Timeout;
        "the solver ran longer than it may".clone_into(&mut verdict.cause);
    }
    log.seconds = started.elapsed().as_secs_f64();
    Ok(Trial { verdict, exit, ended, log })
}

/// The loss of a trial whose tests could not run.
fn not_run(verdict: &Verdict, log: &VerifierLog, missing: MissingRunner) -> Option<NoVerdict> {
    if verdict.passed() || missing == MissingRunner::Ignored {
        return None;
    }
    missing_runner(&log.output).map(|line| NoVerdict::NoRunner { line: line.to_owned() })
}

/// Result of a solver at a task, with its verdict.
#[derive(Debug)]
pub struct SolvedInPlace<R> {
    /// The solver's own results, one per step that was reached.
    pub solvers: Vec<R>,
    /// `None` if the sandbox was lost, or was not to be judged.
    pub verdict: Option<Verdict>,
    pub log: VerifierLog,
    /// The judged state, if it was to be kept: the solver's files before the tests were uploaded.
    pub kept: Option<Image>,
}

/// Whether the judged state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    /// Kept as an image, from which a later round continues.
    State,
}

/// Whether a solver's result is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judging {
    Judge,
    /// There is no state left to judge.
    Skip,
}

/// Runs `solve` on each step of a task in turn, and judges each as the task declares. `solve` receives the step's number, the sandbox and
/// the image's environment. If `state` is given, the first step begins in that image instead of the task's: the preparation was done there.
/// The state that is kept is the last step's.
pub async fn solve_in_place<R, E: From<NoVerdict>>(
    context: TrialContext<'_>,
    task: &Foreign,
    state: Option<&Image>,
    keep: Keep,
    mut solve: impl AsyncFnMut(usize, &Sandbox, &[(String, String)]) -> Result<(R, Judging), E>,
) -> Result<SolvedInPlace<R>, E> {
    let TrialContext { engine, images, assume, .. } = context;
    let config = engine.image_config(&images.solver).await.map_err(NoVerdict::from)?;
    let workdir = task.workdir.clone().unwrap_or_else(|| config.workdir.clone());
    let spec = solver(images, task, &workdir);
    let spec = LaunchSpec { image: state.unwrap_or(&images.solver), ..spec };
    let steps = StepContext { context, task, config: &config, spec: &spec };
    let mut sandbox = engine.launch(&spec).await.map_err(NoVerdict::from)?;
    let mut solved =
        SolvedInPlace { solvers: Vec::new(), verdict: None, log: VerifierLog::default(), kept: None };
    let mut verdicts = Vec::new();
    for (number, step) in task.steps.iter().enumerate() {
        let is_prepared = number == 0 && state.is_some();
        let begun = async {
            if !is_prepared {
                steps.prepare(step, number, &sandbox).await?;
            }
            steps.begin_as(step, number, &sandbox).await
        };
        match begun.await {
            Ok(()) => {}
            // The solver acted in the container: what it left can be the reason.
            Err(lost) if number > 0 => return solved.lost(lost, assume).map_err(E::from),
            Err(lost) => return Err(lost.into()),
        }
        let (solver, judging) = solve(number, &sandbox, &config.env).await?;
        solved.solvers.push(solver);
        if judging == Judging::Skip {
            return Ok(solved);
        }
        if keep == Keep::State {
            match sandbox.snapshot().await {
                Ok(kept) => solved.kept = Some(kept),
                Err(error) => return solved.lost(error.into(), assume).map_err(E::from),
            }
        }
        let (reported, same) = match steps.judge(step, number, sandbox).await {
            Ok(judged) => judged,
            Err(lost) => return solved.lost(lost, assume).map_err(E::from),
        };
        solved.log.output.push_str(&reported.output);
        let goes_on = suffices(step, &reported);
        verdicts.push(reported);
        match same {
            Some(same) if goes_on => sandbox = same,
            _ => break,
        }
    }
    if !verdicts.is_empty() {
        match combine(task, &verdicts, &mut solved.log) {
            Ok(verdict) => {
                let on_missing = on_missing_runner(task, Act::Nothing, assume);
                if let Some(lost) = not_run(&verdict, &solved.log, on_missing) {
                    return solved.lost(lost, assume).map_err(E::from);
                }
                solved.verdict = Some(verdict);
            }
            Err(error) => {
                let lost = NoVerdict::NoResults { cause: error.to_string() };
                return solved.lost(lost, assume).map_err(E::from);
            }
        }
    }
    Ok(solved)
}

impl<R> SolvedInPlace<R> {
    /// The solver's results, with the verdict on a verification that was lost through the fault of the solver or the task.
    fn lost(mut self, lost: NoVerdict, assume: Assume) -> Result<Self, NoVerdict> {
        self.log.output.push_str(&lost.to_string());
        self.verdict = Some(lost.verdict(assume)?);
        Ok(self)
    }
}

/// A fresh container prepared for the first step of `task`, with its image's environment.
pub async fn ready_in_place(
    context: TrialContext<'_>,
    task: &Foreign,
) -> Result<(Sandbox, Vec<(String, String)>), NoVerdict> {
    let TrialContext { engine, images, .. } = context;
    let config = engine.image_config(&images.solver).await?;
    let workdir = task.workdir.clone().unwrap_or_else(|| config.workdir.clone());
    let spec = solver(images, task, &workdir);
    let sandbox = engine.launch(&spec).await?;
    let steps = StepContext { context, task, config: &config, spec: &spec };
    if let Some(step) = task.steps.first() {
        steps.prepare(step, 0, &sandbox).await?;
        steps.begin_as(step, 0, &sandbox).await?;
    }
    Ok((sandbox, config.env))
}

/// The launch specification of a solver's container.
fn solver<'a>(images: &'a Images, task: &'a Foreign, workdir: &'a str) -> LaunchSpec<'a> {
    LaunchSpec {
        image: &images.solver,
        limits: &task.limits,
        profile: task.profile,
        network: task.network.clone(),
        workdir,
        purpose: "solver",
        preload: Vec::new(),
    }
}

/// What all steps of a trial share.
pub(super) struct StepContext<'a> {
    pub(super) context: TrialContext<'a>,
    pub(super) task: &'a Foreign,
    pub(super) config: &'a ImageConfig,
    pub(super) spec: &'a LaunchSpec<'a>,
}

impl StepContext<'_> {
    /// Prepares the container for a step.
    async fn prepare(&self, step: &ForeignStep, number: usize, sandbox: &Sandbox) -> Result<(), NoVerdict> {
        if number == 0 {
            let ready = self.context.condition.prepare(sandbox).await;
            ready.map_err(|error| NoVerdict::Sandbox { phase: Phase::Prepare, error })?;
            self.start_entrypoint(sandbox).await?;
        }
        let prepared = self.prepare_files(step, sandbox).await;
        prepared.map_err(|error| NoVerdict::Sandbox { phase: phase_before(number), error })
    }

    async fn prepare_files(&self, step: &ForeignStep, sandbox: &Sandbox) -> Result<(), SandboxError> {
        self.harness(
            "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts",
            sandbox,
        )
        .await?;
        sandbox.put_tree(self.spec.workdir, &step.workdir).await?;
        if step.workdir.get("setup.sh").is_some() {
            self.harness(&format!("cd {} && bash ./setup.sh", shell_word(self.spec.workdir)), sandbox)
                .await?;
        }
        Ok(())
    }

    /// Runs shells as the user that the task declares for its solver. Each step begins in a new shell. If the container does not know the
    /// user before the first step, the task is at fault; later, the solver may have removed it. A solver is never run as another user.
    async fn begin_as(&self, step: &ForeignStep, number: usize, sandbox: &Sandbox) -> Result<(), NoVerdict> {
        let lost = |error| NoVerdict::Sandbox { phase: phase_before(number), error };
        if number > 0 {
            sandbox.shell("exit 0", &ExecLimit::default()).await.map_err(lost)?;
        }
        let Some(user) = &step.agent_user else { return Ok(()) };
        if sandbox.act_as(user).await.map_err(lost)? {
            return Ok(());
        }
        Err(no_such_user(user, number))
    }

    /// Prepares a step and performs its action.
    async fn act(
        &self,
        step: &ForeignStep,
        number: usize,
        act: Act<'_>,
        sandbox: &Sandbox,
    ) -> Result<Acted, NoVerdict> {
        self.prepare(step, number, sandbox).await?;
        self.begin_as(step, number, sandbox).await?;
        let mut env = self.task.environment_env.clone();
        env.push(("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned()));
        env.extend(self.task.solution_env.iter().cloned());
        let context = ActContext {
            workdir: self.spec.workdir,
            timeout: step.agent_timeout,
            env: &env,
            log: Some("/logs/agent/oracle.txt"),
            user: step.agent_user.as_deref(),
        };
        // Each step has its own reference; other actions are performed once.
        let act = match act {
            Act::Solve(_) | Act::Edit { .. } if number > 0 => Act::Solve(&step.solution),
            Act::Attack { .. } | Act::Vary { .. } if number > 0 => Act::Nothing,
            act => act,
        };
        let acted = perform(act, sandbox, &context).await;
        acted.map_err(|error| NoVerdict::Sandbox { phase: Phase::Solve, error })
    }
}

/// The phase in which a step's container is prepared: after the first step it contains the solver's changes.
fn phase_before(number: usize) -> Phase {
    if number > 0 { Phase::Solve } else { Phase::Prepare }
}

/// The container does not know the user of step `number`.
fn no_such_user(user: &str, number: usize) -> NoVerdict {
    let error = EngineError::NoSuchUser { user: user.to_owned() };
    match phase_before(number) {
        Phase::Prepare => error.into(),
        // Either the task or the solver: a control decides.
        phase => NoVerdict::Sandbox { phase, error: SandboxError::Failed { message: error.to_string() } },
    }
}

/// The test files shared by all steps.
pub fn tests_of(task: &Foreign) -> FileTree {
    task.steps.first().map(|step| step.tests.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Blame;

    #[test]
    fn a_user_who_is_missing_later_may_have_been_removed_by_the_solver() {
        let check = |number: usize, assume: Assume, blame: Option<Blame>, outcome: Option<Outcome>| {
            let missing = no_such_user("solver", number);
            assert_eq!(missing.blame(), blame, "{number}: {missing}");
            let solved =
                SolvedInPlace { solvers: vec![()], verdict: None, log: VerifierLog::default(), kept: None };
            let verdict = solved.lost(missing, assume).ok().and_then(|solved| solved.verdict);
            assert_eq!(verdict.map(|verdict| verdict.outcome), outcome, "{number} {assume:?}");
        };
        check(0, Assume::Nothing, Some(Blame::Task), Some(Outcome::VerifierError));
        check(1, Assume::Nothing, None, None);
        check(1, Assume::SolverAtFault, None, Some(Outcome::Fail));
        check(1, Assume::TaskAtFault, None, Some(Outcome::VerifierError));
    }
}
