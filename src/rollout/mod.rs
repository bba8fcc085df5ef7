//! Rollouts: attempts of an agent at a task, with their verdicts.

mod address;
mod attempt;
mod conversations;
mod evaluation;
mod forensics;
mod fork;
pub mod import;
mod preflight;
mod record;
mod reference;
mod scripted;
mod scripted_attempt;
mod texts;
mod turn_log;

pub use address::influences;
pub use attempt::{AgentConfig, FurtherStep, Overflow, PreparedTask, attempt};
pub use evaluation::{Evaluated, Evaluation, RoundPlan, Slot};
pub use forensics::Forensics;
pub use fork::{Fork, fork};
pub use preflight::{Preflight, image_libc, version};
pub use record::{IMPORTED, ROLLOUT, RolloutError, RolloutLog, read_record, read_rollout, rollout_id};
pub use reference::reference;
pub use scripted::{FinishedEpisode, ScriptedConfig, rollout, run_script, run_scripted_episode};
pub use texts::Texts;
