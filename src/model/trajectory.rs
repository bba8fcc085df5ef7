//! Rollouts: agent, conversation, actions and result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Blueprint, Check, Difficulty, EngineeringKind, EnvironmentDigest, FailureMode, Handoff, HandoffShown,
    Key, MadeMistake, Outcome, Rewards, TaskDigest, TaskName, Verdict,
};

/// The agent of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// The recipe's expert, run from its script. Labelled `scripted` in every export.
    Scripted {
        /// The strategy of its script that it follows.
        strategy: String,
        /// The real errors that it makes.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        mistakes: Vec<MadeMistake>,
        /// `None` when it means to solve the task. The label of the trajectory is the verdict's,
        /// never this.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<ScriptedFailure>,
    },
    /// The task's own solution. It writes no message.
    Oracle,
    /// No agent: no message and no command.
    Nop,
    /// A language model.
    Model(ModelActor),
    /// An agent of another harness; the rollout is imported.
    Imported(Origin),
}

/// How a scripted expert means to lose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    pub mode: FailureMode,
    /// The mistake that stays.
    pub mistake: String,
}

/// A language model as agent, and its setting.
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
}

/// Assistance given to an agent beside the task (LongCLI-Bench §4.4 and §4.5; `fork` is ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Nothing.
    Base,
    /// After a failure, the names and messages of failed checks, and another round.
    SelfCorrection,
    /// Key steps without code, written by a planner, before it begins.
    Plan,
    /// A mentor, who can be asked a few times and gives no code.
    Interactive,
    /// Both of these.
    PlanInteractive,
    /// A new start from the exact state that another rollout had at some turn.
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

/// What an adversary can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdversaryView {
    /// The task alone.
    Blind,
    /// The tests too.
    Tests,
}

/// The source of an imported rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the agent in the source.
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// Format of the source (`ATIF-v1.6`, `terminus`).
    pub format: String,
    /// BLAKE3 of the file that it was read from.
    pub source: String,
}

impl Actor {
    /// Source of the messages, as in the column `teacher` of exported rows: a model's name, or
    /// `scripted`, `oracle`, `nop`.
    pub fn teacher(&self) -> &str {
        match self {
            Self::Scripted { .. } => "scripted",
            Self::Oracle => "oracle",
            Self::Nop => "nop",
            Self::Model(actor) => &actor.model,
            Self::Imported(origin) => origin.model.as_deref().unwrap_or(&origin.agent),
        }
    }

    /// The arm of the rollout. Agents other than our models have no assistance.
    pub fn arm(&self) -> Arm {
        match self {
            Self::Model(actor) => actor.arm,
            Self::Scripted { .. } | Self::Oracle | Self::Nop | Self::Imported(_) => Arm::Base,
        }
    }
}

/// The committed record of one rollout (`store/rollout/…`). Observations are stored under
/// `observed/` by the same key.
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
    /// The scaffold's protocol.
    pub scaffold: String,
    /// The system prompt, verbatim; empty if there is none.
    pub system: String,
    /// The first user message, verbatim.
    pub prompt: String,
    /// Functions that the agent could call.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tools: Vec<ToolDefinition>,
    pub turns: Vec<Turn>,
    pub end: End,
    pub verdict: Verdict,
    /// Verdicts that were followed by another round.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rounds: Vec<Round>,
    /// Model calls that brought plans, one for each step of the task.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plans: Vec<Key>,
    /// Handoffs: after each, the conversation continued from a new context.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub handoffs: Vec<Handoff>,
    /// The rollout that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fork: Option<ForkPoint>,
    /// Findings of deterministic forensics in its commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub exploits: Vec<Exploit>,
}

/// The cause of a rollout's result, as trainers distinguish it: only failures of the policy may
/// carry a reward of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The rollout passed.
    None,
    /// A failure of the agent, including running out of time, turns or context.
    Policy,
    /// The agent tried to pass without doing the work, successfully or not.
    Exploit,
    /// The engine failed; the result says nothing about the agent.
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

    /// Whether a trainer should leave the sample out: its reward is not about the policy.
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

    /// Its rewards for checks of these classes. They are 0 if the agent tried to pass without doing
    /// the work.
    pub fn rewards(&self, classes: &[Check]) -> Option<Rewards> {
        let rewards = self.verdict.rewards(classes)?;
        Some(if self.exploits.is_empty() { rewards } else { Rewards::NOTHING })
    }

    /// The model was told to cheat: its messages must not be used as examples.
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

