//! Installed agents: programs in the sandbox that run their own loop, and reach a model at a port of the sandbox's own loopback address.
//!
//! The sandbox has no network. Its guest hands each request to the host, where it becomes a call like any other: journalled, budgeted,
//! recorded. The trajectory is put together from the requests, since nobody but the agent knows its loop.

mod proxy;
mod wire;

use std::sync::Arc;
use std::time::Instant;

use super::conversation::Conversation;
use super::episode::{AgentError, Ended, ended_by_loss};
use super::scaffold::{Driver, EpisodeContext, Scaffold, ScaffoldEntry, ScaffoldLoadError};
use crate::llm::{ModelRole, Models};
use crate::model::{End, ShellOutcome};
use crate::sandbox::{ExecLimit, SandboxError};

use proxy::Proxy;

/// The scaffold's line of the registry.
pub(super) const ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: NAME,
    description: "A program in the sandbox, --agent-command, that reaches the model at its own loopback address",
    load: |_, options| match &options.command {
        Some(command) => Ok(Arc::new(InstalledAgent { command: command.clone() })),
        None => Err(ScaffoldLoadError::NoCommand { scaffold: NAME }),
    },
};

/// The name in records.
const NAME: &str = "command";
/// Port that the model is reached at. Any would do; this one is nobody's default.
pub const PORT: u16 = 8421;
/// Where the agent finds its task.
const INSTRUCTION: &str = "/run/agent/instruction.md";
/// What the program prints is a log, not an observation.
const LOG_BYTES: usize = 64 << 10;

/// The scaffold of agents that run their own loop. It has no texts: the agent writes its own prompts.
#[derive(Clone, Debug)]
struct InstalledAgent {
    command: String,
}

impl Scaffold for InstalledAgent {
    fn name(&self) -> &'static str {
        NAME
    }

    fn digest(&self) -> String {
        blake3::hash(self.command.as_bytes()).to_hex().to_string()
    }

    fn driver(&self) -> Driver<'_> {
        Driver::InSandbox { command: &self.command }
    }
}

/// One run of an installed agent.
#[derive(Debug)]
pub struct Installed<'a> {
    /// What bash runs. `$INSTRUCTION_FILE` names the task, `$MODEL` the model; the variables that OpenAI's clients read are set.
    pub command: &'a str,
    pub models: &'a Models,
    pub role: ModelRole,
    pub unit: &'a str,
}

/// Runs the agent to its end. `talk` becomes its last conversation: what came before a conversation that did not go on from there is
/// in the journal alone.
pub async fn run_installed(
    installed: &Installed<'_>,
    instruction: &str,
    conversation: &mut Conversation,
    episode: &EpisodeContext<'_>,
) -> Result<Ended, AgentError> {
    let sandbox = episode.sandbox;
    let lost = |error: SandboxError| match error {
        SandboxError::Engine(error) => Err(AgentError::Engine(error)),
        error => ended_by_loss(error, episode.silent_loss),
    };
    let (settings, _) = installed.models.settings(installed.role)?;
    if let Err(error) = sandbox.put(INSTRUCTION, instruction.as_bytes(), 0o644).await {
        return lost(error);
    }
    let calls = match sandbox.serve_port(PORT).await {
        Ok(calls) => calls,
        Err(error) => return lost(error),
    };
    let model = settings.model.replace('\'', "");
    let command = format!(
        "export INSTRUCTION_FILE={INSTRUCTION} MODEL='{model}' OPENAI_API_KEY=none \
         OPENAI_BASE_URL=http://127.0.0.1:{PORT}/v1 OPENAI_API_BASE=http://127.0.0.1:{PORT}/v1\n{}",
        installed.command
    );
    let limit = ExecLimit { timeout: episode.left(), keep: LOG_BYTES };
    let mut proxy = Proxy::new(installed, conversation);
    let started = Instant::now();
    let ran = tokio::select! {
        ran = sandbox.shell(&command, &limit) => ran,
        error = proxy.serve(calls) => return Err(error),
    };
    proxy.finish();
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return lost(error),
    };
    let assistant = String::from_utf8_lossy(&ran.output).into_owned();
    Ok(match ran.outcome {
        ShellOutcome::TimedOut => Ended { end: End::TimedOut, cause: assistant },
        ShellOutcome::Exited(0) => Ended { end: End::Submitted, cause: String::new() },
        // A program that fails has ended too; what it did counts, and what it said is kept.
        ShellOutcome::Exited(status) | ShellOutcome::ShellDied(status) => Ended {
            end: End::Submitted,
            cause: format!(
                "the agent ended with {status} after {:.0} s: {assistant}",
                started.elapsed().as_secs_f64()
            ),
        },
    })
}
