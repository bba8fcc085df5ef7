//! Explicit refusal: "I cannot assist with this", with no work done.

use super::attempt::Attempt;
use super::words::{INABILITIES, REFUSALS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// Attempts before a refusal, at most. One look at what there is does not make a start.
const MOST_BEFORE: usize = 1;

/// The message that refuses, if hardly anything was done before it and nothing after. Who says that it cannot, after something has
/// failed, has given up instead.
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
