//! `domains/<id>.toml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LimitOverrides, Operation};
use crate::model::{Difficulty, DomainId, EngineeringKind, Limits, Profile};

/// All domains of a run. The id is the stem of the file.
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
    /// Several sentences, written for a model: what real work in the domain looks like.
    pub description: String,
    /// Languages that tasks ask for or that existing programs are written in.
    pub languages: Vec<String>,
    /// Commands that a solver is expected to use.
    pub tools: Vec<String>,
    /// Base image that new recipes start from: a folder in `templates/bases/`.
    pub base: String,
    /// Capability profile that new recipes start from.
    #[serde(default)]
    pub profile: Profile,
    /// Relative frequency of each engineering kind; a missing one is 0.
    pub kinds: BTreeMap<EngineeringKind, f64>,
    /// Relative frequency of each difficulty; a missing one is 0.
    pub difficulty: BTreeMap<Difficulty, f64>,
    /// Limits of the domain's tasks; missing ones have termsmith's defaults.
    #[serde(default)]
    pub limits: LimitOverrides,
    /// At least [`DomainSpec::MIN_SKILLS`].
    pub skills: Vec<Skill>,
    /// Possible authors of the instruction.
    pub personas: Vec<Persona>,
    /// Families of starting material.
    pub fixtures: Vec<Fixture>,
    /// How a result is judged.
    pub verifiers: Vec<VerifierKind>,
}

/// Something that a task can exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Kebab-case.
    pub id: String,
    /// The ability, as a phrase.
    pub title: String,
    /// Operations that exercise it at the terminal.
    pub operations: Vec<Operation>,
}

/// A person who requests the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Persona {
    /// Kebab-case.
    pub id: String,
    /// One sentence.
    pub text: String,
}

/// A family of starting material.
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

    /// With fewer skills, a domain's tasks would repeat each other.
    pub const MIN_SKILLS: usize = 15;

    /// Limits of the domain's tasks, before a recipe changes them.
    pub fn limits(&self) -> Limits {
        self.limits.over(&Limits::default())
    }

    /// The skill called `id`.
    pub fn skill(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id == id)
    }

    /// The persona called `id`.
    pub fn persona(&self, id: &str) -> Option<&Persona> {
        self.personas.iter().find(|persona| persona.id == id)
    }

    /// The operations that `skills` exercise, each once, in [`Operation::ALL`]'s order.
    pub fn operations(&self, skills: &[String]) -> Vec<Operation> {
        let exercised = |operation: &Operation| {
            skills.iter().filter_map(|id| self.skill(id)).any(|skill| skill.operations.contains(operation))
        };
        Operation::ALL.into_iter().filter(exercised).collect()
    }
}
