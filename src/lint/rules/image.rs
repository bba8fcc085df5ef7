//! Rules about Dockerfiles.

use std::collections::BTreeSet;

use crate::lint::linted_task::{LintedTask, in_solution, in_tests};
use crate::lint::rule::RuleMatch;
use crate::syntax::dockerfile::{Instruction, instructions};

pub(super) const DOCKERFILE: &str = "environment/Dockerfile";
/// Minimum bytes of files that are compared. Shorter files may be equal by chance.
const TELLING_BYTES: usize = 64;

/// Every Dockerfile of the task: its path and its instructions.
pub(super) fn dockerfiles<'a>(task: &LintedTask<'a>) -> Vec<(&'a str, Vec<Instruction>)> {
    task.texts(|path| path == DOCKERFILE || (in_tests(path) && path.ends_with("tests/Dockerfile")))
        .filter(|(path, _)| task.builds(path))
        .map(|(path, text)| (path, instructions(text)))
        .collect()
}

pub(super) fn solvers_image(task: &LintedTask<'_>) -> Vec<Instruction> {
    let text = task.files.text(DOCKERFILE).filter(|_| task.builds(DOCKERFILE));
    text.map(instructions).unwrap_or_default()
}

/// RUN instructions of all Dockerfiles: file, line and shell text.
fn runs(task: &LintedTask<'_>) -> Vec<(String, u32, String)> {
    let all = dockerfiles(task).into_iter().flat_map(|(file, instructions)| {
        instructions.into_iter().map(move |instruction| (file.to_owned(), instruction))
    });
    all.filter_map(|(file, instruction)| Some((file, instruction.line, instruction.script()?))).collect()
}

pub(in crate::lint) fn test_leak(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for instruction in solvers_image(task).iter().filter(|instruction| !instruction.is_from_elsewhere()) {
        for source in instruction.transfer().map(|(sources, _)| sources).unwrap_or_default() {
            let source = source.trim_start_matches("./");
            let name = source.rsplit('/').next().unwrap_or(source);
            let tells = ["solve.sh", "test.sh"].contains(&name)
                || (name.starts_with("test_") && name.ends_with(".py"))
                || source.split('/').any(|part| part == "solution" || part == "tests");
            if tells {
                let message = format!("`{source}` goes into the solver's image");
                matches.push(RuleMatch::at(DOCKERFILE, instruction.line, message));
            }
        }
    }
    matches
}

pub(in crate::lint) fn answer_in_context(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let telling = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let expected = ["expected", "golden", "truth", "oracle"].iter().any(|word| name.contains(word));
        (in_solution(path) && name.ends_with(".sh"))
            || (in_tests(path) && (expected || name.starts_with("test_")))
    };
    let answers: Vec<_> = task
        .files
        .iter()
        .filter(|(path, file)| telling(path.as_str()) && file.bytes.len() >= TELLING_BYTES)
        .collect();
    let context = task.files.iter().filter(|(path, _)| path.as_str().starts_with("environment/"));
    context
        .filter_map(|(path, file)| {
            let (answer, _) = answers.iter().find(|(_, answer)| answer.bytes == file.bytes)?;
            Some(RuleMatch::whole(path.as_str(), format!("the same bytes as `{answer}`")))
        })
        .collect()
}

pub(in crate::lint) fn root_agent(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let named = task.manifest.agent.as_ref().is_some_and(|agent| {
        agent.user.as_ref().is_some_and(|user| user.as_str() != Some("root") && user.as_integer() != Some(0))
    });
    if !task.builds(DOCKERFILE) {
        return Vec::new();
    }
    let instructions = solvers_image(task);
    let last_stage = instructions.rsplit(|instruction| instruction.word == "FROM").next().unwrap_or_default();
    let user = last_stage.iter().rfind(|instruction| instruction.word == "USER");
    let unprivileged =
        user.is_some_and(|user| !matches!(user.rest.as_str(), "root" | "0" | "root:root" | "0:0"));
    if named || unprivileged {
        return Vec::new();
    }
    vec![RuleMatch::whole(DOCKERFILE, "the solver works as root")]
}

pub(in crate::lint) fn unpinned(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (file, instructions) in dockerfiles(task) {
        let mut stages = BTreeSet::new();
        for from in instructions.iter().filter(|instruction| instruction.word == "FROM") {
            let mut words = from.rest.split_whitespace();
            let image = words.next().unwrap_or_default();
            let known = image == "scratch" || image.contains('$') || stages.contains(image);
            if !known && !image.contains("@sha256:") {
                matches.push(RuleMatch::at(file, from.line, format!("`{image}` is not pinned by digest")));
            }
            stages.extend(words.nth(1));
        }
    }
    if let Some(image) = task.environment().and_then(|environment| environment.docker_image.as_deref())
        && !image.contains("@sha256:")
    {
        let message = format!("`{image}` is not pinned by digest");
        matches.push(super::config::at_key(task, "environment.docker_image", message));
    }
    matches
}

