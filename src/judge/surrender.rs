//! Premature surrender: the environment lacks something, and the agent gives up after hardly any
//! alternative.

use super::attempt::{Attempt, submissions};
use super::repetition::brief;
use super::rigid::SMALL_EDIT;
use super::shell::{difference, source_program};
use super::words::{SURRENDERS, WORKAROUNDS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// After this many alternatives, giving up is not premature. One is a reflex, two are a search.
pub const ALTERNATIVES: usize = 2;

/// The limitation must be among this many last attempts. An earlier one did not stop the agent.
pub const RECENT: usize = 6;

/// The limitation before a submission that gives up, if fewer than [`ALTERNATIVES`] different
/// commands followed it. A search for another tool is an alternative. The same program with a small
/// edit is none.
pub(super) fn premature_surrender(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    submissions(turns, attempts).into_iter().find_map(|(submission, attempts)| {
        let recent = attempts.get(attempts.len().saturating_sub(RECENT)..)?;
        let met = recent.iter().position(Attempt::met_limitation)?;
        let (limitation, last) = (recent.get(met)?, recent.last()?);
        let after = turns.get(last.turn + 1..=submission)?;
        let gives_up = after.iter().any(|turn| says(&SURRENDERS, &turn.content));
        if !gives_up || after.iter().any(|turn| says(&WORKAROUNDS, &turn.content)) {
            return None;
        }
        let mut tried = vec![limitation];
        for attempt in recent.get(met + 1..)? {
            if !tried.iter().any(|before| is_same_idea(before, attempt)) {
                tried.push(attempt);
            }
        }
        let alternatives = tried.len() - 1;
        (alternatives < ALTERNATIVES).then(|| Finding {
            label: Label::PrematureSurrender,
            turns: (limitation.turn..=submission).collect(),
            note: format!(
                "given up after `{}` with {alternatives} alternatives tried",
                brief(&limitation.command)
            ),
        })
    })
}

fn is_same_idea(before: &Attempt<'_>, attempt: &Attempt<'_>) -> bool {
    let (one, other) = (before.last_typed(), attempt.last_typed());
    source_program(&one) == source_program(&other) && difference(&one, &other) <= SMALL_EDIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrenders_are_also_admissions() {
        let check = |ending: &str| {
            assert!(says(&SURRENDERS, ending), "{ending}");
            assert!(says(&crate::judge::words::ADMISSIONS, ending), "{ending}");
            assert!(!says(&WORKAROUNDS, ending), "{ending}");
        };
        check(
            "I have tried, and this does not work in this environment. I do not see a way around it, so I stop here.",
        );
        check("The tools here do not let me finish this, so I am leaving it as it is.");
    }
}
