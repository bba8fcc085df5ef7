//! Mechanical loops: the same command again after an error. It is the lowest level of LiteCoder's
//! failures.

use super::attempt::{Attempt, Ended};
use super::{Finding, Label};
use crate::model::{ShellOutcome, Turn, TurnKind};

/// This many equal failing commands in a row are a loop. Two are a retry, e.g. of a flaky command.
pub const LOOP_LENGTH: usize = 3;

/// The first [`LOOP_LENGTH`] or more equal commands in a row that failed with the same output.
/// Otherwise, the same number of equal messages that could not be executed.
pub(super) fn mechanical_loop(turns: &[Turn], attempts: &[Attempt<'_>]) -> Option<Finding> {
    let commands = attempts.chunk_by(is_repeated).find(|run| run.len() >= LOOP_LENGTH);
    if let Some(run @ [first, ..]) = commands {
        return Some(Finding {
            label: Label::MechanicalLoop,
            turns: run.iter().map(|attempt| attempt.turn).collect(),
            note: format!("`{}` failed {} times in a row in the same way", brief(&first.command), run.len()),
        });
    }
    let messages: Vec<(usize, &Turn)> = turns.iter().enumerate().collect();
    let mut runs = messages.chunk_by(|(_, one), (_, next)| is_same_message(one, next));
    let run = runs.find(|run| run.len() >= LOOP_LENGTH)?;
    Some(Finding {
        label: Label::MechanicalLoop,
        turns: run.iter().map(|(turn, _)| *turn).collect(),
        note: format!(
            "the same message, which could not be carried out, was sent {} times in a row",
            run.len()
        ),
    })
}

fn is_repeated(one: &Attempt<'_>, next: &Attempt<'_>) -> bool {
    one.failed()
        && !is_poll(one)
        && one.ended == next.ended
        && one.command == next.command
        && one.output == next.output
}

/// Whether a command polls. Polling is a good reason to repeat. A command that timed out has not
/// polled.
fn is_poll(attempt: &Attempt<'_>) -> bool {
    let waits = attempt.command.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "sleep");
    waits && matches!(attempt.ended, Ended::Status(ShellOutcome::Exited(_)) | Ended::Unseen)
}

/// Empty messages do not count: a server or a token limit may have removed their text.
fn is_same_message(one: &Turn, next: &Turn) -> bool {
    let calls = |turn: &Turn| -> Vec<(String, String)> {
        turn.tool_calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
    };
    let says_nothing = one.content.trim().is_empty() && one.tool_calls.is_empty();
    one.kind == TurnKind::Malformed
        && next.kind == TurnKind::Malformed
        && !says_nothing
        && one.content == next.content
        && calls(one) == calls(next)
}

/// A command, shortened for a note.
pub(super) fn brief(command: &str) -> String {
    /// Maximum number of characters of its first line.
    const MOST: usize = 80;
    let line = command.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST).collect();
    if cut.len() < command.len() { format!("{cut} …") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::script::{ScriptedCommand, scripted_turns, with};
    use crate::model::ShellOutcome::{Exited, ShellDied, TimedOut};

    #[track_caller]
    fn check(commands: &[ScriptedCommand<'_>], expect: &[usize]) {
        let found = with(commands, mechanical_loop).map(|found| found.turns).unwrap_or_default();
        assert_eq!(found, expect, "{commands:?}");
    }

    #[test]
    fn loops() {
        let bad = ("make", Exited(2), "no rule");
        let good = ("ls", Exited(0), "a");
        check(&[], &[]);
        check(&[bad, bad], &[]);
        check(&[bad, bad, bad], &[0, 1, 2]);
        check(&[good, bad, bad, bad, bad, good], &[1, 2, 3, 4]);
        // Another command ends the sequence.
        check(&[bad, bad, good, bad], &[]);
        // Repeated success is no loop: it may poll, or look again.
        check(&[good, good, good], &[]);
        check(&[("sleep 5; curl -s localhost:80", Exited(7), ""); 3], &[]);
        // With another output or status, something has changed.
        check(&[bad, bad, ("make", Exited(2), "other")], &[]);
        check(&[bad, bad, ("make", Exited(1), "no rule")], &[]);
        check(&[("sleep 99", TimedOut, ""); 3], &[0, 1, 2]);
        check(&[("exit 9", ShellDied(9), ""); 3], &[0, 1, 2]);
        // Blanks around a command do not hide a loop.
        check(&[bad, ("make\n", Exited(2), "no rule"), (" make", Exited(2), "no rule")], &[0, 1, 2]);
        // The first of two loops is reported.
        let other = ("x", Exited(1), "");
        check(&[bad, bad, bad, good, other, other, other], &[0, 1, 2]);
    }

    #[test]
    fn a_command_without_observation_does_not_count() {
        let (turns, mut shown) = scripted_turns(&[("make", Exited(2), "no rule"); 3], "Done.");
        shown[2].clear();
        assert_eq!(mechanical_loop(&turns, &crate::judge::attempt::attempts(&turns, &shown)), None);
    }

    #[test]
    fn messages_that_could_not_be_carried_out() {
        let turn = |content: &str, kind| Turn { content: content.to_owned(), kind, ..Turn::default() };
        let check = |turns: &[Turn], expect: bool| {
            assert_eq!(mechanical_loop(turns, &[]).is_some(), expect, "{turns:?}");
        };
        let bad = turn("Let me look.", TurnKind::Malformed);
        check(&[bad.clone(), bad.clone()], false);
        check(&[bad.clone(), bad.clone(), bad.clone()], true);
        check(&[bad.clone(), bad.clone(), turn("Let me see.", TurnKind::Malformed)], false);
        check(&vec![turn("Let me look.", TurnKind::Acted); 3], false);
        check(&vec![turn("", TurnKind::Malformed); 3], false);
    }

    #[test]
    fn notes_are_brief() {
        assert_eq!(brief("ls"), "ls");
        assert_eq!(brief("ls\npwd"), "ls …");
        assert_eq!(brief(&"ä".repeat(100)).chars().count(), 82);
    }
}
