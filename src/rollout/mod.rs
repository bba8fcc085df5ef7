//! Rollouts: trials whose actor is an agent.

mod casting;
mod forensics;
pub mod import;
mod old;
mod played;
mod record;
mod scripted;
mod steps;
mod venue;

pub use casting::cast;
pub use forensics::Forensics;
pub use played::{Casting, Fork, Posed, ScaffoldKind, Texts, attempt, fork, reference};
pub use record::{ROLLOUT, RolloutError, RolloutLog, read_record, read_rollout, rollout_id};
pub use scripted::{Played, episode, rollout};
pub use venue::{Afterwards, Hosted, Venue};
