//! Scaffolds: protocols between a model and a sandbox, e.g. function calling or ReAct. Field: agent
//! harness.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::deadline::Deadline;
use super::program::Program;
use super::summary_texts::{PlainSummary, SummaryTexts};
use super::terminal::Wake;
use crate::assets::Assets;
use crate::model::{
    Act, Assume, Key, Message, Shown, Tokens, ToolCall, ToolDefinition, Turn, TurnKind, opening_messages,
};
use crate::prompts::PromptsError;
use crate::sandbox::{EngineError, Sandbox, SandboxError};

/// An entry of [`super::SCAFFOLDS`]: a scaffold's name, its help text, and its constructor.
#[derive(Clone, Copy, Debug)]
pub struct ScaffoldEntry {
    /// The value of `--scaffold`.
    pub option: &'static str,
    /// One line of help.
    pub description: &'static str,
    pub load: LoadScaffold,
}

/// Loads a scaffold's texts and creates the scaffold.
pub type LoadScaffold = fn(&Assets, &ScaffoldOptions) -> Result<Arc<dyn Scaffold>, ScaffoldLoadError>;

/// Options of scaffolds on the command line.
#[derive(Clone, Debug, Default)]
pub struct ScaffoldOptions {
    /// Whether a wait of the terminal ends once the commands are done.
    pub wake: Wake,
    /// `--agent-command`: starts an agent program in the sandbox.
    pub command: Option<String>,
}

/// Why a scaffold cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldLoadError {
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(
        "the scaffold `{scaffold}` needs the command that starts the agent\nhint: pass it with --agent-command"
    )]
    NoCommand { scaffold: &'static str },
}

/// A loaded scaffold: everything that is fixed before an episode. All episodes of a campaign share
/// it.
pub trait Scaffold: Debug + Send + Sync {
    /// The name in records and rows, e.g. `terminus-json`.
    fn name(&self) -> &str;

    /// Hash over texts and options. It is part of a rollout's key, so rollouts with other texts
    /// have other keys.
    fn digest(&self) -> String;

    /// Texts at which the server stops the model's reply.
    fn stop(&self) -> &'static [&'static str] {
        &[]
    }

    /// The texts that ask for a summary. `plain` is for scaffolds without texts of their own.
    fn summary_texts<'a>(&'a self, plain: &'a PlainSummary) -> SummaryTexts<'a> {
        SummaryTexts::Plain(plain)
    }

    /// Who runs the loop of an episode.
    fn driver(&self) -> Driver<'_>;
}

/// Who runs the loop of an episode.
#[derive(Clone, Copy, Debug)]
pub enum Driver<'a> {
    /// [`super::run_episode`], with this protocol.
    TurnByTurn(&'a dyn Protocol),
    /// A program in the sandbox ([`super::run_installed`]).
    InSandbox(&'a Program),
}

/// The part of a scaffold that [`super::run_episode`] drives.
pub trait Protocol: Debug + Send + Sync {
    /// Opens a session in the sandbox and makes the first messages. The sandbox may be fresh, or
    /// its shell may have been restarted.
    fn open<'a>(
        &'a self,
        episode: &'a EpisodeContext<'_>,
        instruction: &'a str,
    ) -> BoxFuture<'a, Result<OpenSession<'a>, ScaffoldError>>;
}

/// An open session and the first messages of its episode.
pub type OpenSession<'a> = (Box<dyn Session + 'a>, Opening);

/// An open session. It keeps the state between the messages of an episode, e.g. the terminal.
pub trait Session: Send {
    /// Executes the actions of a message. The same messages must have the same effects: an
    /// interrupted rollout is resumed by executing its recorded messages again.
    fn execute<'a>(
        &'a mut self,
        assistant: &'a AssistantMessage,
        episode: &'a EpisodeContext<'_>,
    ) -> BoxFuture<'a, Result<Step, ScaffoldError>>;

    /// The text on the terminal's screen, if the scaffold has a terminal.
    fn screen(&self) -> Option<String> {
        None
    }
}

/// The sandbox and the limits of one episode.
#[derive(Debug)]
pub struct EpisodeContext<'a> {
    pub sandbox: &'a Sandbox,
    /// Environment variables of the image.
    pub env: &'a [(String, String)],
    pub limits: &'a StepLimits,
    pub deadline: Deadline,
    /// Whom to blame for a lost sandbox if the evidence does not say.
    pub assume: Assume,
    /// Cancelled when the run stops: no further command of a message is started.
    pub drain: CancellationToken,
    pub machine: Machine,
}

/// Whether an agent has acted in a sandbox before the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// No. If something cannot be opened in it, e.g. a terminal, the agent is not at fault.
    Fresh,
    /// Yes, in an earlier round, step or fork. The sandbox holds what the agent left.
    Used,
}

impl EpisodeContext<'_> {
    /// The time that the episode has left.
    pub fn left(&self) -> Duration {
        self.deadline.left()
    }
}

