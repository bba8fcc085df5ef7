//! How a model wrote a task: its stages, and the versions that each needed.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Blueprint, Key};

/// The name of a stage of writing a task, e.g. `checks`. `authoring::STAGES` lists the stages of
/// this version, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StageName(Cow<'static, str>);

impl StageName {
    /// The name of a stage of this version.
    pub const fn of(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The part of an authoring that a stage belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthoringPhase {
    /// Before there is a draft. A second request is no repair of the first.
    Request,
    Draft,
}

/// Whether the author can run commands before it replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthoringMode {
    /// An agent with a shell on the task's machine writes environment, solution and tests.
    Shell,
    /// Every version is a single reply.
    OneShot,
}

/// Attempts of the solvers of one strength, and how many of them passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    pub passed: u32,
    /// Attempts.
    pub of: u32,
}

/// How hard a task is for solvers of two strengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifficultyBand {
    /// A strong solver passes sometimes. A weak one passes less than half of the time.
    Wanted,
    /// A weak solver passes half of the time or more.
    TooEasy,
    /// No solver passes.
    TooHard,
}

impl DifficultyBand {
    /// The id used in files and prompts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wanted => "wanted",
            Self::TooEasy => "too_easy",
            Self::TooHard => "too_hard",
        }
    }
}

/// How solvers fared at one version of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DifficultyRecord {
    /// Rewrites of the task before this measurement.
    pub evolution: u32,
    pub strong: Passed,
    pub weak: Passed,
    pub difficulty_band: DifficultyBand,
}

/// How a model turned one blueprint into a task, or failed to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthoringRecord {
    pub blueprint: Blueprint,
    /// How the request was sampled: `chat`, `prefill`, `prefix` or `recording`.
    pub sampling: String,
    /// BLAKE3 of the recording that the request was made from. `None` for an invented request.
    pub recording: Option<String>,
    pub mode: AuthoringMode,
    /// The request that the task was made from.
    pub request: String,
    /// Versions in the order in which they were examined.
    pub versions: Vec<StageVersion>,
    /// Measured difficulty, one entry for each measured version of the task. The last entry is
    /// about the draft, unless a later rewrite was given up. Empty if difficulty is not measured.
    pub difficulty_bands: Vec<DifficultyRecord>,
    pub outcome: AuthoringOutcome,
}

/// One version of one stage's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageVersion {
    pub stage: StageName,
    /// From 1.
    pub version: u32,
    /// Number of problems that were found in it. 0 means accepted.
    pub problems: u32,
}

/// How an authoring ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthoringOutcome {
    /// Key of the finished draft.
    Draft(Key),
    /// The stage whose result could not be mended, and how many of its problems were left.
    Rejected(StageName),
}

/// Problems of versions, as they were sent to the model. They quote outputs of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthoringLog {
    /// One list for each entry of [`AuthoringRecord::versions`].
    pub problems: Vec<Vec<String>>,
}
