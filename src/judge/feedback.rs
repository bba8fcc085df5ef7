//! Ignored errors: a tool reports an error, and the next thing said is that the task is complete.

use super::attempt::{Attempt, submissions};
use super::repetition::brief;
use super::words::{ADMISSIONS, EXPECTED, SURRENDERS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// The last attempt before a submission, if it failed visibly and nothing that was said about it admits that, or says that it had to
/// fail.
pub(super) fn ignoring_feedback(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    submissions(turns, attempts).into_iter().find_map(|(submission, attempts)| {
        let last = attempts.last()?;
        let after = turns.get(last.turn + 1..=submission)?;
        // What was done blindly afterwards may have mended it.
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