/// A verdict within a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Number of turns before it.
    pub turns: usize,
    pub verdict: Verdict,
}

/// The start of a rollout that shares its first turns with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkPoint {
    /// Id of the other rollout.
    pub parent: String,
    /// Turns that both share.
    pub turns: usize,
}

/// A turn that tries to pass without doing the work, or looks like it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exploit {
    /// Turn, from 0.
    pub turn: usize,
    /// Id of the attack whose pattern fits (`D-12`).
    pub attack: String,
    pub message: String,
}

/// One message of the agent, and its actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The message, byte for byte.
    pub content: String,
    /// A reasoning model's thoughts before the message, if its server returns them separately.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tool_calls: Vec<ToolCall>,
    pub kind: TurnKind,
    /// Actions in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub acts: Vec<Act>,
    /// The model call that returned the message; token ids and log-probabilities are in its
    /// committed response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<Key>,
    /// The model call that returned a mentor's answer to it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guide: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Tokens>,
    /// The message was cut off at the token limit of a reply.
    #[serde(skip_serializing_if = "is_false", default)]
    pub cut_off: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// How a scaffold interpreted a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// The actions were carried out.
    #[default]
    Acted,
    /// The message submits the work, and ends the episode or the round.
    Submitted,
    /// The message claims completion, and the scaffold asks for confirmation.
    Claimed,
    /// The message violates the protocol; no action was carried out.
    Malformed,
    /// The message is a question to the mentor.
    Asked,
}

/// A call of a function by an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the agent wrote them, usually a JSON object; possibly malformed.
    pub arguments: String,
}

/// One action in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// A command of the long-lived shell. `outcome` is `None` if the sandbox was lost during it.
    Command { command: String, outcome: Option<ShellOutcome> },
    /// Keys typed into a terminal. There is no exit status.
    Keys { keys: String },
}

impl Act {
    /// The command or the keys.
    pub fn text(&self) -> &str {
        match self {
            Self::Command { command, .. } => command,
            Self::Keys { keys } => keys,
        }
    }
}

/// Number of prompt and reply tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub prompt: u64,
    /// Reasoning included.
    pub completion: u64,
}

/// How one shell command ended. A failing command is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellOutcome {
    Exited(i32),
    TimedOut,
    /// The shell itself ended (`exit 9`, `exec`, a fatal signal) and was replaced.
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
    /// The terminal's shell has ended, so no more keys can be typed.
    ShellEnded,
    /// The token limit of one rollout was reached.
    TokenLimit,
    /// The dollar limit of one rollout was reached.
    DollarLimit,
    /// The conversation exceeds the model's context, and summaries are disabled or did not help.
    ContextFull,
    /// The server's content filter withheld a reply, or refused what the policy had said.
    ContentFiltered,
    /// The server refused what the policy had said, and no other conversation.
    RequestRefused,
    /// After an interruption, the recorded actions were executed again and had other exit statuses.
    ResumeDiverged,
    /// Imported; the source does not say how it ended.
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

/// A rollout with its observations: what export, `show` and ATIF read.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Stable id: the first 16 hexadecimal digits of the record's key.
    pub id: String,
    pub record: TrajectoryRecord,
    pub metadata: TaskMetadata,
    /// The observations after each turn; empty after the last one, unless a limit ended the rollout
    /// there.
    pub shown: Vec<Vec<Shown>>,
    /// One for each handoff.
    pub handoffs: Vec<HandoffShown>,
    /// `None` if the verdict has no reward.
    pub rewards: Option<Rewards>,
    /// Those of each of the record's rounds that was followed by another one.
    pub round_rewards: Vec<Option<Rewards>>,
    /// Labels of the detectors and the judge, in a fixed order.
    pub labels: Vec<String>,
    /// Numbers of the record that are out of range, and left out of it.
    pub left_out: u32,
    /// The source of the labels (`rules-6`, `rules-6+MODEL@PROMPTS`).
    pub judge: String,
}

/// Metadata of a rollout's task. Fields that an imported task does not declare are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskMetadata {
    /// The domain spec, or the category that the task names.
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

/// One message to the agent, as it read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// The function call whose result it is, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call: Option<String>,
    pub content: String,
}

impl Shown {
    /// A user's message.
    pub fn text(content: impl Into<String>) -> Self {
        Self { tool_call: None, content: content.into() }
    }
}

/// The role of a chat message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

/// One chat message, byte for byte as the model read or wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
}
