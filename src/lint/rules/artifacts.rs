//! Compares the files that a separate verifier reads with the artifacts that it receives.

use std::collections::BTreeMap;

use super::config::artifacts;
use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::pattern::MOST_IN_ONE_FILE;
use crate::lint::programs::base_name;
use crate::lint::python_files::strings;
use crate::lint::rule::RuleMatch;
use crate::lint::shell::commands;

/// Folders that contain neither a solver's work nor artifacts.
const ELSEWHERE: [&str; 12] = [
    "/tests",
    "/logs",
    "/tmp",
    "/dev",
    "/proc",
    "/sys",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/solution",
    "/run",
];

pub(in crate::lint) fn unlisted_artifact(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let collects = task.verifier().is_some_and(|verifier| verifier.collect.is_some());
    let composed = task.files.get("environment/docker-compose.yaml").is_some();
    if !task.separate() || task.stepwise() || collects || composed {
        return Vec::new();
    }
    let listed: Vec<String> = artifacts(task).into_iter().map(|(_, source)| source).collect();
    // A relative path begins at the work directory, which only the image defines.
    if listed.iter().any(|source| !source.starts_with('/') || source.contains('$')) {
        return Vec::new();
    }
    let instructions = task.instructions();
    let solution: String =
        task.texts(|path| path.starts_with("solution/")).map(|(_, text)| format!("{text}\n")).collect();
    // Texts that the task's images are built from. A file whose name occurs in one may come with
    // the image.
    let of_images: Vec<(&str, &str)> =
        task.texts(|path| path.starts_with("environment/") || path == "tests/Dockerfile").collect();
    let in_image = |path: &str| {
        let name = base_name(path);
        let context = task.files.files.keys().any(|file| {
            file.as_str().strip_prefix("environment/").is_some_and(|file| base_name(file) == name)
        });
        context || of_images.iter().any(|(_, text)| text.contains(name))
    };
    let mut matches: BTreeMap<String, RuleMatch> = BTreeMap::new();
    for (file, line, path) in read_paths(task) {
        let is_listed = listed.iter().any(|source| is_within(&path, source));
        let elsewhere = ELSEWHERE.iter().any(|folder| is_within(&path, folder));
        let is_answer = names(&instructions, &path) || names(&solution, &path);
        if !is_listed && !elsewhere && is_answer && !in_image(&path) {
            let message = format!("the tests read `{path}`, but no artifact brings it to the verifier");
            matches.entry(path).or_insert_with(|| RuleMatch::at(file, line, message));
        }
    }
    matches.into_values().take(MOST_IN_ONE_FILE).collect()
}

/// Absolute paths in words of test scripts and in strings of test modules.
fn read_paths<'a>(task: &LintedTask<'a>) -> Vec<(&'a str, u32, String)> {
    let is_path = |word: &str| {
        let plain = |char: char| char.is_ascii_alphanumeric() || "/._-".contains(char);
        word.starts_with('/') && word.len() > 1 && word.chars().all(plain) && base_name(word).contains('.')
    };
    let mut found = Vec::new();
    for (file, text) in task.texts(|path| in_tests(path) && path.ends_with(".sh")) {
        for command in commands(text) {
            let words = command.words.iter().skip(1).chain(&command.reads);
            let paths = words.filter(|word| is_path(word)).cloned();
            found.extend(paths.map(|path| (file, command.line, path)));
        }
    }
    for (file, text) in task.texts(|path| in_tests(path) && path.ends_with(".py")) {
        let paths = strings(text).into_iter().filter(|(_, path)| is_path(path));
        found.extend(paths.map(|(line, path)| (file, line, path.to_owned())));
    }
    found
}

/// Whether a text contains the path itself, and not only a longer path around it.
fn names(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let part = |char: char| char.is_ascii_alphanumeric() || "_-/".contains(char);
        let before = text[..at].chars().next_back().is_some_and(|char| part(char) || char == '.');
        let after = text[at + path.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}

fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
