//! Measurements and outputs of a screening.

use std::collections::BTreeMap;
use std::ops::AddAssign;

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
    pub cost: ScreeningCost,
    /// In the order of the certificate's rows. Rows that share a trial repeat its figures.
    pub rows: Vec<RowTiming>,
}

/// The cost of a screening, by kind of row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreeningCost {
    /// From the start of the screening to its end, in seconds. For several tasks, their sum.
    pub seconds: f64,
    pub kinds: BTreeMap<RowKind, TrialCost>,
}

/// The cost of some trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialCost {
    pub trials: u32,
    /// Processor time of all processes in the containers. The engine's own time is not counted.
    pub processor_seconds: f64,
    /// From the start of a trial's first container to its verdict, summed over the trials.
    pub seconds: f64,
}

impl AddAssign for TrialCost {
    fn add_assign(&mut self, other: Self) {
        self.trials += other.trials;
        self.processor_seconds += other.processor_seconds;
        self.seconds += other.seconds;
    }
}

impl AddAssign<&ScreeningCost> for ScreeningCost {
    fn add_assign(&mut self, other: &ScreeningCost) {
        self.seconds += other.seconds;
        for (kind, cost) in &other.kinds {
            *self.kinds.entry(*kind).or_default() += *cost;
        }
    }
}

impl ScreeningCost {
    /// The cost of all trials.
    pub fn total(&self) -> TrialCost {
        let mut total = TrialCost::default();
        self.kinds.values().for_each(|cost| total += *cost);
        total
    }

    /// For people: the sum, e.g. `84 trials, 61.0 s of processor time`, then the kinds, e.g.
    /// `1 untouched 0.7 s, 41 mutant 30.0 s`. The time by the clock is not printed, because tasks
    /// are screened at the same time.
    pub fn lines(&self) -> Vec<String> {
        let TrialCost { trials, processor_seconds, .. } = self.total();
        let sum = format!("{trials} trials, {processor_seconds:.1} s of processor time");
        let kinds: Vec<_> = self.kinds.iter().map(|(kind, cost)| cost.of(*kind)).collect();
        std::iter::once(sum).chain(kinds.chunks(KINDS_IN_A_LINE).map(|kinds| kinds.join(", "))).collect()
    }
}

/// So that a line stays within 100 columns.
const KINDS_IN_A_LINE: usize = 4;

impl TrialCost {
    fn of(&self, kind: RowKind) -> String {
        format!("{} {} {:.1} s", self.trials, kind.name().replace('_', " "), self.processor_seconds)
    }
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
    pub const VERSION: u32 = 3;

    /// Longest act in seconds, and largest peak in bytes, among the rows of one kind.
    pub fn most(&self, kind: RowKind) -> Option<(f64, Option<u64>)> {
        let of_kind = self.rows.iter().filter(|row| row.kind == kind);
        of_kind
            .map(|row| (row.act_seconds, row.peak_memory))
            .reduce(|one, two| (one.0.max(two.0), one.1.max(two.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_listed_by_kind() {
        let cost = |trials, processor_seconds| TrialCost { trials, processor_seconds, seconds: 9.0 };
        let kinds = [
            (RowKind::Mutant, cost(6, 1.0)),
            (RowKind::Reference, cost(2, 1.0)),
            (RowKind::Untouched, cost(1, 0.25)),
            (RowKind::Attack, cost(1, 0.5)),
            (RowKind::TruncatedSolution, cost(4, 2.25)),
        ];
        let mut sum = ScreeningCost::default();
        for _ in 0..2 {
            sum += &ScreeningCost { seconds: 3.0, kinds: kinds.into() };
        }
        assert_eq!(
            sum.lines(),
            [
                "28 trials, 10.0 s of processor time",
                "2 untouched 0.5 s, 4 reference 2.0 s, 8 truncated solution 4.5 s, 12 mutant 2.0 s",
                "2 attack 1.0 s",
            ]
        );
    }
}
