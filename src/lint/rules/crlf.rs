//! Rule about carriage returns in scripts that are executed.

use std::collections::BTreeSet;

use super::image::dockerfiles;
use crate::lint::linted_task::{LintedTask, in_solution, in_tests};
use crate::lint::pattern::line_of;
use crate::lint::programs::base_name;
use crate::lint::rule::RuleMatch;
use crate::lint::shell::{Command, Shell};
use crate::syntax::{Grammar, descendants, parse};

/// Programs that run the script given as the next word.
const SHELLS: [&str; 7] = ["bash", "sh", "dash", "zsh", "ksh", "source", "."];

/// How a script is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// By the kernel, which reads the script's first line.
    Itself,
    ByShell,
}

pub(in crate::lint) fn crlf_script(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let entry = |path: &str| {
        (in_tests(path) && path.ends_with("/test.sh")) || (in_solution(path) && path.ends_with("/solve.sh"))
    };
    let mut open: Vec<(&str, Start)> = task.texts(entry).map(|(path, _)| (path, Start::Itself)).collect();
    for (file, instructions) in dockerfiles(task) {
        let texts: Vec<String> = instructions
            .iter()
            .filter_map(|instruction| match instruction.word.as_str() {
                "RUN" => instruction.script(),
                "CMD" | "ENTRYPOINT" | "HEALTHCHECK" => Some(instruction.command_line()),
                _ => None,
            })
            .collect();
        // Such a build converts the line ends itself.
        if !texts.iter().any(|text| text.contains("dos2unix") || text.contains("\\r")) {
            let folder = file.trim_end_matches("Dockerfile");
            open.extend(texts.iter().flat_map(|text| started(task, &Shell::read(text, ""), folder)));
        }
    }
    let mut seen = BTreeSet::new();
    let mut matches = Vec::new();
    while let Some((path, start)) = open.pop() {
        if !seen.insert((path, start)) {
            continue;
        }
        let Some(text) = task.files.text(path) else { continue };
        matches
            .extend(carriage_return(text, start).map(|(line, message)| RuleMatch::at(path, line, message)));
        if is_shell(path, text) {
            open.extend(started(task, &Shell::read(text, ""), ""));
        }
    }
    matches.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    matches.dedup();
    matches
}

/// The scripts of the task that a shell text starts. With `folder`, only scripts in that folder.
fn started<'a>(task: &LintedTask<'a>, shell: &Shell, folder: &str) -> Vec<(&'a str, Start)> {
    let names: Vec<(String, Start)> = shell.commands.iter().filter_map(script_of).collect();
    let files = task.texts(|path| path.starts_with(folder));
    files
        .filter(|(path, text)| text.starts_with("#!") || path.ends_with(".sh") || path.ends_with(".bash"))
        .flat_map(|(path, _)| {
            let found = names.iter().filter(|(name, _)| {
                let elsewhere = (name.starts_with("/tests/") && !in_tests(path))
                    || (name.starts_with("/solution/") && !in_solution(path));
                base_name(path) == base_name(name.trim_end_matches('\r')) && !elsewhere
            });
            found.map(|(_, start)| (path, *start)).collect::<Vec<_>>()
        })
        .collect()
}

/// The script that a command starts.
fn script_of(command: &Command) -> Option<(String, Start)> {
    let words = command.program();
    let first = words.first()?;
    if SHELLS.contains(&base_name(first)) {
        let script = words[1..].iter().find(|word| !word.starts_with('-'))?;
        return Some((script.clone(), Start::ByShell));
    }
    (first.contains('/') || first.ends_with(".sh")).then(|| (first.clone(), Start::Itself))
}

fn is_shell(path: &str, text: &str) -> bool {
    match text.lines().next().and_then(|first| first.strip_prefix("#!")) {
        Some(first) => first.contains("sh"),
        None => path.ends_with(".sh") || path.ends_with(".bash"),
    }
}

/// The line of the first carriage return that breaks a script, and what it breaks.
fn carriage_return(text: &str, start: Start) -> Option<(u32, &'static str)> {
    let first = text.split('\n').next().unwrap_or_default();
    if start == Start::Itself && first.starts_with("#!") && first.ends_with('\r') {
        return Some((1, "the first line ends with a carriage return, so the interpreter is not found"));
    }
    if !is_shell("x.sh", text) || !text.contains("\r\n") {
        return None;
    }
    // In strings and comments a carriage return is data.
    let tree = parse(Grammar::Bash, text)?;
    let data: Vec<_> = descendants(tree.root_node())
        .filter(|node| matches!(node.kind(), "heredoc_body" | "raw_string" | "string_content" | "comment"))
        .map(|node| node.byte_range())
        .collect();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len() - 2.min(line.len());
        let breaks = line.ends_with("\r\n") && !line.trim().is_empty() && !line.trim_start().starts_with('#');
        if breaks && !data.iter().any(|range| range.contains(&end)) {
            let message =
                "the line ends with a carriage return, which the shell reads as part of the command";
            return Some((line_of(text, at), message));
        }
        at += line.len();
    }
    None
}
