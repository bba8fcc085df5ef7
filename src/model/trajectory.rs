//! Rollouts: the agent, its conversation, its actions and the verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Blueprint, Check, Difficulty, EngineeringKind, EnvironmentDigest, FailureMode, Handoff, HandoffShown,
    Key, MadeMistake, Outcome, Rewards, TaskDigest, TaskName, Thread, ThreadShown, Verdict,
};

/// The agent of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// The recipe's expert, which follows a script. Every export labels it `scripted`.
    Scripted {
        /// The strategy of the script that it follows.
        strategy: String,
        /// The mistakes that it makes.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        mistakes: Vec<MadeMistake>,
        /// How it is meant to lose. `None` if it is meant to pass. The verdict labels the
        /// trajectory, never this field.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<ScriptedFailure>,
    },
    /// The task's own solution. It writes no messages.
    Oracle,
    /// No agent: no messages and no commands.
    Nop,
    /// A language model.
    Model(ModelActor),
    /// An agent of another harness. The rollout was imported.
    Imported(Origin),
}

/// How a scripted expert is meant to lose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    pub mode: FailureMode,
    /// Id of the mistake that is never repaired.
    pub mistake: String,
}

/// A language model that acts as the agent, and its setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelActor {
    /// The model's name in the settings.
    pub model: String,
    /// Name of the endpoint in the settings.
    pub endpoint: String,
    pub arm: Arm,
    /// Set if the model is told to pass without doing the work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub adversary: Option<AdversaryView>,
    /// The installed agent through which it acts, if there is one. Its name is the scaffold's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<ProgramVersion>,
}

/// The version of an installed agent, e.g. of Codex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramVersion {
    pub version: String,
    /// Content address of its files.
    pub layer: String,
}

/// Assistance that an agent gets in addition to the task (LongCLI-Bench §4.4 and §4.5; `fork` is
/// termsmith's own).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// No assistance.
    Base,
    /// After a failure: the names and messages of the failed checks, and another round.
    SelfCorrection,
    /// A planner's key steps, without code, before the agent begins.
    Plan,
    /// A mentor that answers a few questions, without code.
    Interactive,
    /// `Plan` and `Interactive` together.
    PlanInteractive,
    /// A start from the exact state that another rollout had after some turn.
    Fork,
}

impl Arm {
    /// The id used in rows and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::SelfCorrection => "self_correction",
            Self::Plan => "plan",
            Self::Interactive => "interactive",
            Self::PlanInteractive => "plan_interactive",
            Self::Fork => "fork",
        }
    }
}

/// What an adversary is allowed to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdversaryView {
    /// The task only.
    Blind,
    /// The task and its tests.
    Tests,
}

/// Where an imported rollout came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the agent in the source, e.g. `terminus-2`.
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// Format of the source, e.g. `ATIF-v1.6` or `terminus`.
    pub format: String,
    /// BLAKE3 of the file that it was read from.
    pub source: String,
}

impl Actor {
    /// Who wrote the messages, as in the exported column `teacher`: a model's name, or `scripted`,
    /// `oracle`, `nop`.
    pub fn teacher(&self) -> &str {
        match self {
            Self::Scripted { .. } => "scripted",
            Self::Oracle => "oracle",
            Self::Nop => "nop",
            Self::Model(actor) => &actor.model,
            Self::Imported(origin) => origin.model.as_deref().unwrap_or(&origin.agent),
        }
    }

    /// The arm of the rollout. `Base` for every agent that is not one of our models.
    pub fn arm(&self) -> Arm {
        match self {
            Self::Model(actor) => actor.arm,
            Self::Scripted { .. } | Self::Oracle | Self::Nop | Self::Imported(_) => Arm::Base,
        }
    }
}

