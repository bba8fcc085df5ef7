//! The prompts of all stages, one folder of `templates/prompts` for each.

use std::collections::BTreeMap;

use super::stage::{Asks, StageRef};
use super::stages::STAGES;
use crate::assets::Assets;
use crate::prompts::{PromptSet, PromptsError};

/// Prompts of every stage that asks a model, and of the judges.
#[derive(Clone, Debug)]
pub struct StageTexts {
    stages: BTreeMap<&'static str, PromptSet>,
    pub(super) arbiter: PromptSet,
    /// Prompts about mutants that pass every check.
    pub(super) equivalence: PromptSet,
    /// Prompts about a request that a recording shows.
    pub(super) recording: PromptSet,
    /// Prompts for a harder or easier task.
    pub(super) evolve: PromptSet,
    /// Prompts about the shell in which stages try things out.
    pub(super) shell: PromptSet,
}

impl StageTexts {
    /// Reads the prompts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let load = |name: &str, needed: &[&str]| PromptSet::load(assets, &folder_of(name), needed);
        let folder = |name: &str| load(name, &["task.md.j2"]);
        let asking = STAGES.iter().filter(|stage| matches!(stage.asks(), Asks::Model(_)));
        let stages = asking.map(|stage| Ok((stage.name(), load(stage.name(), stage.texts())?)));
        Ok(Self {
            stages: stages.collect::<Result<_, PromptsError>>()?,
            arbiter: folder("arbiter")?,
            equivalence: folder("equivalence")?,
            recording: folder("recording")?,
            evolve: folder("evolve")?,
            shell: load("shell", &["offer.md.j2", "observation.md.j2"])?,
        })
    }

    /// The prompts of a stage.
    pub(super) fn of(&self, stage: StageRef) -> Result<&PromptSet, PromptsError> {
        let missing =
            || PromptsError::Missing { folder: folder_of(stage.name()), name: "task.md.j2".to_owned() };
        self.stages.get(stage.name()).ok_or_else(missing)
    }
}

/// The folder in `templates/prompts` of a stage or a judge.
pub(super) fn folder_of(name: &str) -> String {
    format!("author-{name}")
}
