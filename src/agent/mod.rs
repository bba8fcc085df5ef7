//! Agents that act in a sandbox.
//!
//! One loop ([`run_episode`]) asks a policy (a script or a model) for a message. A scaffold turns
//! the message into actions, e.g. shell commands, and their results into the next message.

mod arms;
mod bash;
mod bash_block;
pub mod catalog;
mod control;
mod conversation;
mod deadline;
mod ended;
mod episode;
mod error;
mod heredoc;
mod honesty;
mod installed;
mod open;
mod policies;
mod policy;
mod program;
mod react;
mod registry;
mod replay;
mod scaffold;
mod scripted;
mod shell_command;
mod summary;
mod summary_texts;
pub mod terminal;
pub mod terminus;
mod terminus_scaffold;
mod turn_log;

pub use arms::{ArmTexts, Mentor, QUESTIONS};
pub use bash::BashTool;
pub use bash_block::{BashBlock, read_block, write_block};
pub use conversation::{Conversation, HandedOff, HandoffSeen, SideThread, ThreadSeen, TurnSeen};
pub use deadline::Deadline;
pub use ended::Ended;
pub use episode::{Hooks, run_episode};
pub use error::AgentError;
pub use honesty::{Leak, unseen_literals};
pub use installed::{FewShot, ForeignMessage, Installed, PORT, run_installed};
pub use open::open;
pub use policies::{Logprobs, ModelPolicy};
pub use policy::Policy;
pub use program::{
    AgentFile, Dialect, InstalledLayer, Invocation, Launch, Program, Start, StartContext, StartError,
    ThreadHeaders,
};
pub use react::{React, read_action};
pub use registry::SCAFFOLDS;
pub use scaffold::{
    ActSeen, AssistantMessage, Dollars, Driver, EpisodeContext, LoadScaffold, Machine, OpenSession, Opening,
    Protocol, Scaffold, ScaffoldEntry, ScaffoldError, ScaffoldLoadError, ScaffoldOptions, Session, Step,
    StepLimits,
};
pub use scripted::{
    Decision, LEAST_NOVELTY, Losing, MessageFormat, Plan, Planned, PlannedRole, ScaffoldMix,
    ScaffoldMixError, ScriptError, ScriptedAgent, ScriptedScaffolds, Shows, checked_at_the_end, decisions,
    lose, losing, novelty, passing, rehearsed,
};
pub use summary::Summariser;
pub use summary_texts::{PlainSummary, SummaryTexts};
pub use terminus_scaffold::{TERMINUS_JSON, TERMINUS_XML, Terminus};
pub use turn_log::{NoTurnLog, TurnLog};

pub use crate::prompts::{PromptSet, PromptsError};
