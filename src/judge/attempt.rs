//! The unit of detectors: a command, or the keys of one turn, with its output and how it ended.

use super::called::called;
use super::screen;
use super::shell::{last_program, source_program};
use super::words::{ANSWERERS, ERRORS, FINDERS, LIMITATIONS, READERS, any_line, says};
use crate::model::{Act, ShellOutcome, Shown, Turn, TurnKind};

/// Exit status of a program whose reader closed the pipe (128 + SIGPIPE), e.g. of `yes | head`.
const BROKEN_PIPE: i32 = 141;

/// A command, or the keys of one turn, with the output that was shown for it.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    /// Index of its turn, from 0.
    pub(super) turn: usize,
    /// Without blanks around it.
    pub(super) command: String,
    pub(super) ended: Ended,
    /// The output, without the lines that scaffolds add.
    pub(super) output: String,
    /// The whole observation.
    pub(super) shown: &'a str,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Status(ShellOutcome),
    /// It was typed into a terminal, or called by an imported agent. There is no exit status, only
    /// the screen or the result.
    Unseen,
}

/// All attempts, in order. A turn without an observation has none.
pub(super) fn attempts<'a>(turns: &'a [Turn], shown: &'a [Vec<Shown>]) -> Vec<Attempt<'a>> {
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    for (index, (turn, shown)) in turns.iter().zip(shown).enumerate() {
        let Some(first) = shown.first() else { continue };
        let types = turn.acts.iter().any(|act| matches!(act, Act::Keys { .. }));
        // Several calls can share a result, as the keys of a turn share a screen.
        let answered_apart = shown.iter().any(|shown| shown.tool_call.is_some());
        if turn.acts.is_empty() && turn.kind == TurnKind::Acted {
            attempts.extend(called(&turn.tool_calls, shown).into_iter().map(|called| Attempt {
                turn: index,
                command: called.command,
                ended:
                    called.status.map_or(Ended::Unseen, |status| Ended::Status(ShellOutcome::Exited(status))),
                output: called.output,
                shown: called.shown,
            }));
        } else if types && !answered_apart {
            add_typed(index, &keys_of(turn), Some(&first.content), &mut attempts);
        } else {
            add_acts(index, turn, shown, &mut attempts);
        }
    }
    attempts
}

/// All turns that submit, each with the attempts since the submission before it: after a failed
/// round, an agent may continue.
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

/// The keys of a turn. Calls of imported agents have no line end, so each becomes a line.
fn keys_of(turn: &Turn) -> String {
    let mut keys = String::new();
    for act in &turn.acts {
        if let Act::Keys { keys: more } = act {
            if !keys.is_empty() && !keys.ends_with('\n') {
                keys.push('\n');
            }
            keys.push_str(more);
        }
    }
    keys
}

/// Adds the keys of turn `index`. `shown` is the screen or the result. `None` if there is neither.
fn add_typed<'a>(index: usize, keys: &str, shown: Option<&'a str>, attempts: &mut Vec<Attempt<'a>>) {
    let typed = screen::last_line(keys);
    match attempts.last_mut() {
        // Without keys the agent only waits: the screen continues the attempt before.
        Some(last) if typed.is_empty() && last.ended == Ended::Unseen => {
            if let Some(shown) = shown {
                last.output = screen::continued(&last.output, shown, screen::last_line(&last.command));
                last.shown = shown;
            }
        }
        _ if typed.is_empty() => {}
        _ => attempts.push(Attempt {
            turn: index,
            output: shown.map(|shown| screen::output(shown, typed)).unwrap_or_default(),
            command: keys.trim().to_owned(),
            ended: Ended::Unseen,
            shown: shown.unwrap_or_default(),
        }),
    }
}

