//! Rules about parts of a task that neither Harbor nor termsmith uses.

use super::config::at_key;
use super::image::{DOCKERFILE, solvers_image};
use crate::harbor::Environment;
use crate::lint::linted_task::LintedTask;
use crate::lint::rule::RuleMatch;
use crate::lint::shell::commands;
use crate::syntax::dockerfile::instructions;

/// Reports an image's CMD. Harbor and termsmith replace it by a command that waits.
pub(in crate::lint) fn image_command(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    const IDLE: [&str; 20] = [
        "bash", "sh", "zsh", "dash", "fish", "ash", "sleep", "tail", "python", "python3", "true", "cat",
        "node", "R", "julia", "ruby", "irb", "php", "ghci", "jshell",
    ];
    if task.files.get("environment/docker-compose.yaml").is_some() {
        return Vec::new();
    }
    let instructions = solvers_image(task);
    let last_stage = instructions.rsplit(|instruction| instruction.word == "FROM").next().unwrap_or_default();
    let Some(command) = last_stage.iter().rfind(|instruction| instruction.word == "CMD") else {
        return Vec::new();
    };
    let found = commands(&command.command_line());
    let idle = found.iter().all(|command| {
        // An interpreter without a program is idle. The command in `sh -c` is judged by itself.
        let alone = command.program().iter().skip(1).all(|word| word.starts_with('-'));
        let shell =
            matches!(command.name(), "bash" | "sh") && command.words.iter().any(|word| word.ends_with('c'));
        IDLE.contains(&command.name()) && (alone || shell || matches!(command.name(), "sleep" | "tail"))
    });
    if idle {
        return Vec::new();
    }
    let message = "no harness runs the CMD of the image, so what it starts or prepares is missing";
    vec![RuleMatch::at(DOCKERFILE, command.line, message)]
}

/// Reports an image in `task.toml` if there is a Dockerfile too.
pub(in crate::lint) fn image_and_dockerfile(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let image = |environment: Option<&Environment>| environment?.docker_image.clone();
    let rows = [
        ("environment.docker_image", DOCKERFILE, image(task.environment())),
        (
            "verifier.environment.docker_image",
            "tests/Dockerfile",
            image(task.verifier().and_then(|verifier| verifier.environment.as_ref())),
        ),
    ];
    let mut matches = Vec::new();
    for (key, file, image) in rows {
        let (Some(image), Some(text)) = (image, task.files.text(file)) else { continue };
        let instructions = instructions(text);
        let same = instructions.iter().all(|one| one.word == "FROM" && one.rest == image);
        if !same {
            let message = format!("`docker_image` names `{image}`, so {file} is not built");
            matches.push(at_key(task, key, message));
        }
    }
    matches
}

/// Reports compose files with names that Harbor does not read.
pub(in crate::lint) fn compose_name(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    const OTHERS: [&str; 3] = ["docker-compose.yml", "compose.yaml", "compose.yml"];
    let mut matches = Vec::new();
    for folder in ["environment", "tests"] {
        if task.files.get(&format!("{folder}/docker-compose.yaml")).is_some() {
            continue;
        }
        for name in OTHERS {
            let path = format!("{folder}/{name}");
            if task.files.get(&path).is_some() {
                let message =
                    format!("Harbor reads only {folder}/docker-compose.yaml, so {path} has no effect");
                matches.push(RuleMatch::whole(&path, message));
            }
        }
    }
    matches
}
