//! Rules about the files of the directory.

use crate::lint::linted_task::{LintedTask, SpecialFile, SpecialFileKind};
use crate::lint::rule::RuleMatch;

pub(in crate::lint) fn invalid(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    let mut instruction = |path: &str| match task.files.text(path) {
        None => matches.push(RuleMatch::whole(path, "missing, or not UTF-8")),
        Some(text) if text.trim().is_empty() => matches.push(RuleMatch::whole(path, "empty")),
        Some(_) => {}
    };
    if task.stepwise() {
        for step in task.manifest.steps.iter().flatten() {
            instruction(&format!("steps/{}/instruction.md", step.name));
        }
    } else {
        instruction("instruction.md");
    }
    matches.extend(missing_test(task));
    let image = task.environment().is_some_and(|environment| environment.docker_image.is_some());
    let built = ["environment/Dockerfile", "environment/docker-compose.yaml"];
    if !image && built.iter().all(|file| task.files.get(file).is_none()) {
        matches.push(RuleMatch::whole(built[0], "missing, and `environment.docker_image` names no image"));
    }
    for oddity in task.special_files {
        match &oddity.kind {
            SpecialFileKind::Escape => {
                matches.push(RuleMatch::whole(
                    &oddity.path,
                    "a symbolic link that leads out of the task, or nowhere",
                ));
            }
            SpecialFileKind::Unreadable(why) => matches.push(RuleMatch::whole(&oddity.path, why.clone())),
            SpecialFileKind::Link => {}
        }
    }
    matches
}

/// The tests of a step are in the step's folder, or in the task's.
fn missing_test(task: &LintedTask<'_>) -> Option<RuleMatch> {
    let own_image = ["docker-compose.yaml", "Dockerfile"];
    let present = |folder: &str| {
        ["test.sh", "test.bat"].iter().any(|name| task.files.get(&format!("{folder}/{name}")).is_some())
    };
    let verifier_image = own_image.iter().any(|name| task.files.get(&format!("tests/{name}")).is_some())
        || task.verifiers().any(|verifier| {
            verifier.environment.as_ref().is_some_and(|environment| environment.docker_image.is_some())
        });
    let steps = task.manifest.steps.iter().flatten();
    let without = steps.map(|step| format!("steps/{}/tests", step.name)).find(|folder| !present(folder));
    let missing = if task.stepwise() { without } else { Some("tests".to_owned()) };
    let missing = missing.filter(|_| !present("tests") && !verifier_image)?;
    Some(RuleMatch::whole(&format!("{missing}/test.sh"), "missing, so solutions cannot be verified"))
}

pub(in crate::lint) fn symbolic_link(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    // In a build context a link is fine: builders receive it as a link.
    let is_context = |oddity: &&SpecialFile| oddity.path.starts_with("environment/");
    let links = task.special_files.iter().filter(|oddity| oddity.kind == SpecialFileKind::Link);
    links
        .filter(|link| !is_context(link))
        .map(|link| RuleMatch::whole(&link.path, "a symbolic link, which termsmith does not follow"))
        .collect()
}

pub(in crate::lint) fn prior_trajectory(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    if task.files.get("trajectory.json").is_none() {
        return Vec::new();
    }
    vec![RuleMatch::whole(
        "trajectory.json",
        "Harbor loads it as earlier context of the agent, and most agents then fail",
    )]
}
