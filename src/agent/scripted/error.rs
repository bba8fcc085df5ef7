//! Errors of scripts.

use super::plan::PlannedRole;

/// Why a script cannot continue. The recipe is at fault.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    #[error(
        "turn {turn}, {role:?}: capture `{name}` (`{pattern}`) does not match what the command printed: {saw}"
    )]
    NoMatch { turn: usize, role: PlannedRole, name: String, pattern: String, saw: String },
    #[error("turn {turn}, {role:?}: the output does not match `{pattern}`: {saw}")]
    NotShown { turn: usize, role: PlannedRole, pattern: String, saw: String },
    #[error("`@{{{0}}}` is used before any step has captured it")]
    Unseen(String),
    #[error("the script has no strategy, or no decision from which a rollout could fail")]
    Nothing,
}
