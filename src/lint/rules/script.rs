//! Shell scripts: the verifier's entry point and the reference.

use crate::lint::rule::RuleMatch;
use crate::lint::subject::{Subject, in_tests};
use crate::syntax::{Grammar, descendants, parse, text_of};

/// Commands that compute nothing.
const PLAIN: [&str; 16] = [
    "echo", "printf", "cat", "tee", "mkdir", "cd", "set", "touch", "chmod", "chown", "exit", "true", ":",
    "rm", "export", "shopt",
];
/// Programs that run tests.
const RUNNERS: [&str; 7] = ["pytest", "unittest", "cargo test", "go test", "npm test", "bats", "ctest"];

pub(in crate::lint) fn no_reward_written(subject: &Subject<'_>) -> Vec<RuleMatch> {
    // A verifier image of its own may hold the program that writes it.
    if subject.test_scripts().next().is_none()
        || subject.texts(in_tests).any(|(_, text)| text.contains("reward"))
    {
        return Vec::new();
    }
    let scripts = subject.test_scripts().take(1);
    scripts
        .map(|(path, _)| RuleMatch::whole(path, "nothing in `tests/` writes /logs/verifier/reward.txt"))
        .collect()
}

pub(in crate::lint) fn reward_only_on_success(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in subject.test_scripts() {
        let lines = || (1_u32..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with('#'));
        let stops = lines().find(|(_, line)| stops_at_errors(line));
        let runs = lines().find(|(_, line)| RUNNERS.iter().any(|runner| line.contains(runner)));
        let (Some((set, _)), Some((run, command))) = (stops, runs) else { continue };
        let writes = |line: &str| line.contains("reward") && (line.contains('>') || line.contains("tee"));
        let before = lines().any(|(number, line)| number < run && writes(line));
        let guarded = command.contains("||") || command.trim_start().starts_with("if ");
        let relaxed = lines().any(|(number, line)| (set..=run).contains(&number) && line.contains("set +e"));
        let trapped = text.contains("trap ");
        if set < run && !before && !guarded && !relaxed && !trapped {
            let message =
                format!("`set -e` (line {set}) ends the script here when a test fails, without a reward");
            matches.push(RuleMatch::at(path, run, message));
        }
    }
    matches
}

fn stops_at_errors(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("set")
        && words.any(|word| {
            word == "errexit" || (word.starts_with('-') && !word.starts_with("--") && word.contains('e'))
        })
}

pub(in crate::lint) fn masked_exit(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in subject.test_scripts() {
        for (number, line) in (1_u32..).zip(text.lines()) {
            let runs = RUNNERS.iter().any(|runner| line.contains(runner));
            let masked = line.split_once("||").is_some_and(|(_, after)| {
                matches!(after.split_whitespace().next(), Some("true" | ":" | "true;"))
            });
            let asks_after = text.lines().skip(number as usize).any(|line| line.contains("$?"));
            if runs && masked && asks_after && !line.trim_start().starts_with('#') {
                matches.push(RuleMatch::at(
                    path,
                    number,
                    "`|| true` hides the status that `$?` is asked for below",
                ));
            }
        }
    }
    matches
}

pub(in crate::lint) fn hardcoded_solution(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let scripts = subject.solution_scripts().filter(|(path, _)| path.ends_with("/solve.sh"));
    scripts
        .filter(|(_, text)| {
            let names = command_names(text);
            !names.is_empty() && names.iter().all(|name| PLAIN.contains(&name.as_str())) && text.contains('>')
        })
        .map(|(path, _)| RuleMatch::whole(path, "only writes fixed text; nothing is computed"))
        .collect()
}

/// The first word of every command in a script, at any depth. Empty where it is no bash.
fn command_names(script: &str) -> Vec<String> {
    let Some(tree) = parse(Grammar::Bash, script) else { return Vec::new() };
    descendants(tree.root_node())
        .filter(|node| node.kind() == "command_name")
        .map(|node| text_of(node, script).to_owned())
        .collect()
}
