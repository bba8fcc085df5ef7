//! The unit that detectors examine: one command, or the keys typed in one turn, with its output and how it ended.

use super::screen;
use super::shell::{last_program, source_program};
use super::words::{ANSWERERS, ERRORS, FINDERS, LIMITATIONS, READERS, any_line, says};
use crate::model::{Act, ShellOutcome, Shown, Turn, TurnKind};

/// Exit status of a program whose reader closed the pipe (128 + SIGPIPE), as in `yes | head`.
const BROKEN_PIPE: i32 = 141;

/// A command, or the keys typed in one turn, with the output shown for it.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    /// Index of its turn.
    pub(super) turn: usize,
    /// Without surrounding whitespace.
    pub(super) command: String,
    pub(super) ended: Ended,
    /// Its output, without the lines that scaffolds add.
    pub(super) output: String,
    /// The complete observation.
    pub(super) shown: &'a str,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Status(ShellOutcome),
    /// Typed into a terminal: there is no exit status, only the screen.
    Unseen,
}

/// All attempts in order. Commands without an observation are left out.
pub(super) fn attempts<'a>(turns: &'a [Turn], shown: &'a [Vec<Shown>]) -> Vec<Attempt<'a>> {
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    for (index, (turn, shown)) in turns.iter().zip(shown).enumerate() {
        let keys: String = turn.acts.iter().filter_map(keys_of).collect();
        let (Some(first), true) = (shown.first(), turn.acts.iter().any(|act| keys_of(act).is_some())) else {
            commands(index, turn, shown, &mut attempts);
            continue;
        };
        let typed = screen::last_line(&keys);
        match attempts.last_mut() {
            // A turn without keys only waits: its screen continues the attempt before it.
            Some(last) if typed.is_empty() && last.ended == Ended::Unseen => {
                last.output =
                    screen::continued(&last.output, &first.content, screen::last_line(&last.command));
                last.shown = &first.content;
            }
            _ if typed.is_empty() => {}
            _ => attempts.push(Attempt {
                turn: index,
                output: screen::output(&first.content, typed),
                command: keys.trim().to_owned(),
                ended: Ended::Unseen,
                shown: &first.content,
            }),
        }
    }
    attempts
}

/// Every turn that submits, with the attempts since the previous submission: after a failed round an agent may continue.
pub(super) fn submissions<'r, 'a>(
    turns: &[Turn],
    attempts: &'r [Attempt<'a>],
) -> Vec<(usize, &'r [Attempt<'a>])> {
    let mut rest = attempts;
    let submits = turns.iter().enumerate().filter(|(_, turn)| turn.kind == TurnKind::Submitted);
    submits
        .map(|(submission, _)| {
            let (before, after) = rest.split_at(rest.partition_point(|attempt| attempt.turn < submission));
            rest = after;
            (submission, before)
        })
        .collect()
}

fn keys_of(act: &Act) -> Option<&str> {
    match act {
        Act::Keys { keys } => Some(keys),
        Act::Command { .. } => None,
    }
}

fn commands<'a>(index: usize, turn: &'a Turn, shown: &'a [Shown], attempts: &mut Vec<Attempt<'a>>) {
    let mut calls = turn.tool_calls.iter();
    for act in &turn.acts {
        let Act::Command { command, outcome } = act else { continue };
        // Function calls have one result each, including calls that could not be run; otherwise all acts of a turn share one observation.
        let called = calls.find(|call| runs(&call.arguments, command)).map(|call| call.id.as_str());
        let own = shown.iter().find(|shown| called.is_some() && shown.tool_call.as_deref() == called);
        if let (Some(outcome), Some(shown)) = (*outcome, own.or_else(|| shown.first())) {
            attempts.push(Attempt {
                turn: index,
                command: command.trim().to_owned(),
                ended: Ended::Status(outcome),
                output: without_frame(&shown.content),
                shown: &shown.content,
            });
        }
    }
}

fn runs(arguments: &str, command: &str) -> bool {
    let arguments: Option<serde_json::Value> = serde_json::from_str(arguments).ok();
    arguments
        .is_some_and(|arguments| arguments.get("command").and_then(|found| found.as_str()) == Some(command))
}

