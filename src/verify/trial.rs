//! A trial whose actor is a script: launch, act, judge.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::room::{VerifierLog, judge};
use crate::model::{FileTree, Outcome, ShellOutcome, Task, Verdict};
use crate::sandbox::{Engine, EngineError, ExecLimit, Image, LaunchSpec, Network, SandboxError};

/// The cause of a verdict on a sandbox that died under its solver. What exactly happened is observed, not committed.
pub const SANDBOX_LOST: &str = "sandbox_lost";
/// Where solutions are uploaded, as Harbor's oracle agent does.
const SOLUTION_DIR: &str = "/solution";
/// What a solution may print into the log.
const MAX_LOG: usize = 16 << 10;

/// What is done to the fresh container.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Nothing at all.
    Nothing,
    /// `bash /solution/solve.sh`, with these files uploaded.
    Solve(&'a FileTree),
}

/// A finished trial.
#[derive(Debug)]
pub struct Trial {
    pub verdict: Verdict,
    /// How the script ended; `None` when nothing was done or the sandbox was lost.
    pub exit: Option<ShellOutcome>,
    /// Hash of the final state.
    pub state: Option<String>,
    pub log: TrialLog,
}

/// What a trial observed. Goes to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialLog {
    /// What the script printed.
    pub output: String,
    pub state: Option<String>,
    pub verifier: VerifierLog,
    pub seconds: f64,
    pub engine: String,
}

/// Runs one trial in fresh containers.
pub async fn run_trial(
    engine: &Engine,
    image: &Image,
    task: &Task,
    act: Act<'_>,
) -> Result<Trial, EngineError> {
    let started = Instant::now();
    let sandbox = engine
        .launch(&LaunchSpec {
            image,
            limits: &task.limits,
            profile: task.profile,
            network: Network::None,
            workdir: task.subject.workdir(),
            purpose: "solver",
            preload: Vec::new(),
        })
        .await?;
    let acted = match act {
        Act::Nothing => Ok(None),
        Act::Solve(files) => solve(task, &sandbox, files).await.map(Some),
    };
    let mut log = TrialLog { engine: engine.name().to_owned(), ..TrialLog::default() };
    let exit = match acted {
        Ok(None) => None,
        Ok(Some((outcome, output))) => {
            log.output = output;
            Some(outcome)
        }
        Err(SandboxError::Engine(error)) => {
            sandbox.destroy().await;
            return Err(error);
        }
        Err(lost) => {
            sandbox.destroy().await;
            log.seconds = started.elapsed().as_secs_f64();
            log.output = lost.to_string();
            let verdict = Verdict::without_checks(Outcome::Fail, SANDBOX_LOST);
            return Ok(Trial { verdict, exit: None, state: None, log });
        }
    };
    let judged = judge(engine, image, task, sandbox).await?;
    let mut verdict = judged.verdict;
    if exit == Some(ShellOutcome::TimedOut) && matches!(verdict.outcome, Outcome::Pass | Outcome::Fail) {
        verdict.outcome = Outcome::Timeout;
        verdict.cause = format!("the solver ran longer than {} s", task.limits.agent_timeout_sec);
    }
    log.state.clone_from(&judged.state);
    log.verifier = judged.log;
    log.seconds = started.elapsed().as_secs_f64();
    Ok(Trial { verdict, exit, state: judged.state, log })
}

async fn solve(
    task: &Task,
    sandbox: &crate::sandbox::Sandbox,
    files: &FileTree,
) -> Result<(ShellOutcome, String), SandboxError> {
    sandbox.put_tree(SOLUTION_DIR, files).await?;
    let timeout = Duration::from_secs(task.limits.agent_timeout_sec.into());
    let command = format!("bash {SOLUTION_DIR}/solve.sh");
    let done = sandbox.shell(&command, &ExecLimit { timeout, keep: MAX_LOG }).await?;
    Ok((done.outcome, String::from_utf8_lossy(&done.output).into_owned()))
}
