//! `[metadata.termsmith]`: task fields for which Harbor has no key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{
    Blueprint, CheckId, Difficulty, DomainId, EngineeringKind, Profile, RecipeId, Seed, Task, TaskAuthor,
};

/// The table, with one key per line. The task can be restored from it, Harbor's keys and the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermsmithTable {
    /// Version of this table.
    pub format: u32,
    /// Version of the termsmith that wrote it.
    pub tool: String,
    pub domain: DomainId,
    pub skills: Vec<String>,
    pub operations: Vec<String>,
    pub kind: EngineeringKind,
    pub difficulty: Difficulty,
    pub persona: String,
    pub language: String,
    pub fixture: String,
    pub verifier: String,
    /// The author of the task: `recipe` or `model`.
    pub author: String,
    /// Absent if a model wrote the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<RecipeId>,
    pub recipe_version: u32,
    pub seed: Seed,
    pub index: u32,
    pub base: String,
    pub profile: Profile,
    pub roots: Vec<String>,
    pub programs: bool,
    pub bring_up: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_because: Option<String>,
    /// Number of processes and threads. Harbor has no such limit.
    pub pids: u32,
    pub checks: Vec<CheckId>,
    /// Weights of checks in step scores, other than 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<CheckId, f64>,
    pub canary: String,
}

impl TermsmithTable {
    /// The version that this build writes and reads.
    pub const FORMAT: u32 = 4;

    /// The table of `task`.
    pub fn of(task: &Task) -> Self {
        let Blueprint {
            index,
            seed,
            domain,
            author,
            skills,
            operations,
            kind,
            persona,
            language,
            difficulty,
            fixture,
            verifier,
        } = task.blueprint.clone();
        Self {
            format: Self::FORMAT,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            domain,
            skills,
            operations,
            kind,
            difficulty,
            persona,
            language,
            fixture,
            verifier,
            author: author.as_str().to_owned(),
            recipe: match author {
                TaskAuthor::Recipe(recipe) => Some(recipe),
                TaskAuthor::Model => None,
            },
            recipe_version: task.recipe_version,
            seed,
            index,
            base: task.base.clone(),
            profile: task.profile,
            roots: task.submission.roots.clone(),
            programs: task.submission.programs,
            bring_up: task.submission.bring_up.clone(),
            shared_because: task.submission.shared_because.clone(),
            pids: task.limits.pids,
            checks: task.checks.clone(),
            weights: task.weights.clone(),
            canary: task.canary.clone(),
        }
    }

    /// The blueprint that the task was made from.
    pub fn blueprint(self) -> Blueprint {
        Blueprint {
            index: self.index,
            seed: self.seed,
            domain: self.domain,
            author: self.recipe.map_or(TaskAuthor::Model, TaskAuthor::Recipe),
            skills: self.skills,
            operations: self.operations,
            kind: self.kind,
            persona: self.persona,
            language: self.language,
            difficulty: self.difficulty,
            fixture: self.fixture,
            verifier: self.verifier,
        }
    }
}
