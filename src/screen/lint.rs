//! Static rules: one file each in `templates/lint/`, so that adding a rule touches one place.

use regex::Regex;
use serde::Deserialize;

use crate::assets::Assets;
use crate::model::{Draft, FileTree};

/// Checks that a verifier needs at least; fewer cannot tell a near miss from a solution.
const MIN_CHECKS: usize = 8;
/// Known wrong solutions that a recipe brings at least.
const MIN_WRONG: usize = 3;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Rejects the draft.
    Error,
    /// Is only shown.
    Warning,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredRule {
    severity: Severity,
    /// Regular expression over the file's path in the task directory.
    files: String,
    /// Text that must not occur.
    forbid: Option<String>,
    /// Text that must occur.
    require: Option<String>,
    message: String,
    hint: String,
}

/// A compiled rule. Its id is its file's stem.
#[derive(Debug)]
pub struct Rule {
    pub id: String,
    pub severity: Severity,
    files: Regex,
    forbid: Option<Regex>,
    require: Option<Regex>,
    message: String,
    hint: String,
}

/// One thing a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: String,
    pub severity: Severity,
    /// `path:line`, or the path alone.
    pub place: String,
    pub message: String,
}

/// A rule file that is not a rule.
#[derive(Debug, thiserror::Error)]
#[error("lint rule `templates/lint/{file}`: {message}")]
pub struct LintError {
    pub file: String,
    pub message: String,
}

/// Reads the rules.
pub fn rules(assets: &Assets) -> Result<Vec<Rule>, LintError> {
    let mut found = Vec::new();
    for (path, bytes, _) in assets.files_under("templates/lint") {
        let bad = |message: String| LintError { file: path.to_string(), message };
        let Some(id) = path.as_str().strip_suffix(".toml") else { continue };
        let text = std::str::from_utf8(bytes).map_err(|error| bad(error.to_string()))?;
        let rule: DeclaredRule = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        let regex = |source: &str| Regex::new(source).map_err(|error| bad(error.to_string()));
        if rule.forbid.is_some() == rule.require.is_some() {
            return Err(bad("a rule has either `forbid` or `require`".to_owned()));
        }
        found.push(Rule {
            id: id.to_owned(),
            severity: rule.severity,
            files: regex(&rule.files)?,
            forbid: rule.forbid.as_deref().map(regex).transpose()?,
            require: rule.require.as_deref().map(regex).transpose()?,
            message: rule.message,
            hint: rule.hint,
        });
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// What the rules find in `files`, the task's directory, and in the draft as a whole.
pub fn lint(rules: &[Rule], files: &FileTree, draft: &Draft) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules {
        for (path, file) in files.iter().filter(|(path, _)| rule.files.is_match(path.as_str())) {
            let Some(text) = file.as_text() else { continue };
            let mut report = |place: String| {
                findings.push(Finding {
                    rule: rule.id.clone(),
                    severity: rule.severity,
                    place,
                    message: format!("{} ({})", rule.message, rule.hint),
                });
            };
            if let Some(found) = rule.forbid.as_ref().and_then(|forbid| forbid.find(text)) {
                let line = text[..found.start()].matches('\n').count() + 1;
                report(format!("{path}:{line}"));
            }
            if rule.require.as_ref().is_some_and(|require| !require.is_match(text)) {
                report(path.to_string());
            }
        }
    }
    findings.extend(structure(draft));
    findings
}

/// What no regular expression over one file can see.
fn structure(draft: &Draft) -> Vec<Finding> {
    let task = &draft.task;
    let mut findings = Vec::new();
    let mut report = |rule: &str, place: &str, message: String| {
        findings.push(Finding {
            rule: rule.to_owned(),
            severity: Severity::Error,
            place: place.to_owned(),
            message,
        });
    };
    if task.checks.len() < MIN_CHECKS {
        let message = format!("{} checks; a verifier needs at least {MIN_CHECKS}", task.checks.len());
        report("few-checks", "tests/test_outputs.py", message);
    }
    let mut sorted = task.checks.clone();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        report("same-check-twice", "tests/test_outputs.py", format!("`{}` is defined twice", twice[0]));
    }
    if draft.wrong.len() < MIN_WRONG {
        let message = format!("{} known wrong solutions; at least {MIN_WRONG} are needed", draft.wrong.len());
        report("few-wrong-solutions", "recipe.toml", message);
    }
    let dockerfile = task.environment.text("Dockerfile").unwrap_or_default();
    for line in dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let mut words: Vec<_> = line.split_whitespace().filter(|word| !word.starts_with("--")).collect();
        words.pop();
        for source in words {
            let source = source.trim_end_matches('/').trim_start_matches("./");
            let there = task.environment.iter().any(|(path, _)| {
                path.as_str() == source || path.as_str().starts_with(&format!("{source}/")) || source == "."
            });
            if !there {
                report(
                    "copy-source",
                    "environment/Dockerfile",
                    format!("COPY of `{source}`, which is not there"),
                );
            }
        }
    }
    findings
}
