//! How a model wrote a task: its stages, and the versions that each needed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Blueprint, Key};

/// A stage of writing a task, in order (LiteCoder-Terminal, §3; the blind solver is TerminalWorld's
/// and LongCLI-Bench's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthorStage {
    /// A user's request.
    Idea,
    /// Whether the request can become a task.
    Feasibility,
    /// The starting state.
    Environment,
    /// The text that a solver reads.
    Instruction,
    /// The reference solution.
    Solution,
    /// The tests.
    Checks,
    /// Scripts that try to pass without the work.
    Attacks,
    /// What each sentence demands, and solutions that violate it.
    Clauses,
    /// Whole wrong solutions by somebody who has not seen the tests.
    Mistakes,
    /// Limits, and weights of the tests.
    Configuration,
    /// The certificate's trials.
    Screening,
    /// Solvers that see only the instruction and the machine.
    Blind,
}

impl AuthorStage {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::Idea,
        Self::Feasibility,
        Self::Environment,
        Self::Instruction,
        Self::Solution,
        Self::Checks,
        Self::Attacks,
        Self::Clauses,
        Self::Mistakes,
        Self::Configuration,
        Self::Screening,
        Self::Blind,
    ];

    /// The id used in files and call sites.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idea => "idea",
            Self::Feasibility => "feasibility",
            Self::Environment => "environment",
            Self::Instruction => "instruction",
            Self::Solution => "solution",
            Self::Checks => "checks",
            Self::Attacks => "attacks",
            Self::Clauses => "clauses",
            Self::Mistakes => "mistakes",
            Self::Configuration => "configuration",
            Self::Screening => "screening",
            Self::Blind => "blind",
        }
    }
}

/// Whether stages may try things out before they reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthoringMode {
    /// Machine, solution and tests are written by an agent with a shell on the machine.
    Shell,
    /// Every version is a single reply.
    OneShot,
}

/// How often solvers of one strength passed.
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
pub enum Band {
    /// A strong solver passes at times, a weak one less than half of the time.
    Wanted,
    /// A weak solver passes half of the time or more.
    TooEasy,
    /// No solver passes.
    TooHard,
}

impl Band {
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
pub struct BandRecord {
    /// How often the task had been evolved.
    pub evolution: u32,
    pub strong: Passed,
    pub weak: Passed,
    pub band: Band,
}

/// What became of one blueprint at the hands of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthoringRecord {
    pub blueprint: Blueprint,
    /// How the request was sampled: `chat`, `prefill` or `prefix`, or `recording`.
    pub sampling: String,
    /// BLAKE3 of the recording that it was made from, if it was made from one.
    pub recording: Option<String>,
    pub mode: AuthoringMode,
    /// The request that the task began as.
    pub request: String,
    /// Versions in the order in which they were examined.
    pub versions: Vec<StageVersion>,
    /// How solvers fared, where difficulty is measured; the last of them is of the draft, unless a
    /// later evolution was given up.
    pub bands: Vec<BandRecord>,
    pub outcome: AuthoringOutcome,
}

/// One version of one stage's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageVersion {
    pub stage: AuthorStage,
    /// From 1.
    pub version: u32,
    /// What was wrong with it; 0 for an accepted version.
    pub problems: u32,
}

/// The end of an authoring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthoringOutcome {
    /// A draft, under this key.
    Draft(Key),
    /// The stage whose result could not be mended, and how many of its problems were left.
    Rejected(AuthorStage),
}

/// Problems of versions, in the words that the model was told. They quote outputs of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthoringLog {
    /// One for each of [`AuthoringRecord::versions`].
    pub problems: Vec<Vec<String>>,
}
