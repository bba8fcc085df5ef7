//! The report: passes, step scores, causes of failure and effort. It has one section for each
//! solver (teacher, scaffold and arm), in total and by task.
//!
//! Attempts that failed because of the engine, the endpoint or the verifier are `masked`: no rate
//! counts them. An attempt that tried to pass without doing the work did not pass. A rollout counts
//! once, however often it is given.

mod render;
mod tally;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use render::text;

use self::tally::Tally;
use crate::model::{Estimate, Rollout, Scores, TaskDigest, TaskName};

/// Raise it if a field is removed or changes its meaning.
pub const VERSION: u32 = 3;

/// A rollout with its observed cost.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub rollout: Rollout,
    /// Seconds from its beginning to its verdict.
    pub seconds: Option<f64>,
    /// Charges for its model calls, in US dollars.
    pub usd: Option<f64>,
}

/// The report of a set of rollouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of this format.
    pub version: u32,
    /// Sorted by solver.
    pub solvers: Vec<SolverReport>,
}

/// A solver. Attempts of different solvers are never pooled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Solver {
    /// A model's name, or `scripted`, `oracle`, `nop`.
    pub teacher: String,
    /// The scaffold, or the agent program.
    pub scaffold: String,
    /// The version of an agent that is not termsmith's own, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    pub arm: String,
    /// For a model that was told to cheat, what it could read: `blind` or `tests`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub adversary: Option<String>,
}

/// All attempts of one solver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SolverReport {
    pub solver: Solver,
    pub counts: Scores,
    /// Share of scored attempts that passed. Wilson's interval at the number of attempts says how
    /// sure the share is for exactly these tasks.
    pub pass_rate: Option<Estimate>,
    /// For k = 1, 2, 4, … up to the most scored attempts at one task.
    pub at: Vec<At>,
    pub breakdown: Breakdown,
    /// Sorted by name.
    pub tasks: Vec<TaskReport>,
}

/// Means over tasks, at one number of attempts. Wilson's intervals at the number of tasks say how
/// sure the mean is for tasks of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct At {
    pub k: u64,
    /// Tasks with at least k scored attempts. Others are left out.
    pub tasks: u64,
    /// pass@k: at least one of k attempts passes.
    pub pass_at: Estimate,
    /// pass^k: all of k attempts pass.
    pub pass_all: Estimate,
}

/// One solver's attempts at one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    pub task: TaskName,
    pub task_digest: Option<TaskDigest>,
    pub counts: Scores,
    /// As for all tasks, but of this one alone.
    pub pass_rate: Option<Estimate>,
    pub at: Vec<TaskAt>,
    pub breakdown: Breakdown,
}

/// Estimates for one task, at one number of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAt {
    pub k: u64,
    pub pass_at: f64,
    pub pass_all: f64,
}

/// Attempts by result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    pub step_scores: StepScores,
    /// Attempts by cause of failure.
    pub failure_kinds: BTreeMap<String, u64>,
    /// Attempts by reason for stopping, e.g. `submitted`.
    pub ends: BTreeMap<String, u64>,
    /// Attempts by label of the judge. An attempt may have several.
    pub labels: BTreeMap<String, u64>,
    /// Attempts by attack that forensics found in them, e.g. `D-12`.
    pub exploits: BTreeMap<String, u64>,
    /// Effort by class of attempt.
    pub effort: BTreeMap<AttemptClass, Effort>,
}

/// F2P step scores of scored attempts, in the bands of LongCLI-Bench (Table 3). A score is the
/// percentage of F2P checks that passed, by weight. Imported rollouts are left out, because their
/// checks are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepScores {
    #[serde(rename = "[0,30)")]
    pub below_30: u64,
    #[serde(rename = "[30,60)")]
    pub below_60: u64,
    #[serde(rename = "[60,80)")]
    pub below_80: u64,
    #[serde(rename = "[80,100)")]
    pub below_100: u64,
    #[serde(rename = "[100]")]
    pub full: u64,
    /// Mean of all scores, in [0, 1].
    pub mean: Option<f64>,
}

impl StepScores {
    /// Names of the bands.
    pub const BANDS: [&str; 5] = ["[0,30)", "[30,60)", "[60,80)", "[80,100)", "[100]"];

    /// Number of attempts in each band, in that order.
    pub fn bands(&self) -> [u64; 5] {
        [self.below_30, self.below_60, self.below_80, self.below_100, self.full]
    }

    fn of(scores: &[f64]) -> Self {
        let mut sorted = Self::default();
        for score in scores {
            let band = match score {
                score if *score < 0.3 => &mut sorted.below_30,
                score if *score < 0.6 => &mut sorted.below_60,
                score if *score < 0.8 => &mut sorted.below_80,
                score if *score < 1.0 => &mut sorted.below_100,
                _ => &mut sorted.full,
            };
            *band += 1;
        }
        let sum: f64 = scores.iter().sum();
        sorted.mean = (!scores.is_empty()).then(|| sum / scores.len() as f64);
        sorted
    }
}

/// The class of an attempt in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptClass {
    Passed,
    /// The solver failed, or met a limit.
    Failed,
    /// It tried to pass without doing the work.
    Exploit,
    /// It says nothing about the solver.
    Masked,
}

impl AttemptClass {
    /// The id used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Exploit => "exploit",
            Self::Masked => "masked",
        }
    }
}

/// Effort of the attempts of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    pub attempts: u64,
    pub seconds: Spread,
    pub turns: Spread,
    /// Tokens that the model read.
    pub prompt_tokens: Spread,
    /// Tokens that the model wrote.
    pub completion_tokens: Spread,
    pub usd: Spread,
}

/// A quantity over attempts. All fields are 0 if it is known for no attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Number of attempts for which it is known.
    pub known: u64,
    pub total: f64,
    pub mean: f64,
    pub median: f64,
}

/// The report of `groups`. Each group holds some rollouts of one task. Any order is fine.
pub fn report<E>(groups: impl IntoIterator<Item = Result<Vec<Attempt>, E>>) -> Result<Report, E> {
    let mut tally = Tally::default();
    for group in groups {
        for attempt in group? {
            tally.add(&attempt);
        }
    }
    Ok(tally.report())
}

/// JSON Schema of [`Report`].
pub fn report_schema() -> schemars::Schema {
    schemars::schema_for!(Report)
}

#[cfg(test)]
mod tests;
