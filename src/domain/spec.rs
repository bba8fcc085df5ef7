//! Domain specs: `domains/<id>.toml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LimitOverrides, Operation};
use crate::model::{Difficulty, DomainId, EngineeringKind, Limits, Profile};

/// All domains of a run, by id. The id is the stem of the file.
pub type Specs = BTreeMap<DomainId, DomainSpec>;

/// A domain: the axes along which its tasks differ, and the environment of its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "termsmith domain spec")]
pub struct DomainSpec {
    /// Version of this format: 1.
    pub version: u32,
    /// Name for people.
    pub title: String,
    /// Several sentences for a model, which describe real work in the domain.
    pub description: String,
    /// Programming languages that tasks ask for, or that existing programs are written in.
    pub languages: Vec<String>,
    /// Commands that a solver is expected to use.
    pub tools: Vec<String>,
    /// Base image of new recipes: the name of a folder in `templates/bases/`.
    pub base: String,
    /// Capability profile of new recipes.
    #[serde(default)]
    pub profile: Profile,
    /// Relative frequency of each engineering kind. The default is 0.
    pub kinds: BTreeMap<EngineeringKind, f64>,
    /// Relative frequency of each difficulty. The default is 0.
    pub difficulty: BTreeMap<Difficulty, f64>,
    /// Limits of the domain's tasks. termsmith's defaults replace missing ones.
    #[serde(default)]
    pub limits: LimitOverrides,
    /// At least [`DomainSpec::MIN_SKILLS`] skills.
    pub skills: Vec<Skill>,
    /// People who may write the instruction.
    pub personas: Vec<Persona>,
    /// Kinds of data or programs that a task starts with.
    pub fixtures: Vec<Fixture>,
    /// Ways to judge a result.
    pub verifiers: Vec<VerifierKind>,
}

/// An ability that a task can exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Kebab-case.
    pub id: String,
    /// The ability, as a phrase.
    pub title: String,
    /// Terminal operations that exercise it.
    pub operations: Vec<Operation>,
}

/// A person who asks for the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Persona {
    /// Kebab-case.
    pub id: String,
    /// One sentence.
    pub text: String,
}

/// A kind of data or program that a task starts with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// Kebab-case.
    pub id: String,
    /// One sentence.
    pub description: String,
}

/// A way to judge a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifierKind {
    /// Kebab-case.
    pub id: String,
    /// One sentence.
    pub description: String,
}

impl DomainSpec {
    /// The version of the format that this build reads.
    pub const VERSION: u32 = 1;

    /// Minimum number of skills of a domain. With fewer, its tasks would repeat each other.
    pub const MIN_SKILLS: usize = 15;

    /// Limits of the domain's tasks, before a recipe overrides them.
    pub fn limits(&self) -> Limits {
        self.limits.over(&Limits::default())
    }

    /// The skill with the id `id`.
    pub fn skill(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id == id)
    }

    /// The persona with the id `id`.
    pub fn persona(&self, id: &str) -> Option<&Persona> {
        self.personas.iter().find(|persona| persona.id == id)
    }

    /// The operations that `skills` exercise. Each occurs once, in the order of [`Operation::ALL`].
    pub fn operations(&self, skills: &[String]) -> Vec<Operation> {
        let exercised = |operation: &Operation| {
            skills.iter().filter_map(|id| self.skill(id)).any(|skill| skill.operations.contains(operation))
        };
        Operation::ALL.into_iter().filter(exercised).collect()
    }
}
