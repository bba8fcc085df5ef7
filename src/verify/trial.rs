//! A trial whose actor is a script: launch, act, judge.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::act::{Act, ActContext, Used, perform};
use super::clean_room::judge;
use super::condition::Condition;
use super::missing_runner::MissingRunner;
use super::no_verdict::{Control, NoVerdict, Phase, Retries, settled};
use super::outline::{Outline, StateHashes};
use super::room::VerifierLog;
use crate::model::{Assume, Outcome, ShellOutcome, Task, Verdict};
use crate::sandbox::{Engine, Image, LaunchSpec, Network};

/// The images of a task.
#[derive(Clone, Debug)]
pub struct Images {
    pub solver: Image,
    /// The tests' own image, if they have one.
    pub verifier: Option<Image>,
}

impl From<Image> for Images {
    /// Solver and tests have the same image.
    fn from(solver: Image) -> Self {
        Self { solver, verifier: None }
    }
}

/// What one attempt at a verdict is made with.
#[derive(Clone, Copy, Debug)]
pub struct TrialContext<'a> {
    pub engine: &'a Engine,
    pub images: &'a Images,
    pub condition: Condition<'a>,
    /// Whom a loss without evidence is blamed on.
    pub assume: Assume,
    pub missing_runner: MissingRunner,
}

impl<'a> TrialContext<'a> {
    /// An ordinary attempt, before any control.
    pub fn new(engine: &'a Engine, images: &'a Images) -> Self {
        Self {
            engine,
            images,
            condition: Condition::Ordinary,
            assume: Assume::Nothing,
            missing_runner: MissingRunner::Ignored,
        }
    }
}

/// A finished trial.
#[derive(Debug)]
pub struct Trial {
    pub verdict: Verdict,
    /// Result of the script; `None` if nothing was done or the sandbox was lost.
    pub exit: Option<ShellOutcome>,
    /// Results of several scripts, by name.
    pub ended: Vec<(String, ShellOutcome)>,
    pub log: TrialLog,
}

/// Observations of a trial. Written to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialLog {
    /// How the script ended; `None` if nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ShellOutcome>,
    /// Output of the script.
    pub output: String,
    /// Hash of the final state; equal states have equal hashes.
    pub state: Option<String>,
    /// Hash of the final state but for the form of its files ([`StateHashes::meaning`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Outline::is_empty")]
    pub outline: Outline,
    pub verifier: VerifierLog,
    /// The number that the tests of another maker's task wrote, of the first step that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// Resources used by the action alone.
    #[serde(default)]
    pub used: Used,
    pub seconds: f64,
    pub engine: String,
}

impl TrialLog {
    /// Notes the hashes of the final state, if they are known.
    pub(super) fn hashes(&mut self, hashes: Option<StateHashes>) {
        (self.state, self.meaning) = hashes.map(|hashes| (hashes.exact, hashes.meaning)).unzip();
    }
}

/// The launch specification of a solver's container.
pub fn solver_container<'a>(image: &'a Image, task: &'a Task) -> LaunchSpec<'a> {
    LaunchSpec {
        image,
        limits: &task.limits,
        profile: task.profile,
        network: Network::None,
        workdir: task.subject.workdir(),
        purpose: "solver",
        preload: Vec::new(),
    }
}

/// Runs a trial in fresh containers until it has a verdict ([`settled`]), or leaves it open. Its control is a trial of the untouched task;
/// the control of the untouched task is the reference.
pub async fn run_trial(
    engine: &Engine,
    image: &Image,
    task: &Task,
    act: Act<'_>,
    condition: Condition<'_>,
    drain: &CancellationToken,
) -> Result<Trial, NoVerdict> {
    let images = Images::from(image.clone());
    let context = TrialContext::new(engine, &images);
    settled(
        Retries::new(Some(engine), drain),
        async |assume| try_trial(TrialContext { condition, assume, ..context }, task, act).await,
        async || {
            let control = if matches!(act, Act::Nothing) { Act::Solve(&task.solution) } else { Act::Idle };
            let trial = try_trial(context, task, control).await;
            Control::of(&trial.map(|trial| trial.verdict))
        },
    )
    .await
}

/// Runs a trial once.
pub(super) async fn try_trial(
    context: TrialContext<'_>,
    task: &Task,
    act: Act<'_>,
) -> Result<Trial, NoVerdict> {
    let started = Instant::now();
    let TrialContext { engine, images, condition, assume, .. } = context;
    let limits = condition.limits(&task.limits);
    let spec = LaunchSpec { limits: &limits, ..solver_container(&images.solver, task) };
    // The verifier has the same image.
    condition.require(engine, &spec).await?;
    let sandbox = engine.launch(&spec).await?;
    let timeout = Duration::from_secs(task.limits.agent_timeout_sec.into());
    let settings = ActContext { workdir: task.subject.workdir(), timeout, env: &[], log: None, user: None };
    let acted = match condition.prepare(&sandbox).await {
        Ok(()) => perform(act, &sandbox, &settings)
            .await
            .map_err(|error| NoVerdict::Sandbox { phase: Phase::Solve, error }),
        Err(error) => Err(NoVerdict::Sandbox { phase: Phase::Prepare, error }),
    };
    let mut log = TrialLog { engine: engine.name().to_owned(), ..TrialLog::default() };
    let (exit, ended) = match acted {
        Ok(acted) => {
            log.exit = acted.exit;
            log.output = acted.output;
            log.used = acted.used;
            (acted.exit, acted.ended)
        }
        Err(lost) => {
            sandbox.destroy().await;
            return Trial::lost(lost, assume, log, started);
        }
    };
    let judged = judge(context, task, sandbox).await?;
    let mut verdict = judged.verdict;
    if let Some(cause) = act.out_of_time(timeout)
        && exit == Some(ShellOutcome::TimedOut)
        && verdict.is_judged()
    {
        verdict.outcome = Outcome::Timeout;
        verdict.cause = cause;
    }
    log.hashes(judged.hashes);
    log.outline = judged.outline;
    log.verifier = judged.log;
    log.seconds = started.elapsed().as_secs_f64();
    Ok(Trial { verdict, exit, ended, log })
}

impl Trial {
    /// A trial that was lost through the fault of its solver or its task. Any other loss has no verdict.
    pub(super) fn lost(
        lost: NoVerdict,
        assume: Assume,
        mut log: TrialLog,
        started: Instant,
    ) -> Result<Self, NoVerdict> {
        log.seconds = started.elapsed().as_secs_f64();
        log.output.push_str(&lost.to_string());
        let verdict = lost.verdict(assume)?;
        Ok(Self { verdict, exit: None, ended: Vec::new(), log })
    }
}
