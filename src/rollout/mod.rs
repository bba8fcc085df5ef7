//! Rollouts: trials whose actor is an agent.

mod casting;
mod record;

pub use casting::cast;
pub use record::{Judged, ROLLOUT, RolloutError, RolloutLog, TurnLog, episode, read_rollout, rollout};
