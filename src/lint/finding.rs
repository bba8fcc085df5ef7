//! Findings of lint rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Makes trials impossible. In a draft of termsmith's own, it rejects the draft.
    Error,
    /// Probably makes a verdict wrong.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A place where a task violates a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Path below the task directory.
    pub file: String,
    /// Line, from 1. Absent if the finding is about the whole file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    pub severity: Severity,
    /// Id of the rule.
    pub rule: String,
    /// A fragment that begins in lower case.
    pub message: String,
    /// How to fix it.
    pub hint: String,
    /// Id of the attack whose file has the pattern, e.g. `D-25`. Absent for other rules.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attack: Option<String>,
    /// The task's reason for suppressing the finding. Absent if the finding is not suppressed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suppressed: Option<String>,
}

impl Finding {
    /// `path:line`, or the path alone.
    pub fn location(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        }
    }

    /// Whether the finding prevents trials: an error that is not suppressed.
    pub fn stops(&self) -> bool {
        self.severity == Severity::Error && self.suppressed.is_none()
    }
}
