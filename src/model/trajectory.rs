//! Rollouts: who acted, what was said and done, and what came of it.

use serde::{Deserialize, Serialize};

use super::{Blueprint, FailureMode, Rewards, TaskName, Verdict};

/// Who acts in a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// The recipe's expert, played from its script. Labelled `scripted` wherever it is exported.
    Scripted {
        /// `None` when it means to solve the task. The label of the trajectory is the verdict's, never this.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<FailureMode>,
    },
}

/// The committed record of one rollout (`store/rollout/…`). What commands printed lies under `observed/` by the same key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryRecord {
    pub task: TaskName,
    pub task_digest: String,
    pub environment_digest: String,
    pub attempt: u32,
    pub actor: Actor,
    /// The system prompt, verbatim.
    pub system: String,
    /// The first user message, verbatim.
    pub prompt: String,
    pub turns: Vec<Turn>,
    pub end: End,
    pub verdict: Verdict,
}

/// One assistant turn and the status of what it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Reasoning before the action.
    pub thought: String,
    /// The command, or `None` on the turn that submits.
    pub command: Option<String>,
    /// How the command ended; `None` on the turn that submits.
    pub outcome: Option<ShellOutcome>,
}

/// How one shell command ended. A failing command is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellOutcome {
    Exited(i32),
    TimedOut,
    /// The shell itself ended (`exit 9`, `exec`, a fatal signal) and was replaced.
    ShellDied(i32),
}

/// Why a rollout stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Submitted,
    StepLimit,
    TimedOut,
    SandboxLost,
}

/// A rollout with its observations: what export, `show` and ATIF read.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Stable id: the first 16 hexadecimal digits of the record's key.
    pub id: String,
    pub record: TrajectoryRecord,
    pub blueprint: Blueprint,
    /// The text shown to the actor after each command; one for each turn with a command.
    pub observations: Vec<String>,
    /// `None` where the verdict carries no reward.
    pub rewards: Option<Rewards>,
    /// Mechanical loop: the same command failed three times or more in a row with the same output.
    pub looping: bool,
}

/// Who wrote a chat message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

/// One chat message, as the model saw or said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
}