/// Commands of a shell text that install Debian packages, as words.
fn apt_installs(script: &str) -> impl Iterator<Item = Vec<&str>> {
    script.split(['&', ';', '|', '\n']).filter_map(|command| {
        let words: Vec<_> = command.split_whitespace().collect();
        let at = words.iter().position(|word| matches!(*word, "apt-get" | "apt"))?;
        let install = words[at..].iter().position(|word| *word == "install")?;
        Some(words[at + install + 1..].to_vec())
    })
}

pub(in crate::lint) fn apt_version_pin(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (file, line, script) in runs(task) {
        for words in apt_installs(&script) {
            let pinned = words.iter().find(|word| is_versioned(word));
            if let Some(pinned) = pinned {
                let message = format!("`{pinned}` will disappear from Debian's archive");
                matches.push(RuleMatch::at(&file, line, message));
            }
        }
    }
    matches
}

/// Whether the word is a package with a version, e.g. `curl=7.88.1`, and not an option or a
/// variable.
fn is_versioned(word: &str) -> bool {
    let name = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || ".+-:".contains(char);
    word.split_once('=').is_some_and(|(package, version)| {
        !package.is_empty()
            && !package.starts_with('-')
            && package.chars().all(name)
            && version.starts_with(|char: char| char.is_ascii_digit())
    })
}

pub(in crate::lint) fn apt_without_update(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (file, line, script) in runs(task) {
        let install = apt_installs(&script).next().is_some();
        if install && !script.contains("apt-get update") && !script.contains("apt update") {
            matches.push(RuleMatch::at(
                &file,
                line,
                "packages are installed without `apt-get update` in the same RUN",
            ));
        }
    }
    matches
}

pub(in crate::lint) fn apt_lists_left(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (file, line, script) in runs(task) {
        let install = apt_installs(&script).next().is_some();
        if install && !script.contains("/var/lib/apt/lists") && !script.contains("apt-get clean") {
            matches.push(RuleMatch::at(&file, line, "the package lists stay in the layer"));
        }
    }
    matches
}

pub(in crate::lint) fn git_history(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, _) in task.files.iter() {
        let path = path.as_str();
        if path.starts_with("environment/") && path.ends_with("/.git/HEAD") {
            matches.push(RuleMatch::whole(path, "a repository with its history goes into the image"));
        }
    }
    for instruction in solvers_image(task) {
        let Some(script) = instruction.script() else { continue };
        let removed = script.contains("rm -rf") && script.contains(".git");
        if script.contains("git clone") && !script.contains("--depth") && !removed {
            let message = "the clone's whole history stays in the image";
            matches.push(RuleMatch::at(DOCKERFILE, instruction.line, message));
        }
    }
    matches
}

pub(in crate::lint) fn non_executable_run(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (file, instructions) in dockerfiles(task) {
        let context = file.trim_end_matches("Dockerfile");
        let mut made_executable = String::new();
        for instruction in &instructions {
            if instruction.flags.iter().any(|flag| flag.starts_with("--chmod")) {
                made_executable.push_str(&instruction.rest);
            }
            let Some(script) = instruction.script() else { continue };
            for command in script.split(['&', ';', '|', '\n']) {
                let program = command.split_whitespace().next().unwrap_or_default();
                if command.contains("chmod") {
                    made_executable.push_str(command);
                }
                let name = program.rsplit('/').next().unwrap_or_default();
                if !(program.starts_with('/') || program.starts_with("./")) || made_executable.contains(name)
                {
                    continue;
                }
                let same_name = |path: &str| path.rsplit('/').next() == Some(name);
                let copied: Vec<_> = task
                    .files
                    .iter()
                    .filter(|(path, _)| path.as_str().starts_with(context) && same_name(path.as_str()))
                    .collect();
                let [(path, source)] = copied[..] else { continue };
                // A recursive chmod of the folder may have covered it.
                if !source.executable && !made_executable.contains("-R") {
                    let message = format!("`{program}` is run, but `{path}` is not executable");
                    matches.push(RuleMatch::at(file, instruction.line, message));
                }
            }
        }
    }
    matches
}
