//! Rules about shell scripts: the verifier's entry point and the reference.

use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::rule::RuleMatch;
use crate::lint::shell::{Command, Shell, Status, commands};

/// Commands that compute no result, e.g. `echo`.
const PLAIN: [&str; 16] = [
    "echo", "printf", "cat", "tee", "mkdir", "cd", "set", "touch", "chmod", "chown", "exit", "true", ":",
    "rm", "export", "shopt",
];
/// Commands whose status tells whether an answer is wrong.
const CHECKS: [&str; 6] = ["grep", "diff", "cmp", "test", "[", "[["];
/// Options that make a test runner write its results to a file.
const REPORTS: [&str; 9] =
    ["--junit", "--ctrf", "--json", "--report", "--html", "--output", "--resultlog", "--log-file", "--tap"];

pub(in crate::lint) fn no_reward_written(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    // An image for the verifier may contain the program that writes it.
    if task.test_scripts().next().is_none() || task.texts(in_tests).any(|(_, text)| text.contains("reward")) {
        return Vec::new();
    }
    let scripts = task.test_scripts().take(1);
    scripts
        .map(|(path, _)| RuleMatch::whole(path, "nothing in `tests/` writes /logs/verifier/reward.txt"))
        .collect()
}

/// The `test.sh` scripts, with their commands.
fn verifiers<'a>(task: &LintedTask<'a>) -> impl Iterator<Item = (&'a str, &'a str, Shell)> {
    let scripts = task.test_scripts();
    scripts.map(|(path, text)| (path, text, Shell::read(text, &LintedTask::folder_in_container(path))))
}

pub(in crate::lint) fn reward_only_on_success(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text, shell) in verifiers(task) {
        let sets = |command: &Command| command.name() == "set";
        let by_first_line = text.lines().next().is_some_and(|line| {
            line.starts_with("#!")
                && line.split_whitespace().skip(1).any(|word| word.starts_with('-') && word.contains('e'))
        });
        let mut stops = by_first_line.then_some(1);
        let trapped = shell.commands.iter().any(|command| command.name() == "trap");
        let written_by_tests = written_by_tests(task);
        let at = |command: &&Command| {
            let ends = shell.runs_tests(command) || CHECKS.contains(&command.name());
            ends && command.status == Status::Kept && !command.conditional && command.function.is_none()
        };
        for (index, command) in shell.commands.iter().enumerate() {
            if sets(command) {
                stops = stops_at_errors(command).map_or(stops, |stop| stop.then_some(command.line));
            }
            if writes_reward(command) {
                break;
            }
            let Some(set) = stops.filter(|_| at(&command)) else { continue };
            let later = shell.commands[index + 1..].iter().any(writes_reward);
            if later && !trapped && !written_by_tests {
                let message =
                    format!("`set -e` (line {set}) ends the script here when a test fails, without a reward");
                matches.push(RuleMatch::at(path, command.line, message));
            }
            break;
        }
    }
    matches
}

/// Whether a command writes the reward.
fn writes_reward(command: &Command) -> bool {
    let to_file = command.writes.iter().any(|file| file.to_lowercase().contains("reward"));
    let by_tee =
        command.name() == "tee" && command.words.iter().any(|word| word.to_lowercase().contains("reward"));
    to_file || by_tee
}

/// Whether the test modules write the reward themselves. Then the status of the test runner does
/// not matter.
fn written_by_tests(task: &LintedTask<'_>) -> bool {
    task.texts(|path| in_tests(path) && path.ends_with(".py")).any(|(_, text)| text.contains("reward."))
}

/// Whether a `set` command turns `errexit` on or off. `None` if it changes another option.
fn stops_at_errors(command: &Command) -> Option<bool> {
    let mut words = command.words.iter().skip(1).peekable();
    let mut stops = None;
    while let Some(word) = words.next() {
        let named = word.ends_with('o') && words.peek().is_some_and(|next| *next == "errexit");
        let short = word.chars().skip(1).any(|letter| letter == 'e') && !word.starts_with("--");
        match word.chars().next() {
            Some('-') if named || short => stops = Some(true),
            Some('+') if named || short => stops = Some(false),
            _ => {}
        }
    }
    stops
}

pub(in crate::lint) fn masked_exit(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, _, shell) in verifiers(task) {
        for command in shell.commands.iter().filter(|command| command.asked && shell.runs_tests(command)) {
            let message = match command.status {
                Status::Discarded => "`|| true` hides the status that `$?` reads below",
                Status::Piped if !shell.has_pipefail() && !asks_pipestatus(task, path) => {
                    "`$?` below is the status of the last command of the pipeline, not of the tests"
                }
                _ => continue,
            };
            matches.push(RuleMatch::at(path, command.line, message));
        }
    }
    matches
}

fn asks_pipestatus(task: &LintedTask<'_>, path: &str) -> bool {
    task.files.text(path).is_some_and(|text| text.contains("PIPESTATUS"))
}

/// D-16: reports a test run whose failure nothing notices.
pub(in crate::lint) fn fail_open(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    if written_by_tests(task) {
        return matches;
    }
    for (path, _, shell) in verifiers(task) {
        for command in shell.commands.iter().filter(|command| shell.runs_tests(command)) {
            let kept = command.writes.iter().any(|file| file != "/dev/null");
            let reports =
                command.words.iter().any(|word| REPORTS.iter().any(|report| word.starts_with(report)));
            if command.status == Status::Discarded && !command.captured && !kept && !reports {
                matches.push(RuleMatch::at(path, command.line, "a failing test run is swallowed"));
            }
        }
    }
    matches
}

pub(in crate::lint) fn hardcoded_solution(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let scripts = task.solution_scripts().filter(|(path, _)| path.ends_with("/solve.sh"));
    scripts
        .filter(|(_, text)| {
            let commands = commands(text);
            !commands.is_empty()
                && commands.iter().all(|command| PLAIN.contains(&command.name()))
                && text.contains('>')
        })
        .map(|(path, _)| RuleMatch::whole(path, "only writes fixed text, and computes nothing"))
        .collect()
}

pub(in crate::lint) fn sudo(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let message = "sudo is not supported: containers run with no-new-privileges";
    let mut matches = Vec::new();
    for (path, text) in task.solution_scripts() {
        let runs = commands(text).into_iter().filter(|command| {
            command.words.first().is_some_and(|word| word == "sudo" || word == "/usr/bin/sudo")
        });
        matches.extend(runs.map(|command| RuleMatch::at(path, command.line, message)));
    }
    // The word must start a command, e.g. after `sudo`, or on a line of its own.
    for (path, text) in task.texts(|path| path.ends_with("instruction.md")) {
        let lines = (1_u32..).zip(text.lines());
        let asks = lines.filter(|(_, line)| {
            line.contains("`sudo ") || line.trim_start_matches(['$', '#', ' ']).starts_with("sudo ")
        });
        matches.extend(asks.map(|(line, _)| RuleMatch::at(path, line, message)));
    }
    matches.dedup();
    matches
}