/// The stored record of one rollout (`store/rollout/…`). Its observations are in `observed/`, under
/// the same key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryRecord {
    pub task: TaskName,
    /// `None` if an imported rollout does not state it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task_digest: Option<TaskDigest>,
    /// `None` if an imported rollout does not state it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub environment_digest: Option<EnvironmentDigest>,
    pub attempt: u32,
    pub actor: Actor,
    /// The scaffold's protocol, e.g. `terminus`.
    pub scaffold: String,
    /// The system prompt, verbatim. Empty if there is none.
    pub system: String,
    /// The first user message, verbatim.
    pub prompt: String,
    /// The messages before the first turn, where they are not `system` and `prompt` alone, e.g.
    /// with examples. `system` and `prompt` then have the joined texts of these roles.
    /// [`Self::opening`] has the messages in each case.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub opening: Vec<Message>,
    /// Functions that the agent could call, as sent to the model.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tools: Vec<ToolDefinition>,
    pub turns: Vec<Turn>,
    /// The agent's other conversations, in the order of their first requests.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub threads: Vec<Thread>,
    pub end: End,
    pub verdict: Verdict,
    /// The verdicts after which another round began.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rounds: Vec<Round>,
    /// Keys of the planner's model calls, one for each step of the task.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plans: Vec<Key>,
    /// Points at which the conversation was replaced by a new one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub handoffs: Vec<Handoff>,
    /// The rollout that this one was forked from, and where.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fork: Option<ForkPoint>,
    /// Exploits that forensics found in its commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub exploits: Vec<Exploit>,
}

/// The cause of a rollout's result, as trainers distinguish it. Only failures of the policy may
/// carry a reward of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The rollout passed.
    None,
    /// The agent failed. That includes running out of time, turns or context.
    Policy,
    /// The agent tried to pass without doing the work, successfully or not.
    Exploit,
    /// The engine failed. The result says nothing about the agent.
    Sandbox,
    /// The verifier broke.
    Verifier,
}

impl FailureKind {
    /// The id used in rows and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Policy => "policy",
            Self::Exploit => "exploit",
            Self::Sandbox => "sandbox",
            Self::Verifier => "verifier",
        }
    }

    /// Whether a trainer should leave the sample out, because its reward does not speak about the
    /// policy.
    pub fn masks(self) -> bool {
        matches!(self, Self::Sandbox | Self::Verifier)
    }
}

impl TrajectoryRecord {
    /// The cause of the result.
    pub fn failure_kind(&self) -> FailureKind {
        match self.verdict.outcome {
            Outcome::Infra => FailureKind::Sandbox,
            Outcome::VerifierError => FailureKind::Verifier,
            Outcome::Pass | Outcome::Fail | Outcome::Timeout if !self.exploits.is_empty() => {
                FailureKind::Exploit
            }
            Outcome::Pass => FailureKind::None,
            Outcome::Fail | Outcome::Timeout => FailureKind::Policy,
        }
    }

    /// Whether every check passed, and forensics found no exploit.
    pub fn succeeded(&self) -> bool {
        self.failure_kind() == FailureKind::None
    }

    /// Its rewards, given the classes of the checks. All are 0 if the agent tried to pass without
    /// doing the work. `None` if the verdict has no reward.
    pub fn rewards(&self, classes: &[Check]) -> Option<Rewards> {
        let rewards = self.verdict.rewards(classes)?;
        Some(if self.exploits.is_empty() { rewards } else { Rewards::NOTHING })
    }

    /// Whether the model was told to cheat. Its messages must not become training examples.
    pub fn is_adversarial(&self) -> bool {
        matches!(&self.actor, Actor::Model(ModelActor { adversary: Some(_), .. }))
    }
}

/// A function that an agent can call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: serde_json::Value,
}

/// A verdict after which the rollout continued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Number of turns before the verdict.
    pub turns: usize,
    pub verdict: Verdict,
}

/// The point at which a fork leaves the rollout that it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkPoint {
    /// Id of the rollout that was forked.
    pub parent: String,
    /// Number of turns that both share.
    pub turns: usize,
}

