//! The agent loop: move, run, show, until the agent submits or a limit ends it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::protocol::{Prompts, PromptsError};
use super::scripted::{Move, ScriptError, ScriptedAgent};
use crate::model::{End, Turn};
use crate::sandbox::{EngineError, ExecLimit, Sandbox, SandboxError};

/// Bounds of one episode.
#[derive(Clone, Copy, Debug)]
pub struct StepLimits {
    /// Assistant turns.
    pub turns: u32,
    /// One command.
    pub command: Duration,
    /// The whole episode.
    pub total: Duration,
    /// Bytes of output that one observation shows; the middle is left out.
    pub output_bytes: usize,
}

impl StepLimits {
    /// The scripted expert's: its longest script has fewer turns, and loops must end somewhere.
    pub fn scripted(total: Duration) -> Self {
        Self { turns: 24, command: Duration::from_secs(60), total, output_bytes: 8_000 }
    }
}

/// What one command showed. Goes to `observed/`, never to the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The message that the agent read.
    pub message: String,
    /// Bytes the command really wrote.
    pub bytes: u64,
    pub milliseconds: f64,
}

/// A finished episode.
#[derive(Clone, Debug)]
pub struct Episode {
    pub turns: Vec<Turn>,
    /// One for each turn with a command.
    pub observed: Vec<Observed>,
    pub end: End,
    /// Why the sandbox was lost, if it was.
    pub cause: String,
}

/// What is not the agent's doing.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error("the scripted expert cannot go on: {0}\nhint: `termsmith recipe check` plays it and shows where")]
    Script(#[from] ScriptError),
}

/// Plays `agent` in `sandbox`.
pub async fn play(
    sandbox: &Sandbox,
    agent: &mut ScriptedAgent,
    prompts: &Prompts,
    limits: &StepLimits,
) -> Result<Episode, AgentError> {
    let started = Instant::now();
    let mut episode =
        Episode { turns: Vec::new(), observed: Vec::new(), end: End::StepLimit, cause: String::new() };
    while episode.turns.len() < limits.turns as usize {
        let left = limits.total.saturating_sub(started.elapsed());
        if left.is_zero() {
            episode.end = End::TimedOut;
            break;
        }
        let last = episode.observed.last().map(|observed| observed.message.as_str());
        match agent.next(last)? {
            Move::Submit { thought } => {
                episode.turns.push(Turn { thought, command: None, outcome: None });
                episode.end = End::Submitted;
                break;
            }
            Move::Run { thought, command } => {
                let limit = ExecLimit { timeout: limits.command.min(left), keep: limits.output_bytes };
                let result = match sandbox.shell(&command, &limit).await {
                    Ok(result) => result,
                    Err(SandboxError::Engine(error)) => return Err(error.into()),
                    Err(lost) => {
                        episode.turns.push(Turn { thought, command: Some(command), outcome: None });
                        episode.end = End::SandboxLost;
                        episode.cause = lost.to_string();
                        break;
                    }
                };
                let shown = String::from_utf8_lossy(&result.output);
                let message = prompts.observation(&shown, result.outcome, limits.command.as_secs())?;
                let milliseconds = result.took.as_secs_f64() * 1e3;
                episode.observed.push(Observed { message, bytes: result.bytes, milliseconds });
                episode.turns.push(Turn { thought, command: Some(command), outcome: Some(result.outcome) });
            }
        }
    }
    Ok(episode)
}