/// Adds each act of turn `index` with its own result.
fn add_acts<'a>(index: usize, turn: &'a Turn, shown: &'a [Shown], attempts: &mut Vec<Attempt<'a>>) {
    let mut calls = turn.tool_calls.iter();
    for act in &turn.acts {
        // Each function call has its own result, also one that could not be run. All other acts of
        // a turn share an observation.
        let mut later = calls.clone();
        let called = later.find(|call| runs(&call.arguments, act.text())).map(|call| call.id.as_str());
        if called.is_some() {
            calls = later;
        }
        let own = shown.iter().find(|shown| called.is_some() && shown.tool_call.as_deref() == called);
        match act {
            Act::Command { command, outcome } => {
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
            Act::Keys { keys } => {
                add_typed(index, keys, own.map(|shown| shown.content.as_str()), attempts);
            }
        }
    }
}

/// Whether a call with these arguments runs `text`. Agents have different names for the argument
/// (see `rollout::import`).
fn runs(arguments: &str, text: &str) -> bool {
    const NAMES: [&str; 4] = ["command", "cmd", "script", "keystrokes"];
    let arguments: Option<serde_json::Value> = serde_json::from_str(arguments).ok();
    arguments.is_some_and(|arguments| {
        NAMES.iter().any(|name| arguments.get(name).and_then(|found| found.as_str()) == Some(text))
    })
}

/// An observation without the lines that the text scaffolds add to an output.
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
    /// Whether it failed, by its exit status or by an error on the screen.
    pub(super) fn failed(&self) -> bool {
        match self.ended {
            Ended::Status(ShellOutcome::Exited(status)) => status != 0 && status != BROKEN_PIPE,
            Ended::Status(ShellOutcome::TimedOut | ShellOutcome::ShellDied(_)) => true,
            Ended::Unseen => screen::shows_error(&self.output, source_program(&self.last_typed())),
        }
    }

    /// Whether it failed and the output shows an error. Status 1 of a program like `grep` is a
    /// result, and no failure.
    pub(super) fn visibly_failed(&self) -> bool {
        match self.ended {
            Ended::Status(ShellOutcome::Exited(1)) => {
                !says(&ANSWERERS, last_program(&self.command)) && says(&ERRORS, &self.output)
            }
            Ended::Status(ShellOutcome::Exited(_) | ShellOutcome::TimedOut | ShellOutcome::ShellDied(_))
            | Ended::Unseen => self.failed(),
        }
    }

    /// Whether the output says that the environment lacks or forbids something.
    pub(super) fn met_limitation(&self) -> bool {
        let command = self.last_typed();
        let reads = says(&READERS, source_program(&command));
        let failed = self.failed();
        failed && says(&FINDERS, last_program(&command))
            || (failed || !reads) && any_line(&LIMITATIONS, &self.output)
    }

    /// The last line that was typed, or the whole command of a shell.
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
        let result = |id: &str, content: &str| Shown::result(id, content);
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
    fn imported_calls_are_attempts_of_their_own() {
        let call = |id: &str, arguments: &str| ToolCall {
            id: id.to_owned(),
            name: "shell".to_owned(),
            arguments: arguments.to_owned(),
        };
        let keys = |keys: &str| Act::Keys { keys: keys.to_owned() };
        let result = |id: &str, content: &str| Shown::result(id, content);
        let failure = "bash: frobnicate: command not found";
        type Row<'a> = (&'a str, Vec<ToolCall>, Vec<Act>, Vec<Shown>, &'a [(&'a str, &'a str, bool)]);
        let rows: [Row<'_>; 6] = [
            (
                "one result each, in another order",
                vec![call("1", r#"{"command":"ls"}"#), call("2", r#"{"cmd":"frobnicate"}"#)],
                vec![keys("ls"), keys("frobnicate")],
                vec![result("2", failure), result("1", "a.txt")],
                &[("ls", "a.txt", false), ("frobnicate", failure, true)],
            ),
            (
                "calls of other tools between them",
                vec![
                    call("1", r#"{"thought":"hm"}"#),
                    call("2", r#"{"script":"ls"}"#),
                    call("3", r#"{"keystrokes":"ls"}"#),
                ],
                vec![keys("ls"), keys("ls")],
                vec![result("1", "noted"), result("2", "a.txt"), result("3", "b.txt")],
                &[("ls", "a.txt", false), ("ls", "b.txt", false)],
            ),
            (
                "a call without a result",
                vec![call("1", r#"{"cmd":"touch x"}"#), call("2", r#"{"cmd":"frobnicate"}"#)],
                vec![keys("touch x"), keys("frobnicate")],
                vec![result("2", failure)],
                &[("touch x", "", false), ("frobnicate", failure, true)],
            ),
            (
                "one result without an id for both",
                vec![call("1", r#"{"cmd":"cd /app"}"#), call("2", r#"{"cmd":"ls"}"#)],
                vec![keys("cd /app"), keys("ls")],
                vec![Shown::text("a.txt")],
                &[("cd /app\nls", "a.txt", false)],
            ),
            (
                "an act that no call has",
                vec![call("1", r#"{"cmd":"ls"}"#)],
                vec![keys("pwd"), keys("ls")],
                vec![result("1", "a.txt")],
                &[("pwd", "", false), ("ls", "a.txt", false)],
            ),
            ("no result", vec![call("1", r#"{"cmd":"ls"}"#)], vec![keys("ls")], vec![], &[]),
        ];
        for (what, tool_calls, acts, shown, expect) in rows {
            let turns = [Turn { tool_calls, acts, ..Turn::default() }];
            let shown = [shown];
            let found = attempts(&turns, &shown);
            let found: Vec<_> = found
                .iter()
                .map(|attempt| (attempt.command.as_str(), attempt.output.as_str(), attempt.failed()))
                .collect();
            assert_eq!(found, expect, "{what}");
        }
    }

    /// Agents with a loop of their own have no acts. Their results state how a command ended.
    #[test]
    fn calls_without_acts_are_attempts() {
        let check = |result: &str, expect: &[(&str, bool)]| {
            let call = ToolCall {
                id: "1".to_owned(),
                name: "Bash".to_owned(),
                arguments: r#"{"command": "python3 check.py"}"#.to_owned(),
            };
            let turns = [Turn { tool_calls: vec![call], ..Turn::default() }];
            let shown = [vec![Shown::result("1", result)]];
            let found = attempts(&turns, &shown);
            let found: Vec<_> =
                found.iter().map(|attempt| (attempt.command.as_str(), attempt.visibly_failed())).collect();
            assert_eq!(found, expect, "{result}");
        };
        let command = "python3 check.py";
        check(r#"{"returncode": 2, "output": "AssertionError"}"#, &[(command, true)]);
        check("Process exited with code 1\nOutput:\nAssertionError: x", &[(command, true)]);
        check("AssertionError: x\n[The command completed with exit code 1.]", &[(command, true)]);
        check("fine\n[The command completed with exit code 0.]", &[(command, false)]);
        check("fine", &[(command, false)]);
    }

    #[test]
    fn keys_of_one_turn_are_one_attempt() {
        let check = |typed: &[&str], expect: &str| {
            let acts = typed.iter().map(|keys| Act::Keys { keys: (*keys).to_owned() }).collect();
            let (turns, shown) = ([Turn { acts, ..Turn::default() }], [vec![Shown::text("$ ")]]);
            let found: Vec<_> = attempts(&turns, &shown).into_iter().map(|attempt| attempt.command).collect();
            assert_eq!(found, [expect], "{typed:?}");
        };
        check(&["cd /app\n", "ls\n"], "cd /app\nls");
        check(&["cd /app", "ls"], "cd /app\nls");
        check(&["", "ls\n"], "ls");
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
