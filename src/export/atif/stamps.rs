//! Time stamps of a rollout's steps.

use chrono::{DateTime, Utc};

use super::error::AtifError;
use crate::model::Rollout;

/// The observed time stamps of a rollout. Documents contain them as ISO 8601
/// ([`iso8601`](crate::clock::iso8601)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// When the agent was given the task.
    pub started: DateTime<Utc>,
    /// When the message of each turn arrived.
    pub turns: Vec<DateTime<Utc>>,
}

/// Returns an error unless there is one stamp for each turn.
pub(super) fn check(rollout: &Rollout, stamps: &Stamps) -> Result<(), AtifError> {
    let turns = rollout.record.turns.len();
    if stamps.turns.len() == turns {
        return Ok(());
    }
    Err(AtifError::StampCount { id: rollout.id.clone(), turns, stamps: stamps.turns.len() })
}
