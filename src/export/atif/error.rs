//! Why a rollout is not written as ATIF.

use crate::export::messages::MessageError;

/// A rollout that cannot be written as ATIF.
#[derive(Debug, thiserror::Error)]
pub enum AtifError {
    #[error(transparent)]
    Damaged(#[from] MessageError),
    #[error(
        "trajectory `{id}` has {turns} turns but {stamps} time stamps\nhint: observe one for each turn, or none"
    )]
    StampCount { id: String, turns: usize, stamps: usize },
}
