//! Which turns of a rollout are worth imitating.

use std::ops::Range;

use serde::Serialize;

use super::actions::normalised;
use super::function_messages::is_as_written;
use crate::judge::commands_run;
use crate::model::{Actor, Rollout, TurnKind};
use crate::syntax::{Grammar, descendants, parse, text_of};

/// How turns that went wrong are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedTurns {
    /// They stay in the conversation, but are not trained on: `train` is false.
    #[default]
    Mask,
    /// They are trained on like all others.
    All,
    /// Trajectories with such turns are left out.
    Drop,
}

impl FailedTurns {
    /// The id used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mask => "mask",
            Self::All => "all",
            Self::Drop => "drop",
        }
    }

    /// For each turn of a rollout, whether to train on it.
    pub(super) fn flags(self, rollout: &Rollout) -> Vec<bool> {
        match self {
            Self::Mask | Self::Drop => flags(rollout),
            Self::All => vec![true; rollout.record.turns.len()],
        }
    }
}

impl FailedTurns {
    /// The flags of some turns of a thread.
    pub(super) fn flags_of(self, thread: &Rollout, turns: Range<usize>) -> Vec<bool> {
        self.flags(thread).get(turns).unwrap_or_default().to_vec()
    }
}

/// For each turn, whether it is worth imitating. False if
/// - its message violates the protocol, e.g. the arguments of a call are malformed,
/// - its command reported an error,
/// - it wrote a file that was written again, differently, after a later command failed, or
/// - a scripted expert makes or fails to repair a mistake in it.
pub fn flags(rollout: &Rollout) -> Vec<bool> {
    let turns = &rollout.record.turns;
    let mut flags: Vec<bool> =
        turns.iter().map(|turn| turn.kind != TurnKind::Malformed && is_as_written(turn)).collect();
    let runs = commands_run(turns, &rollout.shown);
    for run in runs.iter().filter(|run| run.reports_error) {
        clear(&mut flags, run.turn);
    }
    for turn in repaired(rollout) {
        clear(&mut flags, turn);
    }
    // A script states which of its turns are wrong, whatever its checks printed.
    if let Actor::Scripted { mistakes, .. } = &rollout.record.actor {
        for mistake in mistakes {
            clear(&mut flags, mistake.made);
            mistake.wrong_repairs.iter().for_each(|turn| clear(&mut flags, *turn));
        }
    }
    flags
}

/// Number of commands that reported an error, and how many of them a successful command in a later
/// turn followed.
pub(super) fn errors_and_recoveries(rollout: &Rollout) -> (usize, usize) {
    let runs = commands_run(&rollout.record.turns, &rollout.shown);
    let errors = runs.iter().filter(|run| run.reports_error).count();
    let recovered = runs.iter().enumerate().filter(|(at, run)| {
        run.reports_error && runs.iter().skip(at + 1).any(|later| !later.failed && later.turn > run.turn)
    });
    (errors, recovered.count())
}

fn clear(flags: &mut [bool], turn: usize) {
    if let Some(flag) = flags.get_mut(turn) {
        *flag = false;
    }
}

/// Indices of turns that wrote a file that was repaired later. A check that prints a failure but
/// exits with status 0 goes unnoticed.
pub(super) fn repaired(rollout: &Rollout) -> Vec<usize> {
    let turns = &rollout.record.turns;
    let failures: Vec<usize> = commands_run(turns, &rollout.shown)
        .into_iter()
        .filter_map(|run| run.failed.then_some(run.turn))
        .collect();
    let mut written: Vec<(usize, Write)> = Vec::new();
    for (turn, acts) in turns.iter().map(|turn| &turn.acts).enumerate() {
        for act in acts {
            written.extend(writes(act.text()).into_iter().map(|write| (turn, write)));
        }
    }
    let is_repaired = |(turn, first): &(usize, Write)| {
        written.iter().any(|(later, again)| {
            let failed_between = || failures.iter().any(|failed| (*turn..*later).contains(failed));
            // The same command again is a repetition. Appending to a file does not repair it.
            again.path == first.path && again.command != first.command && !again.appends && failed_between()
        })
    };
    let mut repaired: Vec<usize> =
        written.iter().filter(|write| is_repaired(write)).map(|(turn, _)| *turn).collect();
    repaired.dedup();
    repaired
}

/// A file that a command writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    path: String,
    appends: bool,
    /// The whole command, normalised.
    command: String,
}

