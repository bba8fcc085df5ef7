//! Explicit refusal: "I cannot assist with this", with no work done.

use super::attempt::Attempt;
use super::words::{INABILITIES, REFUSALS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// Maximum number of attempts before a refusal: a single look at the environment is not work.
const MOST_BEFORE: usize = 1;

/// The refusing message, if hardly any work was done before it and none after. A message that says "cannot" after a failure
/// is a surrender instead.
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
