//! What a scaffold is: a protocol between what an agent says and what happens in a sandbox.

use std::future::Future;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::model::{Act, Blame, Key, Shown, Tokens, ToolCall, ToolDefinition, Turn, TurnKind};
use crate::prompts::PromptsError;
use crate::sandbox::{EngineError, Sandbox, SandboxError};

/// A protocol that agents speak.
pub trait Scaffold: Send {
    /// The first messages. Called once for each sandbox, before anything else.
    fn open(
        &mut self,
        episode: &EpisodeContext<'_>,
        instruction: &str,
    ) -> impl Future<Output = Result<Opening, ScaffoldError>> + Send;

    /// Does what a message asks for. The same messages in the same order do the same things: that is how an interrupted rollout
    /// is brought back to where it was.
    fn take(
        &mut self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> impl Future<Output = Result<Step, ScaffoldError>> + Send;

    /// What stands on the screen, where there is one that outlives an observation.
    fn screen(&self) -> Option<String> {
        None
    }
}

/// Where a scaffold acts.
#[derive(Clone, Copy, Debug)]
pub struct EpisodeContext<'a> {
    pub sandbox: &'a Sandbox,
    /// The image's environment variables.
    pub env: &'a [(String, String)],
    pub limits: &'a StepLimits,
    pub deadline: Instant,
    /// Whose fault a loss of the sandbox is whose evidence does not say. `None` until an experiment has decided.
    pub silent_loss: Option<Blame>,
}

impl EpisodeContext<'_> {
    /// What is left of the episode's time.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Bounds of one episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepLimits {
    /// Assistant turns.
    pub turns: u32,
    /// One command.
    pub command: Duration,
    /// The whole episode, models' time included.
    pub total: Duration,
    /// Bytes of output that one observation shows; the middle is left out.
    pub output_bytes: usize,
    /// Tokens that all of its calls together may read and write.
    pub tokens: Option<u64>,
    /// Dollars that they may cost together.
    pub dollars: Option<Dollars>,
    /// Tokens of the model's context; an episode ends before a request that would not fit.
    pub context: Option<u64>,
}

impl StepLimits {
    /// The scripted expert's: its longest script has fewer turns, and loops must end somewhere.
    pub fn scripted(total: Duration) -> Self {
        Self {
            turns: 24,
            command: Duration::from_secs(60),
            total,
            output_bytes: 8_000,
            tokens: None,
            dollars: None,
            context: None,
        }
    }
}

/// A bound in US dollars, and what tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dollars {
    pub most: f64,
    pub per_million_read: f64,
    pub per_million_written: f64,
}

/// How a conversation begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Empty where there is no system message.
    pub system: String,
    pub prompt: String,
    pub tools: Vec<ToolDefinition>,
}

/// One message of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    pub content: String,
    pub reasoning: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    pub call: Option<Key>,
    pub usage: Option<Tokens>,
    /// It was cut off at its most tokens.
    pub cut_off: bool,
}

impl AssistantMessage {
    /// The message of a recorded turn.
    pub fn again(turn: &Turn) -> Self {
        Self {
            content: turn.content.clone(),
            reasoning: turn.reasoning.clone(),
            tool_calls: turn.tool_calls.clone(),
            call: turn.call.clone(),
            usage: turn.usage,
            cut_off: turn.cut_off,
        }
    }

    /// The turn that it becomes.
    pub fn into_turn(self, kind: TurnKind, acts: Vec<Act>) -> Turn {
        let Self { content, reasoning, tool_calls, call, usage, cut_off } = self;
        Turn { content, reasoning, tool_calls, kind, acts, call, guide: None, usage, cut_off }
    }
}

/// What came of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    pub kind: TurnKind,
    pub acts: Vec<Act>,
    /// One for each act.
    pub seen: Vec<ActSeen>,
    /// What the agent reads next; nothing, if it has submitted.
    pub shown: Vec<Shown>,
    /// The model call that brought a mentor's answer.
    pub guide: Option<Key>,
    /// The terminal's shell has ended.
    pub shell_ended: bool,
}

impl Step {
    /// Nothing was done; `message` says why.
    pub fn malformed(message: String) -> Self {
        Self { kind: TurnKind::Malformed, shown: vec![Shown::text(message)], ..Self::default() }
    }

    /// The agent has finished.
    pub fn submitted() -> Self {
        Self { kind: TurnKind::Submitted, ..Self::default() }
    }
}

/// What one act showed. Goes to `observed/`, never to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActSeen {
    /// Bytes that were really written.
    pub bytes: u64,
    pub milliseconds: f64,
}

/// Why a message was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sandbox gave no answer. [`SandboxError::blame`] says whose fault that is.
    #[error("{error}")]
    Sandbox { error: SandboxError, acts: Vec<Act> },
}

impl ScaffoldError {
    /// `error`, which came after `acts`.
    pub(super) fn of(error: SandboxError, acts: Vec<Act>) -> Self {
        match error {
            SandboxError::Engine(error) => Self::Engine(error),
            error => Self::Sandbox { error, acts },
        }
    }
}
