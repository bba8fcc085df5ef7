//! Static rules over a task's files.
//!
//! A rule is a file in `templates/lint/`. It contains a regular expression over some files, or
//! names a function in `rules`. The `scan` attacks in `templates/attacks/` are rules too.
//!
//! Only a finding that makes trials impossible is an error. termsmith's own drafts must follow the
//! recipe format, so some rules have another severity for them (`own` in the rule's file).
//!
//! Lint runs no code of a task. Tasks are untrusted.

pub mod attack;
mod choice;
mod compose;
mod expand;
mod finding;
mod linted_task;
mod pattern;
mod programs;
mod python;
mod python_files;
mod python_starts;
mod python_values;
mod read;
mod report;
mod rule;
mod rules;
mod sarif;
mod shell;
mod starts;
#[cfg(test)]
mod tests;
mod toml_place;
mod yaml;

use std::collections::BTreeSet;

pub use finding::{Finding, Severity};
pub use linted_task::{SpecialFile, SpecialFileKind};
pub use read::lint_dir;
pub use report::{Counts, LintReport, TaskReport};
pub use rule::{LintError, Own, Rule, Rules};
pub use sarif::sarif;

use crate::harbor::{self, HarborTask, IntoTaskError, Manifest, parse_manifest};
use crate::model::{Draft, FileTree, Task};
use choice::Choice;
use linted_task::LintedTask;

/// Id of the rule for a malformed `task.toml`.
const INVALID_CONFIG: &str = "invalid-task-config";

/// Lints a task directory that was read.
pub fn lint_task(rules: &Rules, task: &HarborTask) -> Vec<Finding> {
    let parts = Parts { name: &task.name, files: &task.files, special_files: &[], draft: None };
    lint(rules, &parts, &task.manifest, &task.findings)
}

/// Lints a draft. `directory` holds the files of its task directory.
pub fn lint_draft(rules: &Rules, directory: &FileTree, draft: &Draft) -> Vec<Finding> {
    let name = draft.task.name.as_str();
    let parts = Parts { name, files: directory, special_files: &[], draft: Some(draft) };
    lint_files(rules, &parts)
}

/// A task whose `task.toml` is not parsed yet.
struct Parts<'a> {
    name: &'a str,
    files: &'a FileTree,
    special_files: &'a [SpecialFile],
    draft: Option<&'a Draft>,
}

fn lint_files(rules: &Rules, parts: &Parts<'_>) -> Vec<Finding> {
    match parts.files.text("task.toml").map(parse_manifest) {
        Some(Ok((manifest, read))) => lint(rules, parts, &manifest, &read),
        // Without a manifest, other rules would only report consequences of that.
        Some(Err(error)) => vec![malformed(rules, &error.to_string())],
        None => vec![malformed(rules, "missing, or not UTF-8")],
    }
}

fn malformed(rules: &Rules, message: &str) -> Finding {
    // The parser's message quotes the line before it states the error.
    let line = message.split_once("at line ").and_then(|(_, rest)| {
        rest.split(|char: char| !char.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
    });
    let last = message.lines().last().unwrap_or_default().trim();
    Finding {
        file: "task.toml".to_owned(),
        line,
        severity: Severity::Error,
        rule: INVALID_CONFIG.to_owned(),
        message: if line.is_some() { format!("malformed: {last}") } else { last.to_owned() },
        hint: rules.get(INVALID_CONFIG).map(|rule| rule.hint.clone()).unwrap_or_default(),
        attack: None,
        suppressed: None,
    }
}

fn lint(rules: &Rules, parts: &Parts<'_>, manifest: &Manifest, read: &[harbor::Finding]) -> Vec<Finding> {
    let known: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let task = LintedTask {
        name: parts.name,
        manifest,
        files: parts.files,
        read,
        special_files: parts.special_files,
        draft: parts.draft,
        known: &known,
    };
    let as_ours = parts.read_as_ours(manifest);
    let made_by_us = parts.draft.is_some() || matches!(as_ours, Some(Ok(_)));
    let choice = Choice::of(manifest);
    let mut findings = Vec::new();
    for rule in rules.iter() {
        let weight = rule.weight(made_by_us);
        if !choice.runs(&rule.id, weight.is_some()) {
            continue;
        }
        let suppressed = choice.reason(&rule.id);
        findings.extend(rule.matches(&task).into_iter().map(|found| Finding {
            file: found.file,
            line: found.line,
            severity: weight.unwrap_or(rule.severity),
            rule: rule.id.clone(),
            message: found.message,
            hint: rule.hint.clone(),
            attack: rule.attack.clone(),
            suppressed: suppressed.clone(),
        }));
    }
    if let Some(Err(error)) = as_ours {
        findings.push(Finding { severity: Severity::Warning, ..malformed(rules, &error.to_string()) });
    }
    findings.sort();
    findings.dedup();
    findings
}

impl Parts<'_> {
    /// Reads a directory that declares termsmith as its author. `None` for other directories. If it
    /// cannot be read, it is linted as a foreign task, and a finding says why.
    fn read_as_ours(&self, manifest: &Manifest) -> Option<Result<Task, IntoTaskError>> {
        let table =
            manifest.metadata.as_ref()?.get("termsmith")?.as_table().filter(|_| self.draft.is_none())?;
        // Lint settings alone do not make termsmith the author.
        table.keys().find(|key| *key != "lint")?;
        let task = HarborTask {
            name: self.name.to_owned(),
            manifest: manifest.clone(),
            files: self.files.clone(),
            findings: Vec::new(),
        };
        Some(task.into_task())
    }
}
