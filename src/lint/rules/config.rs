//! Rules about `task.toml`: keys that Harbor refuses, ignores, or has renamed.

use std::collections::BTreeSet;

use crate::harbor::FindingKind;
use crate::lint::choice::Choice;
use crate::lint::linted_task::LintedTask;
use crate::lint::rule::RuleMatch;
use crate::lint::toml_place::line_of_key;

const FILE: &str = "task.toml";
const NETWORK_MODES: [&str; 3] = ["public", "no-network", "allowlist"];
/// The folder that Harbor fills and reads itself.
const LOGS: &str = "/logs";

/// A match at the line of the key `path`.
pub(super) fn at_key(task: &LintedTask<'_>, path: &str, message: impl Into<String>) -> RuleMatch {
    let line = task.files.text(FILE).and_then(|text| line_of_key(text, path));
    RuleMatch { file: FILE.to_owned(), line, message: message.into() }
}

pub(in crate::lint) fn invalid(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches: Vec<RuleMatch> = read(task, FindingKind::Conflict);
    let mut bad = |path: &str, message: String| matches.push(at_key(task, path, message));
    let manifest = task.manifest;
    if let Some(name) = manifest.task.as_ref().and_then(|task| task.name.as_deref())
        && !is_package_name(name)
    {
        bad("task.name", format!("`task.name` is `{name}`; it must have the form `organisation/name`"));
    }
    let mut word = |path: &str, value: Option<&String>, known: &[&str]| {
        if let Some(value) = value.filter(|value| !known.contains(&value.as_str())) {
            bad(path, format!("`{path}` is `{value}`; it must be one of {}", known.join(", ")));
        }
    };
    word("multi_step_reward_strategy", manifest.multi_step_reward_strategy.as_ref(), &["mean", "final"]);
    if let Some(environment) = &manifest.environment {
        word("environment.os", environment.os.as_ref(), &["linux", "windows"]);
        word("environment.network_mode", environment.network_mode.as_ref(), &NETWORK_MODES);
    }
    if let Some(agent) = &manifest.agent {
        word("agent.network_mode", agent.network_mode.as_ref(), &NETWORK_MODES);
    }
    if let Some(verifier) = &manifest.verifier {
        word("verifier.network_mode", verifier.network_mode.as_ref(), &NETWORK_MODES);
        word("verifier.environment_mode", verifier.environment_mode.as_ref(), &["shared", "separate"]);
    }
    matches.extend(hosts_without_list(task));
    matches.extend(timeouts(task));
    matches.extend(steps(task));
    for (index, artifact) in manifest.artifacts.iter().flatten().enumerate() {
        let path = format!("artifacts[{index}]");
        match artifact_source(artifact) {
            None => matches.push(at_key(task, &path, "an artifact without `source`")),
            Some(source) if source.split('/').any(|part| part == "..") => {
                matches.push(at_key(task, &path, format!("the artifact `{source}` has `..` in its path")));
            }
            Some(_) => {}
        }
        let destination = artifact.get("destination").and_then(toml::Value::as_str).unwrap_or_default();
        if destination.starts_with('/') || destination.split('/').any(|part| part == "..") {
            let message = format!("the destination `{destination}` is not a plain relative path");
            matches.push(at_key(task, &path, message));
        }
    }
    matches
}

fn hosts_without_list(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let manifest = task.manifest;
    let environment = manifest.environment.as_ref();
    let (agent, verifier) = (manifest.agent.as_ref(), manifest.verifier.as_ref());
    let rows = [
        ("environment", environment.map(|it| (&it.network_mode, &it.allowed_hosts))),
        ("agent", agent.map(|it| (&it.network_mode, &it.allowed_hosts))),
        ("verifier", verifier.map(|it| (&it.network_mode, &it.allowed_hosts))),
    ];
    let rows = rows.into_iter().filter_map(|(section, keys)| Some((section, keys?)));
    rows.filter(|(_, (mode, hosts))| {
        hosts.as_ref().is_some_and(|hosts| !hosts.is_empty()) && mode.as_deref() != Some("allowlist")
    })
    .map(|(section, _)| {
        let path = format!("{section}.allowed_hosts");
        at_key(task, &path, format!("`{path}` without `network_mode = \"allowlist\"`"))
    })
    .collect()
}

fn timeouts(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let manifest = task.manifest;
    let rows = [
        ("agent.timeout_sec", manifest.agent.as_ref().and_then(|agent| agent.timeout_sec)),
        ("verifier.timeout_sec", manifest.verifier.as_ref().and_then(|verifier| verifier.timeout_sec)),
        ("environment.build_timeout_sec", task.environment().and_then(|it| it.build_timeout_sec)),
    ];
    let unusable = |seconds: f64| !seconds.is_finite() || seconds <= 0.0;
    rows.into_iter()
        .filter(|(_, seconds)| seconds.is_some_and(unusable))
        .map(|(path, _)| at_key(task, path, format!("`{path}` must be a positive number of seconds")))
        .collect()
}