/// A turn that tries to pass without doing the work, or looks like an attempt to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exploit {
    /// Number of the thread, 0 for the main one.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub thread: usize,
    /// Index of the turn in its thread, from 0.
    pub turn: usize,
    /// Id of the attack whose pattern matches, e.g. `D-12`.
    pub attack: String,
    pub message: String,
}

/// One message of the agent, and the actions that it led to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The message, byte for byte.
    pub content: String,
    /// The model's reasoning before the message, if the server returns it separately.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tool_calls: Vec<ToolCall>,
    pub kind: TurnKind,
    /// The actions, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub acts: Vec<Act>,
    /// Key of the model call that returned the message. Its stored response has the token ids and
    /// log-probabilities.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<Key>,
    /// Key of the model call that returned the mentor's answer to this message.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guide: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Tokens>,
    /// Whether the message was cut off at the token limit of a reply.
    #[serde(skip_serializing_if = "is_false", default)]
    pub cut_off: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How a scaffold interpreted a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// The actions were carried out.
    #[default]
    Acted,
    /// The message submits the work. It ends the episode or the round.
    Submitted,
    /// The message claims that the work is done, and the scaffold asks for confirmation.
    Claimed,
    /// The message violates the protocol, so no action was carried out.
    Malformed,
    /// The message is a question to the mentor.
    Asked,
}

/// A function call that an agent made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the agent wrote them. They should be a JSON object, but may be malformed.
    pub arguments: String,
}

/// One action in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// A command in the long-lived shell. `outcome` is `None` if the sandbox was lost meanwhile.
    Command { command: String, outcome: Option<ShellOutcome> },
    /// Keystrokes sent to a terminal. They have no exit status.
    Keys { keys: String },
}

impl Act {
    /// The command or the keystrokes.
    pub fn text(&self) -> &str {
        match self {
            Self::Command { command, .. } => command,
            Self::Keys { keys } => keys,
        }
    }
}

/// Token counts of a prompt and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub prompt: u64,
    /// Tokens of the reply, including reasoning.
    pub completion: u64,
}

/// How one shell command ended. A failing command is a result, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellOutcome {
    Exited(i32),
    TimedOut,
    /// The shell itself ended (e.g. `exit 9`, `exec`, a fatal signal) and was replaced. The value
    /// is its exit status.
    ShellDied(i32),
}

/// Why a rollout stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Submitted,
    StepLimit,
    TimedOut,
    SandboxLost,
    /// The terminal's shell has ended, so it takes no more keys.
    ShellEnded,
    /// The rollout reached its token limit.
    TokenLimit,
    /// The rollout reached its dollar limit.
    DollarLimit,
    /// The conversation exceeds the model's context. Summaries are disabled or did not help.
    ContextFull,
    /// The server's content filter withheld a reply, or refused the policy's messages.
    ContentFiltered,
    /// The server refused this conversation, but answered one without the policy's messages.
    RequestRefused,
    /// After an interruption, the recorded actions were repeated and had other exit statuses.
    ResumeDiverged,
    /// The rollout was imported, and its source does not say how it ended.
    Imported,
}

impl End {
    /// The id used in rows and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::StepLimit => "step_limit",
            Self::TimedOut => "timed_out",
            Self::SandboxLost => "sandbox_lost",
            Self::ShellEnded => "shell_ended",
            Self::TokenLimit => "token_limit",
            Self::DollarLimit => "dollar_limit",
            Self::ContextFull => "context_full",
            Self::ContentFiltered => "content_filtered",
            Self::RequestRefused => "request_refused",
            Self::ResumeDiverged => "resume_diverged",
            Self::Imported => "imported",
        }
    }
}

