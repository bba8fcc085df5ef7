//! Explicit refusal: e.g. "I cannot assist with this", without any work.

use super::attempt::Attempt;
use super::words::{INABILITIES, REFUSALS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// Maximum number of commands before a refusal: one look at the environment is no work.
const MOST_BEFORE: usize = 1;

/// The message that refuses, if at most one command was run before it, and none after. A "cannot"
/// after a failed command is a surrender instead.
pub(super) fn explicit_refusal(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    let started = turns.iter().rposition(|turn| !turn.acts.is_empty()).map_or(0, |last| last + 1);
    let acts: usize = turns.iter().map(|turn| turn.acts.len()).sum();
    if acts > MOST_BEFORE {
        return None;
    }
    let failed = attempts.iter().any(Attempt::failed);
    let refuses =
        |turn: &Turn| says(&REFUSALS, &turn.content) || !failed && says(&INABILITIES, &turn.content);
    let turn = started + turns.get(started..)?.iter().position(refuses)?;
    Some(Finding {
        label: Label::ExplicitRefusal,
        turns: vec![turn],
        note: "it says that it will not or cannot do what is asked, and does nothing".to_owned(),
    })
}
