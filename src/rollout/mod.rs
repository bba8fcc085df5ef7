//! Rollouts: trials whose actor is an agent.

mod evaluation;
mod forensics;
mod forked;
pub mod import;
mod parts;
mod played;
mod record;
mod reference;
mod scaffolds;
mod scripted;
mod scripted_actor;
mod steps;

pub use evaluation::{Evaluated, Evaluation, Slot};
pub use forensics::Forensics;
pub use forked::{Fork, fork};
pub use played::{AgentConfig, FurtherStep, Overflow, PreparedTask, attempt};
pub use record::{ROLLOUT, RolloutError, RolloutLog, read_record, read_rollout, rollout_id};
pub use reference::reference;
pub use scaffolds::{ScaffoldKind, Texts};
pub use scripted::{Played, episode, rollout};
pub use scripted_actor::scripted_actor;
