//! Ignored errors: a command shows an error, and the next message claims that the task is complete.

use std::sync::LazyLock;

use regex::Regex;

use super::attempt::{Attempt, submissions};
use super::repetition::brief;
use super::words::{ADMISSIONS, EXPECTED, SURRENDERS, says};
use super::{Finding, Label};
use crate::model::Turn;

/// The last attempt before a submission, if it visibly failed. Later messages neither admit the
/// failure nor say that it was expected.
pub(super) fn ignoring_feedback(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    submissions(turns, attempts).into_iter().find_map(|(submission, attempts)| {
        let last = attempts.last()?;
        let after = turns.get(last.turn + 1..=submission)?;
        // An act without output may have repaired the error.
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

/// The agent's own check failed. The agent neither ran it again with success, nor ran a command
/// without output afterwards, which may be a repair.
pub(super) fn ignoring_own_check(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    submissions(turns, attempts).into_iter().find_map(|(submission, attempts)| {
        let (at, failed) = attempts
            .iter()
            .enumerate()
            .rev()
            .find(|(_, attempt)| unexpected(&attempt.output, &attempt.command))?;
        let later = attempts.get(at + 1..)?;
        let passed_later = later.iter().any(|other| other.command == failed.command);
        let repaired = later.iter().any(|other| other.output.trim().is_empty());
        let about = turns.get(failed.turn..=submission)?;
        if passed_later || repaired || about.iter().any(|turn| admits(turn) || says(&EXPECTED, &turn.content))
        {
            return None;
        }
        Some(Finding {
            label: Label::IgnoringFeedback,
            turns: (failed.turn..=submission).collect(),
            note: format!(
                "`{}` printed another value than it expected, and the work was submitted as done",
                brief(&failed.command)
            ),
        })
    })
}

/// Whether an output has an expected value and then another actual value, on the same line or the
/// next, e.g. `expected: 3` and `actual: 4`. Lines of the command do not count: a terminal echoes
/// them.
fn unexpected(output: &str, command: &str) -> bool {
    static VALUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?im)\b(?:expected|wanted)\s*[:=]\s*(\S.*?)[,;]?\s+(?:actual|got|found)\s*[:=][ \t]*(.*)$",
        )
        .ok()
    });
    let Some(values) = VALUES.as_ref() else { return false };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // The terminal wraps long lines, so an echo may be only the start of a line.
    let is_echo = |line: &&str| {
        let typed = line.strip_prefix("> ").map(str::trim).filter(|typed| !typed.is_empty());
        typed.is_some_and(|typed| command.lines().any(|line| line.trim().starts_with(typed)))
    };
    let printed: Vec<&str> = output.lines().filter(|line| !is_echo(line)).collect();
    values.captures_iter(&printed.join("\n")).any(|found| {
        let value = |group| found.get(group).map(|value| words(value.as_str())).unwrap_or_default();
        let (expected, actual) = (value(1), value(2));
        // "expected: 2 rows, actual: 2" is no difference.
        actual.is_empty() || !(expected.starts_with(&actual) || actual.starts_with(&expected))
    })
}

fn admits(turn: &Turn) -> bool {
    says(&ADMISSIONS, &turn.content) || says(&SURRENDERS, &turn.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexpected_values_are_seen() {
        let check = |output: &str, expect: bool| {
            assert_eq!(unexpected(output, "echo \"expected: 3\"\necho \"actual: $x\""), expect, "{output}");
        };
        check("expected: 3\nactual:   3\n", false);
        check("expected: 3\nactual:   4\n", true);
        check("expected: a  b\nactual: a b \n", false);
        check("expected: 2 rows, actual: 2", false);
        check("expected: 2 rows, actual: 3", true);
        check("expected: 2, actual: 2", false);
        check("wanted=x got=y", true);
        check("expected: x\nsomething else\nactual: y", false);
        check("no expected value", false);
        check("expected: x\nactual:\n", true);
        check("> echo \"expected: 3\"\n> echo \"actual: $x\"\n> }\nexpected: 3\nactual: 3", false);
        check("> echo \"expected: 3\"\n> echo \"actual: $x\"\n> }\nexpected: 3\nactual: 4", true);
    }
}
