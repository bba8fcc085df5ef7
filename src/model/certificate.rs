//! What screening found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, Outcome};

/// One row of the screening table: a trial or a static rule, and whether it ended as it must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub kind: RowKind,
    /// Which one of its kind: `1`, the wrong solution's name, `cut 3 of 7`.
    pub name: String,
    /// What it ended with; `None` for rows that run no trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Outcome>,
    /// Checks passed and reported, for rows that ran a trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passed_of: Option<(u32, u32)>,
    pub ok: bool,
    /// What is wrong, or why the row does not count.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
}

/// The rows, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    Lint,
    Build,
    Untouched,
    Reference,
    SecondSolution,
    WrongSolution,
    TruncatedSolution,
}

/// `certificate.json`: the record of a draft's screening. It lies in the task directory and is left out of `task_digest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Version of this format.
    pub version: u32,
    pub task: String,
    /// SHA-256 over the task's files, Harbor's way, without this file.
    pub task_digest: String,
    /// BLAKE3 over Dockerfile, context and base definition.
    pub environment_digest: String,
    /// termsmith's version.
    pub tool: String,
    pub certified: bool,
    pub rows: Vec<Row>,
    /// Classes from the untouched trial; empty when it did not get that far.
    pub checks: Vec<Check>,
    /// Why it was rejected; empty for a certified task.
    pub reasons: Vec<RejectReason>,
}

/// Why a draft is not admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectReason {
    pub kind: RowKind,
    pub name: String,
    /// One sentence with the smallest evidence.
    pub message: String,
}

/// A certificate's two endings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screened {
    Certified,
    Rejected,
}

impl Certificate {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;

    /// How it ended.
    pub fn screened(&self) -> Screened {
        if self.certified { Screened::Certified } else { Screened::Rejected }
    }
}