/// A rollout with its observations. Export, `show` and ATIF read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Stable id: the first 16 hexadecimal digits of the record's key.
    pub id: String,
    pub record: TrajectoryRecord,
    pub metadata: TaskMetadata,
    /// The observations after each turn. The last entry is empty, unless a limit ended the rollout
    /// there.
    pub shown: Vec<Vec<Shown>>,
    /// The messages shown at each handoff, in order.
    pub handoffs: Vec<HandoffShown>,
    /// The observations of `record.threads`, in the same order.
    pub threads: Vec<ThreadShown>,
    /// `None` if the verdict has no reward.
    pub rewards: Option<Rewards>,
    /// Rewards of the verdicts in `record.rounds`, in the same order.
    pub round_rewards: Vec<Option<Rewards>>,
    /// Labels from the detectors and the judge, in a fixed order.
    pub labels: Vec<String>,
    /// Number of values in the record that were out of range, and were removed.
    pub left_out: u32,
    /// The source of the labels, e.g. `rules-6` or `rules-6+MODEL@PROMPTS`.
    pub judge: String,
}

/// Metadata of a rollout's task. Fields that an imported task does not declare are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskMetadata {
    /// The domain's name, or the category that an imported task states.
    pub domain: String,
    pub skills: Vec<String>,
    pub operations: Vec<String>,
    pub kind: Option<EngineeringKind>,
    pub difficulty: Option<Difficulty>,
    pub language: Option<String>,
    pub persona: Option<String>,
    pub recipe: Option<String>,
    pub seed: Option<u64>,
}

impl From<&Blueprint> for TaskMetadata {
    fn from(blueprint: &Blueprint) -> Self {
        Self {
            domain: blueprint.domain.to_string(),
            skills: blueprint.skills.clone(),
            operations: blueprint.operations.clone(),
            kind: Some(blueprint.kind),
            difficulty: Some(blueprint.difficulty),
            language: Some(blueprint.language.clone()),
            persona: Some(blueprint.persona.clone()),
            recipe: blueprint.recipe().map(ToString::to_string),
            seed: Some(blueprint.seed.0),
        }
    }
}

/// One message to the agent, exactly as the agent read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Id of the function call that this is the result of. `None` for other messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call: Option<String>,
    /// Who sent it, if it is no result of a call.
    #[serde(skip_serializing_if = "Sender::is_user", default)]
    pub sender: Sender,
    pub content: String,
}

/// Who sent a message that is no result of a function call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    #[default]
    User,
    /// E.g. Claude Code, which tells its model about events in system messages.
    System,
}

impl Sender {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_user(&self) -> bool {
        *self == Self::User
    }
}

impl Shown {
    /// A user message.
    pub fn text(content: impl Into<String>) -> Self {
        Self { tool_call: None, sender: Sender::User, content: content.into() }
    }

    /// The result of the function call `id`.
    pub fn result(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call: Some(id.into()), ..Self::text(content) }
    }

    /// The message with its role.
    pub fn message(&self) -> Message {
        let role = match (&self.tool_call, self.sender) {
            (Some(_), _) => Role::Tool,
            (None, Sender::User) => Role::User,
            (None, Sender::System) => Role::System,
        };
        Message { tool_call: self.tool_call.clone(), ..Message::text(role, self.content.clone()) }
    }
}

/// The role of a chat message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    /// The result of a function call.
    Tool,
}

/// One chat message, byte for byte as the model read or wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// The model's reasoning before the message, if the message has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    /// Function calls of an assistant.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tool_calls: Vec<ToolCall>,
    /// Id of the function call that this is the result of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call: Option<String>,
}

impl Message {
    /// A message with text only.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), reasoning: None, tool_calls: Vec::new(), tool_call: None }
    }

    /// The message of a turn.
    pub fn of(turn: &Turn) -> Self {
        Self {
            reasoning: turn.reasoning.clone(),
            tool_calls: turn.tool_calls.clone(),
            ..Self::text(Role::Assistant, turn.content.clone())
        }
    }
}
