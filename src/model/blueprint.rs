//! Blueprints: the plan of one task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DomainId, RecipeId, Seed};

/// The plan of one task. It is a pure function of specs, recipes, run seed and index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blueprint {
    /// Number of the task in the run, from 0.
    pub index: u32,
    /// All randomness of the task derives from this.
    pub seed: Seed,
    pub domain: DomainId,
    pub author: TaskAuthor,
    /// Skill ids of the domain spec that the task exercises.
    pub skills: Vec<String>,
    /// Operations of those skills, from TerminalWorld's sixteen.
    pub operations: Vec<String>,
    pub kind: EngineeringKind,
    pub persona: String,
    /// The language that the instruction asks for, or that the existing program is written in.
    pub language: String,
    pub difficulty: Difficulty,
    /// Fixture id of the domain spec.
    pub fixture: String,
    /// Verifier kind of the domain spec.
    pub verifier: String,
}

/// Who writes the task of a blueprint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskAuthor {
    /// A recipe, which is rendered offline.
    Recipe(RecipeId),
    /// A language model, stage by stage.
    Model,
}

impl TaskAuthor {
    /// The id used in files.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Recipe(_) => "recipe",
            Self::Model => "model",
        }
    }
}

impl Blueprint {
    /// The recipe that makes the task. `None` if a model writes it.
    pub fn recipe(&self) -> Option<&RecipeId> {
        match &self.author {
            TaskAuthor::Recipe(recipe) => Some(recipe),
            TaskAuthor::Model => None,
        }
    }
}

/// LongCLI-Bench's categories of engineering work (§3.3 of its paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineeringKind {
    /// 0 → 1: the program does not exist yet.
    FromScratch,
    /// N → N+1: a working program gains behaviour.
    FeatureAddition,
    /// No → Yes: something that should work is broken.
    BugFix,
    /// A → A′: the behaviour stays, the structure changes.
    Refactor,
}

impl EngineeringKind {
    /// All four, in the paper's order.
    pub const ALL: [Self; 4] = [Self::FromScratch, Self::FeatureAddition, Self::BugFix, Self::Refactor];

    /// The id used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FromScratch => "from-scratch",
            Self::FeatureAddition => "feature-addition",
            Self::BugFix => "bug-fix",
            Self::Refactor => "refactor",
        }
    }
}

/// The amount of work that a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    Easy,
    Medium,
    Hard,
}

impl Difficulty {
    /// All three, easiest first.
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// The id used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }
}
