//! Rules about metadata in `task.toml` that collections of tasks require.

use super::config::at_key;
use crate::harbor::Environment;
use crate::lint::linted_task::LintedTask;
use crate::lint::rule::RuleMatch;

/// Terminal-Bench 3 accepts no task that runs longer than this: five hours, in seconds.
const LONGEST_SECONDS: f64 = 18_000.0;
/// Maximum number of words of a task's name in Terminal-Bench 3.
const SLUG_WORDS: usize = 3;
/// Metadata that Terminal-Bench 3 requires.
const FIELDS: [&str; 7] = [
    "author_name",
    "difficulty_explanation",
    "solution_explanation",
    "verification_explanation",
    "category",
    "tags",
    "expert_time_estimate_hours",
];

pub(in crate::lint) fn fields(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let metadata = task.manifest.metadata.as_ref();
    let missing: Vec<_> =
        FIELDS.into_iter().filter(|field| metadata.is_none_or(|table| !table.contains_key(*field))).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![at_key(task, "metadata", format!("[metadata] has no {}", missing.join(", ")))]
}

pub(in crate::lint) fn timeout(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let manifest = task.manifest;
    let rows = [
        ("agent.timeout_sec", manifest.agent.as_ref().and_then(|agent| agent.timeout_sec)),
        ("verifier.timeout_sec", task.verifier().and_then(|verifier| verifier.timeout_sec)),
    ];
    rows.into_iter()
        .filter_map(|(path, seconds)| Some((path, seconds.filter(|seconds| *seconds > LONGEST_SECONDS)?)))
        .map(|(path, seconds)| {
            at_key(task, path, format!("`{path}` is {seconds} s; the limit is {LONGEST_SECONDS} s"))
        })
        .collect()
}

pub(in crate::lint) fn no_agent_timeout(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let agent = task.manifest.agent.as_ref();
    let steps = task.manifest.steps.iter().flatten();
    let mut given = steps.map(|step| step.agent.as_ref()).chain([agent]).flatten();
    if given.any(|agent| agent.timeout_sec.is_some()) {
        return Vec::new();
    }
    vec![at_key(task, "agent", "no `agent.timeout_sec`: Harbor lets the solver run without a limit")]
}

pub(in crate::lint) fn gpu_types(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let Some(Environment { gpus, gpu_types, .. }) = task.environment() else { return Vec::new() };
    let types = gpu_types.as_ref().is_some_and(|types| !types.is_empty());
    match (gpus.unwrap_or(0) > 0, types) {
        (true, false) => vec![at_key(task, "environment.gpus", "GPUs without `gpu_types`")],
        (false, true) => vec![at_key(task, "environment.gpu_types", "`gpu_types` without `gpus`")],
        (true, true) | (false, false) => Vec::new(),
    }
}

pub(in crate::lint) fn slug(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let words = task.name.split(['-', '_']).filter(|word| !word.is_empty()).count();
    if words <= SLUG_WORDS {
        return Vec::new();
    }
    vec![RuleMatch::whole("task.toml", format!("`{}` has {words} words, more than {SLUG_WORDS}", task.name))]
}

pub(in crate::lint) fn package_name(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let name = task.manifest.task.as_ref().and_then(|task| task.name.as_deref());
    match name {
        None => vec![at_key(task, "task", "no `task.name`: the task cannot be published")],
        Some(name) if name.rsplit('/').next() != Some(task.name) => {
            let message = format!("`task.name` is `{name}`, but the folder is called `{}`", task.name);
            vec![at_key(task, "task.name", message)]
        }
        Some(_) => Vec::new(),
    }
}

pub(in crate::lint) fn windows(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    if task.environment().and_then(|environment| environment.os.as_deref()) != Some("windows") {
        return Vec::new();
    }
    vec![at_key(task, "environment.os", "the task needs Windows containers")]
}