/// An observation without the lines that the text scaffolds add around a command's output.
fn without_frame(observation: &str) -> String {
    let own = |line: &&str| {
        let line = line.trim();
        !(line == "Observation:"
            || line == "(no output)"
            || line.starts_with("[exit status ") && line.ends_with(']'))
    };
    observation.lines().filter(own).collect::<Vec<_>>().join("\n")
}

impl Attempt<'_> {
    /// Whether it failed, by its exit status or by the error on the screen.
    pub(super) fn failed(&self) -> bool {
        match self.ended {
            Ended::Status(ShellOutcome::Exited(status)) => status != 0 && status != BROKEN_PIPE,
            Ended::Status(ShellOutcome::TimedOut | ShellOutcome::ShellDied(_)) => true,
            Ended::Unseen => screen::shows_error(&self.output, source_program(&self.last_typed())),
        }
    }

    /// Whether it failed and the output reports the error. An exit status of 1 from a program such as `grep` is a result, not a failure.
    pub(super) fn visibly_failed(&self) -> bool {
        match self.ended {
            Ended::Status(ShellOutcome::Exited(1)) => {
                !says(&ANSWERERS, last_program(&self.command)) && says(&ERRORS, &self.output)
            }
            Ended::Status(ShellOutcome::Exited(_) | ShellOutcome::TimedOut | ShellOutcome::ShellDied(_))
            | Ended::Unseen => self.failed(),
        }
    }

    /// Whether the output reports something that the environment lacks or forbids.
    pub(super) fn met_limitation(&self) -> bool {
        let command = self.last_typed();
        let reads = says(&READERS, source_program(&command));
        let failed = self.failed();
        failed && says(&FINDERS, last_program(&command))
            || (failed || !reads) && any_line(&LIMITATIONS, &self.output)
    }

    /// The last line typed, or the whole command of a shell.
    pub(super) fn last_typed(&self) -> String {
        match self.ended {
            Ended::Status(_) => self.command.clone(),
            Ended::Unseen => screen::last_line(&self.command).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolCall;

    #[test]
    fn results_belong_to_their_calls() {
        let call = |id: &str, arguments: &str| ToolCall {
            id: id.to_owned(),
            name: "bash".to_owned(),
            arguments: arguments.to_owned(),
        };
        let result =
            |id: &str, content: &str| Shown { tool_call: Some(id.to_owned()), content: content.to_owned() };
        let act = |command: &str, status| Act::Command {
            command: command.to_owned(),
            outcome: Some(ShellOutcome::Exited(status)),
        };
        let turns = [Turn {
            tool_calls: vec![
                call("1", "{\"command\":"),
                call("2", r#"{"command":"a"}"#),
                call("3", r#"{"command":"b","timeout":3}"#),
            ],
            kind: TurnKind::Acted,
            acts: vec![act("a", 0), act("b", 2)],
            ..Turn::default()
        }];
        let shown = [vec![
            result("1", "nothing was run"),
            result("2", "A\n[exit status 0]"),
            result("3", "B\n[exit status 2]"),
        ]];
        let seen: Vec<_> =
            attempts(&turns, &shown).into_iter().map(|attempt| (attempt.command, attempt.output)).collect();
        assert_eq!(seen, [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())]);
    }

    #[test]
    fn a_turn_without_keys_continues_the_attempt_before_it() {
        let keys = |keys: &str| Turn { acts: vec![Act::Keys { keys: keys.to_owned() }], ..Turn::default() };
        let turns = [keys(""), keys("make\n"), keys(""), keys("ls\n")];
        let shown = ["$ ", "$ make\ncc x.c", "$ make\ncc x.c\nmake: *** [all] Error 1\n$ ", "$ ls\nx.c\n$ "]
            .map(|text| vec![Shown::text(text)]);
        let seen: Vec<_> = attempts(&turns, &shown)
            .into_iter()
            .map(|attempt| (attempt.turn, attempt.failed(), attempt.output))
            .collect();
        assert_eq!(
            seen,
            [(1, true, "cc x.c\nmake: *** [all] Error 1".to_owned()), (3, false, "x.c".to_owned())]
        );
    }
}