fn steps(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, step) in task.manifest.steps.iter().flatten().enumerate() {
        let path = format!("steps[{index}].name");
        let portable = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        if step.name.is_empty() || step.name.starts_with('.') || !step.name.chars().all(portable) {
            matches.push(at_key(
                task,
                &path,
                format!("the step name `{}` is not a valid folder name", step.name),
            ));
        }
        if !seen.insert(step.name.to_lowercase()) {
            matches.push(at_key(task, &path, format!("two steps are called `{}`", step.name)));
        }
    }
    matches
}

/// Whether the name has the form `organisation/name`, as Harbor requires.
fn is_package_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|char: char| char.is_ascii_alphanumeric())
            && part.chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char))
    };
    !name.contains("..")
        && name.split_once('/').is_some_and(|(organisation, name)| part(organisation) && part(name))
}

pub(in crate::lint) fn unknown_field(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    read(task, FindingKind::UnknownKey)
}

pub(in crate::lint) fn deprecated_field(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    read(task, FindingKind::Deprecated)
}

/// Findings of the reader of `task.toml`, at the line of the first key in the message.
fn read(task: &LintedTask<'_>, kind: FindingKind) -> Vec<RuleMatch> {
    let findings = task.read.iter().filter(|finding| finding.kind == kind);
    findings
        .map(|finding| {
            let key = finding.message.split('`').nth(1).unwrap_or_default();
            let deprecated_in_environment = ["memory", "storage", "allow_internet"].contains(&key);
            let path = if deprecated_in_environment { format!("environment.{key}") } else { key.to_owned() };
            at_key(task, &path, finding.message.clone())
        })
        .collect()
}

pub(in crate::lint) fn shared_verifier(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    if task.separate() {
        return Vec::new();
    }
    vec![at_key(
        task,
        "verifier.environment_mode",
        "the tests run in the container that the solver worked in",
    )]
}

pub(in crate::lint) fn artifact_log_overlap(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let artifacts = artifacts(task).into_iter();
    artifacts
        .filter(|(_, source)| contains(LOGS, source) || contains(source, LOGS))
        .map(|(path, source)| {
            let message = format!("the artifact `{source}` overlaps `{LOGS}`, which Harbor transfers itself");
            at_key(task, &path, message)
        })
        .collect()
}

pub(in crate::lint) fn overlapping_artifacts(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let artifacts = artifacts(task);
    let mut matches = Vec::new();
    for (index, (path, inner)) in artifacts.iter().enumerate() {
        let outer = artifacts.iter().enumerate().find(|(other, (_, outer))| {
            *other != index && contains(outer, inner) && (outer != inner || *other < index)
        });
        if let Some((_, (_, outer))) = outer {
            matches.push(at_key(
                task,
                path,
                format!("the artifact `{inner}` is inside the artifact `{outer}`"),
            ));
        }
    }
    matches
}

/// Key path and source path of every artifact in the task's main container.
pub(super) fn artifacts(task: &LintedTask<'_>) -> Vec<(String, String)> {
    let all = task.manifest.artifacts.iter().flatten().enumerate();
    all.filter(|(_, artifact)| {
        artifact.get("service").and_then(toml::Value::as_str).is_none_or(|name| name == "main")
    })
    .filter_map(|(index, artifact)| {
        let source = artifact_source(artifact)?.trim_end_matches('/');
        Some((format!("artifacts[{index}]"), source.to_owned()))
    })
    .collect()
}

fn artifact_source(artifact: &toml::Value) -> Option<&str> {
    artifact.as_str().or_else(|| artifact.get("source")?.as_str())
}

fn contains(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(in crate::lint) fn host_variable(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let manifest = task.manifest;
    let environment = manifest.environment.as_ref().and_then(|it| it.env.as_ref());
    let verifier = manifest.verifier.as_ref().and_then(|it| it.env.as_ref());
    let solution = manifest.solution.as_ref().and_then(|it| it.env.as_ref());
    let mut matches = Vec::new();
    for (section, env) in
        [("environment.env", environment), ("verifier.env", verifier), ("solution.env", solution)]
    {
        for (name, value) in env.into_iter().flatten() {
            let variable = value.split_once("${").and_then(|(_, rest)| rest.split_once('}'));
            if let Some((variable, _)) = variable.filter(|(variable, _)| !variable.contains(":-")) {
                let message =
                    format!("`{section}.{name}` requires `{variable}` in the environment of the host");
                matches.push(at_key(task, &format!("{section}.{name}"), message));
            }
        }
    }
    matches
}

pub(in crate::lint) fn unreasoned_ignore(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let choice = Choice::of(task.manifest);
    let entries = choice.ignored.iter().filter(|entry| entry.reason.is_empty());
    entries
        .map(|entry| at_key(task, &entry.key, format!("`{}` is ignored without a reason", entry.rule)))
        .chain(choice.malformed.iter().map(|(key, message)| at_key(task, key, message.clone())))
        .collect()
}

pub(in crate::lint) fn unknown_lint_rule(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let choice = Choice::of(task.manifest);
    let unknown = choice.named().filter(|(_, rule)| !task.known.contains(rule));
    unknown.map(|(key, rule)| at_key(task, key, format!("there is no lint rule `{rule}`"))).collect()
}
