//! Findings of lint rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Makes a trial impossible; in a draft of ours, rejects it.
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

/// One finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Below the task directory.
    pub file: String,
    /// From 1; absent where the file as a whole is meant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    pub severity: Severity,
    /// The rule's id.
    pub rule: String,
    /// A lower-case fragment.
    pub message: String,
    /// How to fix it.
    pub hint: String,
    /// For patterns that an attack file brings, the attack's id (`D-25`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attack: Option<String>,
    /// Why it is suppressed, if the task suppresses it.
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

    /// Whether it prevents trials of the task: an error that is not suppressed.
    pub fn stops(&self) -> bool {
        self.severity == Severity::Error && self.suppressed.is_none()
    }
}
