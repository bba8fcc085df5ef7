//! What linting says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Makes a trial impossible; in a draft of ours, rejects it.
    Error,
    /// Likely makes a verdict wrong.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One thing that a rule found.
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
    /// What to do about it.
    pub hint: String,
    /// For patterns that an attack file brings, the attack's id (`D-25`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attack: Option<String>,
    /// Why it does not count, where the task says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suppressed: Option<String>,
}

impl Finding {
    /// `path:line`, or the path alone.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        }
    }

    /// Whether it stops the task: an error that nobody suppressed.
    pub fn stops(&self) -> bool {
        self.severity == Severity::Error && self.suppressed.is_none()
    }
}
