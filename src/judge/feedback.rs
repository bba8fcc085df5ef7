//! Ignored errors: a command reports an error, and the next message claims that the task is complete.

use super::attempt::{Attempt, submissions};
use super::repetition::brief;
use super::words::{ADMISSIONS, EXPECTED, SURRENDERS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// The last attempt before a submission, if it failed visibly and no later message admits the failure or says that it was
/// expected.
pub(super) fn ignoring_feedback(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    submissions(turns, attempts).into_iter().find_map(|(submission, attempts)| {
        let last = attempts.last()?;
        let after = turns.get(last.turn + 1..=submission)?;
        // An act after it without visible output may have fixed the error.
        let acted = after.iter().any(|turn| turn.acts.iter().any(|act| !act.text().trim().is_empty()));
        let about = turns.get(last.turn..=submission)?;
        let wanted = about.iter().any(|turn| says(&EXPECTED, &turn.content));
        if acted || wanted || !last.visibly_failed() || after.iter().any(admits) {
            return None;
        }
        Some(Finding {
            label: Label::IgnoringFeedback,
            turns: (last.turn..=submission).collect(),
            note: format!("`{}` failed, and the work was submitted as done", brief(&last.command)),
        })
    })
}

fn admits(turn: &Turn) -> bool {
    says(&ADMISSIONS, &turn.content) || says(&SURRENDERS, &turn.content)
}
