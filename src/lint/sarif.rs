//! The report as SARIF 2.1.0. Code hosts and editors show it next to the lines.

use serde_json::{Value, json};

use super::{Finding, LintReport, Own, Rule, Rules, Severity, TaskReport};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The report as a SARIF log with one run.
pub fn sarif(rules: &Rules, report: &LintReport) -> Value {
    let all: Vec<&Rule> = rules.iter().collect();
    let results =
        report.tasks.iter().flat_map(|task| task.findings.iter().map(|found| result(&all, task, found)));
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "termsmith",
                "semanticVersion": report.tool,
                "rules": all.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

fn descriptor(rule: &Rule) -> Value {
    let Rule { id, message, hint, explain, source, .. } = rule;
    json!({
        "id": id,
        "shortDescription": { "text": sentence(message) },
        "fullDescription": { "text": explain },
        "help": {
            "text": format!("{explain}\n\nWhat to do: {hint}.\nSource: {source}."),
            "markdown": format!("{explain}\n\n**What to do:** {hint}.\n\n*Source: {source}.*"),
        },
        "defaultConfiguration": { "level": level(rule.severity), "enabled": !rule.opt_in },
        "properties": { "tags": [if rule.attack.is_some() { "attack" } else { "task" }] },
    })
}

fn result(rules: &[&Rule], task: &TaskReport, finding: &Finding) -> Value {
    let uri = uri(&format!("{}/{}", task.path.trim_end_matches('/'), finding.file));
    let mut location = json!({ "artifactLocation": { "uri": uri } });
    if let Some(line) = finding.line {
        location["region"] = json!({ "startLine": line });
    }
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level(finding.severity),
        "message": { "text": format!("{}. {}.", sentence(&finding.message), sentence(&finding.hint)) },
        "locations": [{ "physicalLocation": location }],
    });
    if let Some(index) = rules.iter().position(|rule| rule.id == finding.rule) {
        result["ruleIndex"] = json!(index);
    }
    if let Some(reason) = &finding.suppressed {
        result["suppressions"] = json!([{ "kind": "inSource", "justification": reason }]);
    }
    result
}

fn level(severity: Severity) -> &'static str {
    severity.as_str()
}

/// A fragment with its first letter capitalised.
fn sentence(fragment: &str) -> String {
    let mut chars = fragment.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A path as a relative reference, or as a `file:` URI if it is absolute.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.trim_start_matches("./").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

impl Own {
    /// The name in the list of rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Off => "off",
        }
    }
}
