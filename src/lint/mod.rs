//! Static rules over a task's files.
//!
//! Findings explain and rank. Only findings that make a trial impossible are errors, except in our
//! own drafts, which must follow their recipe format: there some rules have another severity (`own`
//! in the rule's file). A rule is one file in `templates/lint/`, a regular expression over some of
//! the files or the name of a function in `rules`; the `scan` attacks of `templates/attacks/` are
//! rules too. Nothing here runs anything, and tasks are untrusted.

pub mod attack;
mod choice;
mod compose;
mod expand;
mod finding;
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
mod subject;
#[cfg(test)]
mod tests;
mod toml_place;
mod yaml;

use std::collections::BTreeSet;

pub use finding::{Finding, Severity};
pub use read::lint_dir;
pub use report::{Counts, LintReport, TaskReport};
pub use rule::{LintError, Own, Rule, Rules};
pub use sarif::sarif;
pub use subject::{SpecialFile, SpecialFileKind};

use crate::harbor::{self, HarborTask, IntoTaskError, Manifest, parse_manifest};
use crate::model::{Draft, FileTree, Task};
use choice::Choice;
use subject::Subject;

/// The rule id for a malformed `task.toml`.
const INVALID_CONFIG: &str = "invalid-task-config";

/// Lints a task directory.
pub fn lint_task(rules: &Rules, task: &HarborTask) -> Vec<Finding> {
    let parts = Parts { name: &task.name, files: &task.files, special_files: &[], draft: None };
    lint(rules, &parts, &task.manifest, &task.findings)
}

/// Lints a draft with task directory `directory`.
pub fn lint_draft(rules: &Rules, directory: &FileTree, draft: &Draft) -> Vec<Finding> {
    let name = draft.task.name.as_str();
    let parts = Parts { name, files: directory, special_files: &[], draft: Some(draft) };
    lint_files(rules, &parts)
}

/// A task whose `task.toml` has not been parsed yet.
struct Parts<'a> {
    name: &'a str,
    files: &'a FileTree,
    special_files: &'a [SpecialFile],
    draft: Option<&'a Draft>,
}

fn lint_files(rules: &Rules, parts: &Parts<'_>) -> Vec<Finding> {
    match parts.files.text("task.toml").map(parse_manifest) {
        Some(Ok((manifest, read))) => lint(rules, parts, &manifest, &read),
        // Without a manifest, the other rules would only report consequences.
        Some(Err(error)) => vec![malformed(rules, &error.to_string())],
        None => vec![malformed(rules, "missing, or not UTF-8")],
    }
}

fn malformed(rules: &Rules, message: &str) -> Finding {
    // The parser's message ends with the error, after a quotation of the line.
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
    let subject = Subject {
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
        findings.extend(rule.matches(&subject).into_iter().map(|found| Finding {
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
    /// A directory that declares termsmith as its author, read as a task of termsmith's. One that
    /// cannot be read so is linted as a foreign one; a finding reports why.
    fn read_as_ours(&self, manifest: &Manifest) -> Option<Result<Task, IntoTaskError>> {
        let table =
            manifest.metadata.as_ref()?.get("termsmith")?.as_table().filter(|_| self.draft.is_none())?;
        // Any task may have lint settings.
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
