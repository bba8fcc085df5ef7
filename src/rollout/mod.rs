//! Rollouts: trials whose actor is an agent.

mod casting;
mod forensics;
mod forked;
pub mod import;
mod old;
mod parts;
mod played;
mod record;
mod reference;
mod scaffolds;
mod scripted;
mod steps;
mod venue;

pub use casting::cast;
pub use forensics::Forensics;
pub use forked::{Fork, fork};
pub use played::{Casting, FurtherStep, Overflow, Posed, attempt};
pub use record::{ROLLOUT, RolloutError, RolloutLog, read_record, read_rollout, rollout_id};
pub use reference::reference;
pub use scaffolds::{ScaffoldKind, Texts};
pub use scripted::{Played, episode, rollout};
pub use venue::{Hosted, Slot, Venue};
