//! When things happened.

use std::sync::LazyLock;

use regex::Regex;

use super::AtifError;
use crate::model::Rollout;

/// When things happened, as it was observed: ISO 8601 with a zone (`2026-03-01T12:00:00Z`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// When the task was posed.
    pub started: String,
    /// When each turn was said.
    pub turns: Vec<String>,
}

/// Enforces one well-formed stamp a turn.
pub(super) fn check(rollout: &Rollout, stamps: &Stamps) -> Result<(), AtifError> {
    let id = || rollout.id.clone();
    let turns = rollout.record.turns.len();
    if stamps.turns.len() != turns {
        return Err(AtifError::StampCount { id: id(), turns, stamps: stamps.turns.len() });
    }
    match [&stamps.started].into_iter().chain(&stamps.turns).find(|stamp| !is_iso_8601(stamp)) {
        None => Ok(()),
        Some(stamp) => Err(AtifError::Stamp { id: id(), stamp: stamp.clone() }),
    }
}

pub(super) fn is_iso_8601(stamp: &str) -> bool {
    /// Compiled once; the pattern is fixed, so it compiles.
    static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let day = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])";
        let time = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?";
        Regex::new(&format!(r"^{day}T{time}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$")).ok()
    });
    SHAPE.as_ref().is_some_and(|shape| shape.is_match(stamp))
}
