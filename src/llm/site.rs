//! Call sites: the place of a call in a run. It tells equal requests apart.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The use of a model. Each role has an endpoint and a model of its own in `termsmith.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// Works in an environment; its trajectories become data.
    Expert,
    /// Labels trajectories.
    Judge,
    /// Writes the key steps for plan injection.
    Planner,
    /// Answers an expert's questions.
    Mentor,
    /// Tries to pass without doing the work.
    Adversary,
    /// Samples ideas for tasks.
    Sampler,
    /// Writes tasks.
    Author,
    /// Solves a task without having seen its solution.
    Solver,
    /// A weaker solver. A task that it passes is too easy.
    Weak,
}

impl ModelRole {
    /// The role as `termsmith.toml` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expert => "expert",
            Self::Judge => "judge",
            Self::Planner => "planner",
            Self::Mentor => "mentor",
            Self::Adversary => "adversary",
            Self::Sampler => "sampler",
            Self::Author => "author",
            Self::Solver => "solver",
            Self::Weak => "weak",
        }
    }
}

impl fmt::Display for ModelRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The place of a model call in a run. No two calls of a run have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSite {
    pub role: ModelRole,
    /// The blueprint or trial that the call is for.
    pub unit: String,
    /// The stage of the caller's work, e.g. `step` or `plan`.
    pub stage: String,
    /// Round of an attempt with feedback, from 0.
    pub round: u32,
    /// Step in the round, from 0.
    pub step: u32,
    /// Number of the reply to the same request, from 0.
    pub sample: u32,
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, unit, stage, round, step, sample } = self;
        write!(f, "{role}/{stage} of `{unit}`, round {round}, step {step}, sample {sample}")
    }
}
