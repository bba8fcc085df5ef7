//! Installed agents: programs in the sandbox that run their own loop and reach a model at a port of
//! the sandbox's loopback address.
//!
//! The sandbox has no network. Its guest relays each request to the host, where it becomes a model
//! call with journal, budget and recording. The trajectory is reconstructed from the requests,
//! since the agent's loop is not visible from outside.

mod delivery;
mod dialect;
mod http;
mod proxy;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::ended::{Ended, ended_by_loss};
use super::error::AgentError;
use super::program::{INSTRUCTION_FILE, Launch, Program, Start, StartContext};
use super::scaffold::{Driver, EpisodeContext, Machine, Scaffold, ScaffoldEntry, ScaffoldLoadError};
use crate::llm::{ModelRole, Models};
use crate::model::{End, ShellOutcome};
use crate::sandbox::{ExecLimit, RelayCall, SandboxError};

use proxy::{Proxy, Served};
use threads::{Keys, Rules};

pub use threads::{FewShot, ForeignMessage};

/// The scaffold's registry entry.
pub(super) const ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: NAME,
    description: "A program in the sandbox, --agent-command, that reaches the model at its own loopback address",
    load: |_, options| match &options.command {
        Some(command) => Ok(Arc::new(InstalledAgent::new(Program::of_command(command)))),
        None => Err(ScaffoldLoadError::NoCommand { scaffold: NAME }),
    },
};

/// The name in records.
const NAME: &str = "command";
/// Port of the model endpoint. Arbitrary; no well-known service uses it.
pub const PORT: u16 = 8421;
/// Bytes of the agent's output that are kept. The output is a log, not an observation.
const LOG_BYTES: usize = 64 << 10;
/// The guest's time limit for the agent. The host ends it at the episode's deadline, which moves
/// while model calls wait; this is longer than any.
const GUEST_LIMIT: Duration = Duration::from_secs(30 * 24 * 3600);
/// An agent that ended during a call which was held up for longer than this is not at fault.
/// Journal and connection take less.
const HELD_UP: Duration = Duration::from_secs(1);
/// How long an agent may go on after a limit has refused a call. Most clients end at once, others
/// try again for minutes.
const GRACE: Duration = Duration::from_secs(5);
/// How often an agent may give up in one rollout without being at fault. The reply is in the
/// journal when the rollout is tried again. An agent can also ask for something else each time.
const MAY_GIVE_UP: u32 = 2;

/// The scaffold of agents that run their own loop. It has no texts, since the agent writes its own
/// prompts.
#[derive(Clone, Debug)]
pub(super) struct InstalledAgent {
    program: Program,
}

impl InstalledAgent {
    pub(super) fn new(program: Program) -> Self {
        Self { program }
    }
}

impl Scaffold for InstalledAgent {
    fn name(&self) -> &str {
        &self.program.name
    }

    fn digest(&self) -> String {
        self.program.digest()
    }

    fn driver(&self) -> Driver<'_> {
        Driver::InSandbox(&self.program)
    }
}

/// One run of an installed agent.
#[derive(Debug)]
pub struct Installed<'a> {
    pub program: &'a Program,
    pub models: &'a Models,
    pub role: ModelRole,
    pub unit: &'a str,
    /// How often an agent has given up in this rollout.
    pub gave_up: &'a AtomicU32,
}

