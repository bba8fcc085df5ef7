//! Measurements and outputs of a screening.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RowKind, ShellOutcome, TaskDigest};

/// `timings.json`: time and memory of the trials behind a certificate. It helps to set limits. It
/// is not part of the certificate, because times differ between machines while verdicts agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timings {
    /// Version of this format.
    pub version: u32,
    pub task: String,
    pub task_digest: TaskDigest,
    /// Time limit of a solver of this task, in seconds.
    pub agent_timeout_sec: u32,
    /// Memory limit of a solver of this task, in MiB.
    pub memory_mb: u32,
    /// In the order of the certificate's rows. Rows that share a trial repeat its figures.
    pub rows: Vec<RowTiming>,
}

/// Time and memory of one row's trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowTiming {
    pub kind: RowKind,
    pub name: String,
    /// Seconds from the start of the first container to the verdict.
    pub seconds: f64,
    /// Seconds of the solution, the mutant or the attack itself.
    pub act_seconds: f64,
    /// Peak memory of the solver's container in bytes, including page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// What the trial of a row that is not ok showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<TrialSeen>,
}

/// What the trial of a row that is not ok showed, for people to read. The texts come from the task,
/// and their control characters are not escaped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialSeen {
    /// How the solution or the script ended. `None` if nothing was run, or the container was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<ShellOutcome>,
    /// Number of files that differ from the untouched trial. `None` in the untouched trial itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<usize>,
    /// The last lines of the solution's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub act_output: Vec<String>,
    /// The last lines of the tests' output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests_output: Vec<String>,
}

impl Timings {
    /// The version that this build writes.
    pub const VERSION: u32 = 2;

    /// Longest act in seconds, and largest peak in bytes, among the rows of one kind.
    pub fn most(&self, kind: RowKind) -> Option<(f64, Option<u64>)> {
        let of_kind = self.rows.iter().filter(|row| row.kind == kind);
        of_kind
            .map(|row| (row.act_seconds, row.peak_memory))
            .reduce(|one, two| (one.0.max(two.0), one.1.max(two.1)))
    }
}
