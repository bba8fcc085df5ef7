//! Agents act in a sandbox: one loop, and for now one actor, the recipe's scripted expert.

mod honesty;
mod play;
mod protocol;
mod scripted;
pub mod terminal;
pub mod terminus;

pub use honesty::{Leak, unseen_literals};
pub use play::{AgentError, Episode, Observed, StepLimits, play};
pub use protocol::{Prompts, PromptsError, SCAFFOLD};
pub use scripted::{Move, ScriptError, ScriptedAgent, Variation};
