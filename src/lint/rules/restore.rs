//! Rule about tests that are restored from a git repository which the solver could change.

use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::python::module;
use crate::lint::rule::RuleMatch;
use crate::lint::shell::{Command, commands};

/// Inputs of the tests. A script there makes a repository that the solver never had.
const INPUTS: &str = "tests/pristine/";

pub(in crate::lint) fn restored_tests(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    let in_tests = |path: &str| in_tests(path) && !path.starts_with(INPUTS);
    for (path, text) in task.texts(|path| in_tests(path) && path.ends_with(".sh")) {
        matches.extend(restores(&commands(text)).map(|(line, message)| RuleMatch::at(path, line, message)));
    }
    for (path, text) in task.texts(|path| in_tests(path) && path.ends_with(".py")) {
        for call in module(text).programs {
            let found = commands(&call.words);
            matches.extend(restores(&found).map(|(_, message)| RuleMatch::at(path, call.line, message)));
        }
    }
    matches
}

fn restores(commands: &[Command]) -> impl Iterator<Item = (u32, String)> {
    commands.iter().filter_map(|command| {
        let from = restored_from(command)?;
        let message = format!("git restores files from {from}, which a solver can change by a commit");
        Some((command.line, message))
    })
}

/// The revision from which a git command restores files, if a solver can move it. A commit hash
/// cannot be moved.
fn restored_from(command: &Command) -> Option<String> {
    let words = command.program();
    if command.name() != "git" {
        return None;
    }
    let mut rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
        let valued = matches!(*option, "-C" | "-c" | "--git-dir" | "--work-tree");
        rest.drain(..if valued { 2.min(rest.len()) } else { 1 });
    }
    let (verb, rest) = rest.split_first()?;
    let plain = || rest.iter().copied().filter(|word| !word.starts_with('-'));
    let has = |options: &[&str]| rest.iter().any(|word| options.contains(word));
    let revision = match *verb {
        "checkout" if has(&["-b", "-B", "--orphan"]) => return None,
        "checkout" => match rest.iter().position(|word| *word == "--") {
            Some(at) => rest[..at].iter().copied().find(|word| !word.starts_with('-')).unwrap_or("the index"),
            None => match plain().collect::<Vec<_>>()[..] {
                // The only argument is a path, or a revision of everything.
                [one] if one == "." || one.contains('/') && !one.starts_with("origin/") => "the index",
                [revision, _, ..] => revision,
                _ => return None,
            },
        },
        "restore" => {
            let named = rest.iter().find_map(|word| word.strip_prefix("--source="));
            let after =
                || rest.windows(2).find(|pair| matches!(pair[0], "-s" | "--source")).map(|pair| pair[1]);
            named.or_else(after).unwrap_or(if has(&["--staged", "-S"]) { "HEAD" } else { "the index" })
        }
        "reset" if has(&["--hard"]) => plain().next().unwrap_or("HEAD"),
        "stash" if rest.is_empty() || !has(&["list", "show", "drop", "clear"]) => "HEAD",
        // Without an output file it only prints something, as checks of git tasks do.
        "show" if !command.writes.is_empty() => plain().next()?.split_once(':')?.0,
        "archive" if command.captured || !command.writes.is_empty() => plain().next()?,
        _ => return None,
    };
    let hash = (7..=64).contains(&revision.len()) && revision.chars().all(|char| char.is_ascii_hexdigit());
    let unknown = revision.contains(['$', '`']);
    (!hash && !unknown)
        .then(|| if revision == "the index" { revision.to_owned() } else { format!("`{revision}`") })
}
