//! Rollouts: trials whose actor is an agent.

mod casting;
mod record;

pub use casting::cast;
pub use record::{ROLLOUT, RolloutError, RolloutLog, TurnLog, read_rollout, rollout};
