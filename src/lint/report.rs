//! The findings of many tasks, as text and as JSON.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, Severity};

/// The output of `termsmith lint --format json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LintReport {
    /// Version of this format.
    pub version: u32,
    /// The version of termsmith.
    pub tool: String,
    pub tasks: Vec<TaskReport>,
    pub counts: Counts,
}

/// The findings of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    /// The directory as it was named on the command line.
    pub path: String,
    /// In the order of files and lines.
    pub findings: Vec<Finding>,
}

/// Number of findings by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub tasks: u32,
    pub errors: u32,
    pub warnings: u32,
    pub notes: u32,
    /// Suppressed findings. The other counts do not include them.
    pub suppressed: u32,
}

impl LintReport {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;

    /// A report with the findings of `tasks` counted.
    pub fn new(tasks: Vec<TaskReport>) -> Self {
        let mut counts =
            Counts { tasks: u32::try_from(tasks.len()).unwrap_or(u32::MAX), ..Counts::default() };
        for finding in tasks.iter().flat_map(|task| &task.findings) {
            let count = match finding.severity {
                _ if finding.suppressed.is_some() => &mut counts.suppressed,
                Severity::Error => &mut counts.errors,
                Severity::Warning => &mut counts.warnings,
                Severity::Note => &mut counts.notes,
            };
            *count += 1;
        }
        Self { version: Self::VERSION, tool: env!("CARGO_PKG_VERSION").to_owned(), tasks, counts }
    }

    /// The report as text: `path:line: severity[rule] message` by task, and a summary.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for task in self.tasks.iter().filter(|task| !task.findings.is_empty()) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", task.path);
            for finding in &task.findings {
                let location = format!("{}/{}", task.path.trim_end_matches('/'), finding.location());
                let Finding { rule, message, hint, severity, .. } = finding;
                match &finding.suppressed {
                    Some(reason) => {
                        let _ =
                            writeln!(text, "{location}: suppressed[{rule}] {message}\n    reason: {reason}");
                    }
                    None => {
                        let severity = severity.as_str();
                        let _ = writeln!(text, "{location}: {severity}[{rule}] {message}\n    hint: {hint}");
                    }
                }
            }
            text.push('\n');
        }
        let Counts { tasks, errors, warnings, notes, suppressed } = self.counts;
        let counted = |count: u32, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let _ = writeln!(
            text,
            "{}: {}, {}, {}, {suppressed} suppressed",
            counted(tasks, "task"),
            counted(errors, "error"),
            counted(warnings, "warning"),
            counted(notes, "note"),
        );
        text
    }
}