/// Runs the agent until it exits. Each of its model calls is a turn of one of its threads. Calls
/// past a limit are refused, and the agent is ended [`GRACE`] later; the limit is then the end of
/// the episode. `conversation` becomes the agent's main conversation, with its other threads.
pub async fn run_installed(
    installed: &Installed<'_>,
    instruction: &str,
    conversation: &mut Conversation,
    episode: &EpisodeContext<'_>,
) -> Result<Ended, AgentError> {
    let sandbox = episode.sandbox;
    let lost = |error: SandboxError| match error {
        SandboxError::Engine(error) => Err(AgentError::Engine(error)),
        // The guest lives and could not start the shell.
        error @ SandboxError::Failed { .. } if episode.machine == Machine::Fresh => {
            Err(AgentError::NotStarted(error))
        }
        error => ended_by_loss(error, episode.assume),
    };
    let (settings, _) = installed.models.settings(installed.role)?;
    let calls = match open(episode, instruction).await {
        Ok(calls) => calls,
        Err(SandboxError::Engine(error)) => return Err(error.into()),
        Err(error) if episode.machine == Machine::Fresh => return Err(AgentError::NotStarted(error)),
        Err(error) => return lost(error),
    };
    let origin = format!("http://127.0.0.1:{PORT}");
    let context = StartContext { instruction, model: &settings.model, origin: &origin };
    let Launch { files, command } = installed.program.launch(&context)?;
    for (path, text) in &files {
        if let Err(error) = sandbox.put(path, text.as_bytes(), 0o600).await {
            return lost(error);
        }
    }
    let limit = ExecLimit { timeout: GUEST_LIMIT, max_output: LOG_BYTES };
    let rules = Rules {
        agent: installed.program.name.clone(),
        instruction: instruction.to_owned(),
        keys: if installed.program.threads.is_some() { Keys::Header } else { Keys::None },
        few_shot: installed.program.few_shot,
    };
    let proxy = Proxy::new(installed, episode, rules);
    let started = Instant::now();
    let agent_ended = CancellationToken::new();
    let ran = {
        let serving = proxy.serve(calls, &agent_ended);
        tokio::pin!(serving);
        let stop = async {
            tokio::select! {
                () = episode.deadline.passed() => {}
                () = async { proxy.over().await; tokio::time::sleep(GRACE).await } => {}
            }
        };
        let ran = tokio::select! {
            biased;
            // Before the agent exits, `serve` returns only with an error that the agent's program
            // did not cause.
            Err(error) = &mut serving => return Err(error),
            ran = sandbox.shell_until(&command, &limit, stop) => ran,
        };
        agent_ended.cancel();
        // The agent's client gives up before the retries of the endpoint end, so the result of the
        // last call decides whether the agent failed. However long the endpoint takes for it: a
        // call ends by a reply or an error.
        serving.await?;
        ran
    };
    let Served { conversation: served, refused, answered, refusal, held_up } = proxy.finish();
    *conversation = served;
    let (outcome, output) = match ran {
        Ok(ran) => (ran.outcome, String::from_utf8_lossy(&ran.output).into_owned()),
        Err(error) => return lost(error),
    };
    let seconds = started.elapsed().as_secs_f64();
    let how = match outcome {
        ShellOutcome::Exited(status) => format!("exit status {status} after {seconds:.0} s"),
        ShellOutcome::ShellDied(status) => format!("its shell ended with {status} after {seconds:.0} s"),
        ShellOutcome::TimedOut if refused.is_some() => format!("ended by a limit after {seconds:.0} s"),
        ShellOutcome::TimedOut => format!("time limit after {seconds:.0} s"),
    };
    let has_ended = matches!(outcome, ShellOutcome::Exited(_) | ShellOutcome::ShellDied(_));
    if has_ended
        && outcome != ShellOutcome::Exited(0)
        && refused.is_none()
        && held_up > HELD_UP
        && installed.gave_up.fetch_add(1, Ordering::Relaxed) < MAY_GIVE_UP
    {
        return Err(AgentError::GaveUp { waited: held_up });
    }
    if !answered && refused.is_none() {
        let how = match refusal {
            Some(refusal) => format!("{how}; its last request was refused: {refusal}"),
            None => how,
        };
        let (agent, hint) = (installed.program.name.clone(), never_asked(&installed.program.start));
        return Err(AgentError::NeverAsked { agent, how, output: end_of(&output), hint });
    }
    // An agent that exits with an error is judged too, and its output is kept.
    let end = match (outcome, refused) {
        (_, Some(limit)) => limit,
        (ShellOutcome::TimedOut, None) => End::TimedOut,
        (ShellOutcome::Exited(_) | ShellOutcome::ShellDied(_), None) => End::Submitted,
    };
    Ok(Ended::because(end, format!("{how}\n{output}")))
}

/// Prepares a sandbox for an agent: the instruction, the port of the model's endpoint, and a shell.
pub(super) async fn open(
    episode: &EpisodeContext<'_>,
    instruction: &str,
) -> Result<mpsc::Receiver<RelayCall>, SandboxError> {
    let sandbox = episode.sandbox;
    sandbox.put(INSTRUCTION_FILE, instruction.as_bytes(), 0o644).await?;
    let calls = sandbox.serve_port(PORT).await?;
    sandbox.shell(":", &ExecLimit::default()).await?;
    Ok(calls)
}

/// The hint for an agent that ended before the model answered it.
fn never_asked(start: &Start) -> &'static str {
    match start {
        Start::Shell(_) => {
            "--agent-command must start a program of the task's image, which asks the model at $OPENAI_BASE_URL"
        }
        Start::Manifest(_) => "`termsmith agent check NAME TASK` starts the agent in the task's image",
    }
}

/// The last lines of an output, for a message.
fn end_of(output: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = output.lines().collect();
    match lines.get(lines.len().saturating_sub(LINES)..) {
        Some(last) if !last.is_empty() => last.join("\n"),
        Some(_) | None => "(it printed nothing)".to_owned(),
    }
}
