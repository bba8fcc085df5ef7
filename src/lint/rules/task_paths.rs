//! Rule about files of `/tests` and `/solution` that scripts need.

use std::collections::{BTreeMap, BTreeSet};

use super::image::DOCKERFILE;
use crate::lint::linted_task::{LintedTask, in_solution, in_tests};
use crate::lint::programs::{base_name, is_python, is_test_run};
use crate::lint::python::module;
use crate::lint::rule::RuleMatch;
use crate::lint::shell::{Command, Shell, Status, pythons};
use crate::model::RelPath;

/// Programs that run the file given as the next word.
const INTERPRETERS: [&str; 12] =
    ["bash", "sh", "dash", "zsh", "source", ".", "node", "perl", "ruby", "Rscript", "lua", "php"];
/// Programs that read the files given to them.
const READERS: [&str; 17] = [
    "cat",
    "head",
    "tail",
    "grep",
    "diff",
    "cmp",
    "jq",
    "sort",
    "uniq",
    "wc",
    "sha256sum",
    "md5sum",
    "unzip",
    "gunzip",
    "sed",
    "awk",
    "chmod",
];
/// Programs that read all of their files except the last, which they write.
const COPIERS: [&str; 5] = ["cp", "mv", "install", "ln", "rsync"];
/// Folders in a container that are copied from folders of the task.
const FOLDERS: [&str; 2] = ["/tests/", "/solution/"];

pub(in crate::lint) fn missing_task_file(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let scripts: Vec<(&str, Shell)> = task
        .texts(|path| (in_tests(path) || in_solution(path)) && path.ends_with(".sh"))
        .map(|(path, text)| (path, Shell::read(text, &LintedTask::folder_in_container(path))))
        .collect();
    let commands = || scripts.iter().flat_map(|(_, shell)| &shell.commands);
    let made: BTreeSet<&str> = commands().flat_map(makes).collect();
    let asked: BTreeSet<&str> = commands()
        .filter(|command| matches!(command.name(), "[" | "[[" | "test"))
        .flat_map(|command| command.words.iter().map(|word| word.trim_end_matches([']', ';'])))
        .collect();
    let python: Vec<(&str, &str)> =
        task.texts(|path| (in_tests(path) || in_solution(path)) && path.ends_with(".py")).collect();
    // Whether the file may come from somewhere other than the task's folder.
    let otherwise = |path: &str| {
        let folder = FOLDERS.iter().find(|folder| path.starts_with(**folder)).copied().unwrap_or_default();
        let image =
            task.files.text(DOCKERFILE).is_some_and(|text| text.contains(folder.trim_end_matches('/')));
        let verifiers = folder == "/tests/" && verifier_has_image(task);
        let by_solver = task.instructions().contains(folder);
        image || verifiers || by_solver
    };
    let mut matches: BTreeMap<(String, String), RuleMatch> = BTreeMap::new();
    let mut found = |file: &str, line: u32, path: &str| {
        let message = format!("`{path}` is used, but the task has no such file");
        let key = (file.to_owned(), path.to_owned());
        matches.entry(key).or_insert_with(|| RuleMatch::at(file, line, message));
    };
    for (file, shell) in &scripts {
        for command in shell.commands.iter().filter(|command| command.status != Status::Discarded) {
            for path in needs(command) {
                let within_made = made.iter().any(|made| is_within(path, made));
                let written = python.iter().any(|(_, text)| text.contains(base_name(path)));
                if is_missing(task, file, path)
                    && !within_made
                    && !asked.contains(path)
                    && !written
                    && !otherwise(path)
                {
                    found(file, command.line, path);
                }
            }
        }
    }
    for python in pythons(task.texts(|path| in_tests(path) || in_solution(path))) {
        for read in module(&python.text).reads {
            let within_made = made.iter().any(|made| is_within(read.path, made));
            if is_missing(task, python.file, read.path) && !within_made && !otherwise(read.path) {
                found(python.file, python.before + read.line, read.path);
            }
        }
    }
    matches.into_values().collect()
}

/// Whether the verifier's image brings its own `/tests`.
fn verifier_has_image(task: &LintedTask<'_>) -> bool {
    task.files.get("tests/Dockerfile").is_some()
        || task.verifiers().any(|verifier| {
            verifier.environment.as_ref().is_some_and(|environment| environment.docker_image.is_some())
        })
}

/// Whether a path below `/tests` or `/solution` names a file that the task lacks. `script` is the
/// file that uses the path.
fn is_missing(task: &LintedTask<'_>, script: &str, path: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+".contains(char);
    if !FOLDERS.iter().any(|folder| path.starts_with(folder) && path.len() > folder.len())
        || !path.chars().all(plain)
        || path.split('/').any(|part| part == "..")
    {
        return false;
    }
    let wanted = path.trim_matches('/');
    let of_step = script.strip_prefix("steps/").and_then(|rest| rest.split_once('/'));
    let places =
        of_step.map(|(step, _)| format!("steps/{step}/{wanted}")).into_iter().chain([wanted.to_owned()]);
    let tree = task.files;
    let there = |place: &String| {
        let all = tree.files.keys().chain(&tree.empty_folders).map(RelPath::as_str);
        let special = task.special_files.iter().map(|special| special.path.as_str());
        all.chain(special)
            .any(|path| is_within(path, place) || (is_within(place, path) && task.files.get(path).is_none()))
    };
    !places.into_iter().any(|place| there(&place))
}

fn is_within(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn arguments(command: &Command) -> impl Iterator<Item = &str> {
    command.program().iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-'))
}

/// The files that a command needs to succeed.
fn needs(command: &Command) -> Vec<&str> {
    let mut needed: Vec<&str> = command.reads.iter().map(String::as_str).collect();
    needed.extend(command.program().first().map(String::as_str));
    let name = command.name();
    let within_text = command.program().iter().any(|word| word == "-c" || word == "-e");
    if is_test_run(&command.words) {
        needed.extend(arguments(command).map(|word| word.split("::").next().unwrap_or(word)));
    } else if INTERPRETERS.contains(&name) || is_python(name) {
        needed.extend(arguments(command).next().filter(|_| !within_text));
    } else if READERS.contains(&name) {
        needed.extend(arguments(command));
    } else if COPIERS.contains(&name) {
        let files: Vec<_> = arguments(command).collect();
        needed.extend(files.split_last().map(|(_, sources)| sources).unwrap_or_default());
    }
    needed
}

/// The files and folders that a command may create: paths in it that it does not need, e.g. after
/// `-o`.
fn makes(command: &Command) -> Vec<&str> {
    let needed = needs(command);
    let named =
        command.words.iter().map(|word| word.split_once('=').map_or(word.as_str(), |(_, value)| value));
    let made = named.chain(command.writes.iter().map(String::as_str));
    made.filter(|path| FOLDERS.iter().any(|folder| path.len() > folder.len() && path.starts_with(folder)))
        .filter(|path| !needed.contains(path))
        .collect()
}
