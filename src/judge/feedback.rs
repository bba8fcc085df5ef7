//! Ignored errors: a tool reports an error, and the next thing said is that the task is complete.

use super::attempt::Attempt;
use super::repetition::brief;
use super::words::{ADMISSIONS, EXPECTED, SURRENDERS, says};
use super::{Finding, Label};
use crate::model::{End, TrajectoryRecord, Turn};

/// The last attempt of a trajectory that ends by submitting, if it failed visibly and nothing that was said about it admits that, or
/// says that it had to fail.
pub(super) fn ignoring_feedback(record: &TrajectoryRecord, attempts: &[Attempt<'_>]) -> Option<Finding> {
    if record.end != End::Submitted {
        return None;
    }
    let last = attempts.last()?;
    let after = record.turns.get(last.turn + 1..).filter(|after| !after.is_empty())?;
    // What was done blindly afterwards may have mended it.
    let acted = after.iter().any(|turn| turn.acts.iter().any(|act| !act.text().trim().is_empty()));
    if acted || !last.visibly_failed() || after.iter().any(admits) {
        return None;
    }
    let about = record.turns.get(last.turn..).unwrap_or_default();
    if about.iter().any(|turn| says(&EXPECTED, &turn.content)) {
        return None;
    }
    Some(Finding {
        label: Label::IgnoringFeedback,
        turns: (last.turn..record.turns.len()).collect(),
        note: format!("`{}` failed, and the work was submitted as done", brief(&last.command)),
    })
}

fn admits(turn: &Turn) -> bool {
    says(&ADMISSIONS, &turn.content) || says(&SURRENDERS, &turn.content)
}
