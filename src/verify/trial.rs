//! A trial whose actor is a script: launch, act, judge.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::act::{Act, Stage, Used, perform};
use super::clean_room::{VerifierLog, judge_under};
use super::condition::Condition;
use super::outline::Outline;
use crate::model::{Outcome, ShellOutcome, Task, Verdict};
use crate::sandbox::{Engine, EngineError, Image, LaunchSpec, Network, SandboxError};

/// The cause of a verdict on a sandbox that died under its solver. What exactly happened is observed, not committed.
pub const SANDBOX_LOST: &str = "sandbox_lost";
/// A finished trial.
#[derive(Debug)]
pub struct Trial {
    pub verdict: Verdict,
    /// How the script ended; `None` when nothing was done or the sandbox was lost.
    pub exit: Option<ShellOutcome>,
    /// How each of several scripts ended, by name.
    pub ended: Vec<(String, ShellOutcome)>,
    pub log: TrialLog,
}

/// What a trial observed. Goes to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialLog {
    /// What the script printed.
    pub output: String,
    /// Hash of the final state; equal states have equal hashes.
    pub state: Option<String>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Outline::is_empty")]
    pub outline: Outline,
    pub verifier: VerifierLog,
    /// What the act alone took.
    #[serde(default)]
    pub used: Used,
    pub seconds: f64,
    pub engine: String,
}

/// The container that a solver of `task` works in.
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

/// Runs one trial in fresh containers.
pub async fn run_trial(
    engine: &Engine,
    image: &Image,
    task: &Task,
    act: Act<'_>,
    condition: Condition,
) -> Result<Trial, EngineError> {
    let started = Instant::now();
    let limits = condition.limits(&task.limits);
    let sandbox = engine.launch(&LaunchSpec { limits: &limits, ..solver_container(image, task) }).await?;
    let timeout = Duration::from_secs(task.limits.agent_timeout_sec.into());
    let stage = Stage { workdir: task.subject.workdir(), timeout, env: &[], log: None, user: None };
    let acted = match condition.prepare(&sandbox).await {
        Ok(()) => perform(act, &sandbox, &stage).await,
        Err(error) => Err(error),
    };
    let mut log = TrialLog { engine: engine.name().to_owned(), ..TrialLog::default() };
    let (exit, ended) = match acted {
        Ok(acted) => {
            log.output = acted.output;
            log.used = acted.used;
            (acted.exit, acted.ended)
        }
        Err(SandboxError::Engine(error)) => {
            sandbox.destroy().await;
            return Err(error);
        }
        Err(lost) => {
            sandbox.destroy().await;
            return Ok(Trial::lost(&lost, log, started));
        }
    };
    let judged = judge_under(engine, image, task, sandbox, condition).await?;
    let mut verdict = judged.verdict;
    let solving = matches!(act, Act::Solve(_));
    if solving && exit == Some(ShellOutcome::TimedOut) && verdict.is_judged() {
        verdict.outcome = Outcome::Timeout;
        verdict.cause = format!("the solver ran longer than {} s", task.limits.agent_timeout_sec);
    }
    log.state = judged.state;
    log.outline = judged.outline;
    log.verifier = judged.log;
    log.seconds = started.elapsed().as_secs_f64();
    Ok(Trial { verdict, exit, ended, log })
}

impl Trial {
    /// The sandbox died under its solver.
    pub(super) fn lost(error: &SandboxError, mut log: TrialLog, started: Instant) -> Self {
        log.seconds = started.elapsed().as_secs_f64();
        log.output = error.to_string();
        let verdict = Verdict::without_checks(Outcome::Fail, SANDBOX_LOST);
        Self { verdict, exit: None, ended: Vec::new(), log }
    }
}