/// Bounds of one episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepLimits {
    /// Assistant turns.
    pub turns: u32,
    /// Time of a command.
    pub command: Duration,
    /// Time of the episode: its commands, and the requests that were answered ([`Deadline`]).
    pub total: Duration,
    /// Bytes of output that one observation shows. The middle of a longer output is omitted.
    pub output_bytes: usize,
    /// Tokens of a reply. The model's request enforces this; here it is only told to the model.
    pub reply_tokens: Option<u32>,
    /// Input and output tokens of all model calls of the episode.
    pub tokens: Option<u64>,
    /// Cost of all model calls of the episode.
    pub dollars: Option<Dollars>,
    /// Tokens of the model's context. An episode ends before a request that would exceed them.
    pub context: Option<u64>,
}

impl StepLimits {
    /// The limits of scripted experts. No plan has as many turns.
    pub fn scripted(total: Duration) -> Self {
        Self {
            turns: 80,
            command: Duration::from_secs(60),
            total,
            output_bytes: 8_000,
            reply_tokens: None,
            tokens: None,
            dollars: None,
            context: None,
        }
    }
}

/// A limit in US dollars, and the prices of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dollars {
    pub limit: f64,
    /// Per 1M input tokens.
    pub usd_per_1m_input_tokens: f64,
    /// Per 1M output tokens.
    pub usd_per_1m_output_tokens: f64,
}

impl Dollars {
    /// The cost of a number of input and output tokens, in US dollars.
    pub(super) fn of(&self, input: u64, output: u64) -> f64 {
        (input as f64 * self.usd_per_1m_input_tokens + output as f64 * self.usd_per_1m_output_tokens) / 1e6
    }
}

/// The first messages of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Empty: there is no system message.
    pub system: String,
    pub prompt: String,
    /// All messages, where they are not `system` and `prompt` alone. Only installed agents have
    /// such openings.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub messages: Vec<Message>,
    pub tools: Vec<ToolDefinition>,
}

impl Opening {
    /// All messages.
    pub fn all(&self) -> Vec<Message> {
        opening_messages(&self.system, &self.prompt, &self.messages)
    }
}

/// One assistant message, from a model or a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    pub content: String,
    pub reasoning: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    pub call: Option<Key>,
    pub usage: Option<Tokens>,
    /// The reply reached its token limit, so it is incomplete.
    pub cut_off: bool,
    /// Time of the request that was answered. `None`: no request was made, e.g. by a script.
    pub served: Option<Duration>,
}

impl AssistantMessage {
    /// The message of a recorded turn.
    pub fn recorded(turn: &Turn) -> Self {
        Self {
            content: turn.content.clone(),
            reasoning: turn.reasoning.clone(),
            tool_calls: turn.tool_calls.clone(),
            call: turn.call.clone(),
            usage: turn.usage,
            cut_off: turn.cut_off,
            served: None,
        }
    }

    /// The turn that holds this message.
    pub fn into_turn(self, kind: TurnKind, acts: Vec<Act>) -> Turn {
        let Self { content, reasoning, tool_calls, call, usage, cut_off, served: _ } = self;
        Turn { content, reasoning, tool_calls, kind, acts, call, guide: None, usage, cut_off }
    }
}

/// The result of executing one assistant message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    pub kind: TurnKind,
    pub acts: Vec<Act>,
    /// Same length as `acts`.
    pub seen: Vec<ActSeen>,
    /// The next messages for the agent. Empty after it has submitted.
    pub shown: Vec<Shown>,
    /// The model call that answered the agent's question to its mentor.
    pub guide: Option<Key>,
    /// The shell of the terminal has exited.
    pub shell_ended: bool,
}

impl Step {
    /// No action was executed. `message` tells the agent why.
    pub fn malformed(message: String) -> Self {
        Self { kind: TurnKind::Malformed, shown: vec![Shown::text(message)], ..Self::default() }
    }

    /// The agent has finished.
    pub fn submitted() -> Self {
        Self { kind: TurnKind::Submitted, ..Self::default() }
    }
}

/// Measurements of an act. They are written to `observed/`, never to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActSeen {
    /// Bytes of output, before the middle was omitted.
    pub bytes: u64,
    pub milliseconds: f64,
}

/// Why a message could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The run is stopping, between two commands of a message.
    #[error("the run is stopping")]
    Drained,
    /// The sandbox did not answer. [`SandboxError::blame`] says who is at fault. `acts` came
    /// before.
    #[error("{error}")]
    Sandbox { error: SandboxError, acts: Vec<Act> },
}

impl ScaffoldError {
    /// `error`, which occurred after `acts`.
    pub(super) fn of(error: SandboxError, acts: Vec<Act>) -> Self {
        match error {
            SandboxError::Engine(error) => Self::Engine(error),
            error => Self::Sandbox { error, acts },
        }
    }
}
