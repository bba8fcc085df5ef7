//! Agents act in a sandbox. The loop plays the recipe's scripted expert; `terminus` and `terminal` are Harbor's terminus-2 protocol
//! and its pane, which the loop does not play yet.

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
