//! Agents act in a sandbox: one loop ([`play`]) between a mind (a script or a model) and a scaffold (the protocol that it speaks).

mod arms;
mod bash;
mod bash_block;
mod honesty;
mod installed;
mod minds;
mod play;
mod react;
mod scaffold;
mod scripted;
mod summary;
mod talk;
pub mod terminal;
pub mod terminus;
mod terminus_scaffold;

pub use arms::{ArmTexts, Mentor, QUESTIONS};
pub use bash::{BASH, BashTool};
pub use bash_block::{BASH_BLOCK, BashBlock, Prompts, read_block, write_block};
pub use honesty::{Leak, unseen_literals};
pub use installed::{COMMAND, Installed, PORT, run_installed};
pub use minds::{Logprobs, ModelMind};
pub use play::{AgentError, Company, Ended, Mind, NoNotebook, Notebook, play};
pub use react::{REACT, React, STOP, read_action};
pub use scaffold::{ActSeen, Dollars, Opening, Said, Scaffold, ScaffoldError, Scene, Step, StepLimits};
pub use scripted::{Move, ScriptError, ScriptedAgent, Variation};
pub use summary::{PlainSummary, Summariser, SummaryTexts};
pub use talk::{HandedOff, HandoffSeen, Talk, TurnSeen};
pub use terminus_scaffold::{TERMINUS_JSON, TERMINUS_XML, Terminus, terminus_texts};

pub use crate::prompts::{PromptSet, PromptsError};