/// The files that a command writes by redirection, `tee`, `sed -i`, `cp` or `mv`. Paths are as the
/// command spells them.
fn writes(command: &str) -> Vec<Write> {
    let Some(tree) = parse(Grammar::Bash, command) else { return Vec::new() };
    let whole = normalised(command);
    let write = |path: &str, appends| {
        let path = path.trim().trim_matches(['"', '\'']).to_owned();
        let file = !path.is_empty() && !path.starts_with(['&', '-']) && !path.starts_with("/dev/");
        file.then(|| Write { path, appends, command: whole.clone() })
    };
    let found = descendants(tree.root_node()).flat_map(|node| {
        let text = text_of(node, command).trim();
        match node.kind() {
            "file_redirect" => {
                let target = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
                match (target.strip_prefix(">>"), target.strip_prefix('>')) {
                    (Some(path), _) => write(path, true).into_iter().collect(),
                    (None, Some(path)) => write(path.trim_start_matches('|'), false).into_iter().collect(),
                    (None, None) => Vec::new(),
                }
            }
            "command" => written_by_program(text)
                .into_iter()
                .filter_map(|(path, appends)| write(path, appends))
                .collect(),
            _ => Vec::new(),
        }
    });
    found.collect()
}

/// The files that a simple command writes, each with whether it is appended to.
fn written_by_program(command: &str) -> Vec<(&str, bool)> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let words: Vec<&str> = words.take_while(|word| !word.starts_with(['<', '>'])).collect();
    let flag = |short: char| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(short))
    };
    match program {
        "tee" => words.iter().filter(|word| !word.starts_with('-')).map(|path| (*path, flag('a'))).collect(),
        "sed" if flag('i') => words.last().map(|path| (*path, false)).into_iter().collect(),
        "cp" | "mv" => words.last().map(|path| (*path, false)).into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;
    use crate::model::{Act, ShellOutcome, Shown, Turn};

    #[test]
    fn written_files() {
        let check = |command: &str, expect: &[(&str, bool)]| {
            let found = writes(command);
            let found: Vec<_> = found.iter().map(|write| (write.path.as_str(), write.appends)).collect();
            assert_eq!(found, expect, "{command}");
        };
        check("ls", &[]);
        check("make 2>&1 | tail -3", &[]);
        check("make > /dev/null", &[]);
        check("echo a > b.txt", &[("b.txt", false)]);
        check("echo a >> 'b.txt'", &[("b.txt", true)]);
        check("cat > /app/x.py <<'EOF'\nprint('a > b')\nEOF", &[("/app/x.py", false)]);
        check("cat <<'EOF' > /app/x.py\nprint(1)\nEOF", &[("/app/x.py", false)]);
        check("echo a | tee -a log", &[("log", true)]);
        check("sed -i 's/a/b/' /app/x.py && ls", &[("/app/x.py", false)]);
        check("sed -n 1p /app/x.py", &[]);
        check("cp a b; mv c /d/e", &[("b", false), ("/d/e", false)]);
    }

    #[test]
    fn turns_worth_imitating() {
        let check = |commands: &[(&str, i32, &str)], expect: &[bool]| {
            let mut rollout = fixture::rollout("games", 0, 0, 0, 8);
            let submission = rollout.record.turns.pop().unwrap();
            rollout.shown.clear();
            for (command, status, output) in commands {
                rollout.record.turns.push(Turn {
                    content: format!("I run it.\n\n```bash\n{command}\n```"),
                    acts: vec![Act::Command {
                        command: (*command).to_owned(),
                        outcome: Some(ShellOutcome::Exited(*status)),
                    }],
                    ..Turn::default()
                });
                rollout.shown.push(vec![Shown::text(format!("{output}\n[exit status {status}]"))]);
            }
            rollout.record.turns.push(submission);
            rollout.shown.push(Vec::new());
            assert_eq!(flags(&rollout), expect, "{commands:?}");
        };
        let (write, rewrite, test) = ("echo 1 > a.py", "sed -i s/1/2/ a.py", "python3 check.py");
        let wrong = "AssertionError: 1 is not 2";
        check(&[("ls", 0, "a")], &[true, true]);
        check(&[("cat nothing", 1, "cat: nothing: No such file or directory")], &[false, true]);
        // A non-zero exit status can be an answer, e.g. of `diff`.
        check(&[("diff a b", 1, "< 1\n> 2")], &[true, true]);
        check(
            &[(write, 0, ""), (test, 1, wrong), (rewrite, 0, ""), (test, 0, "ok")],
            &[false, false, true, true, true],
        );
        check(&[(write, 0, ""), ("diff a b", 1, "< 1"), (rewrite, 0, "")], &[false, true, true, true]);
        // Nothing failed in between, or nothing was repaired.
        check(&[(write, 0, ""), (test, 0, "ok"), (rewrite, 0, "")], &[true, true, true, true]);
        check(&[(write, 0, ""), (test, 1, wrong), ("echo 2 >> a.py", 0, "")], &[true, false, true, true]);
        check(&[(write, 0, ""), (test, 1, wrong), (write, 0, "")], &[true, false, true, true]);
        check(&[(write, 0, ""), (test, 1, wrong), ("echo 2 > b.py", 0, "")], &[true, false, true, true]);
    }
}
