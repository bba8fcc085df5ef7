//! The prompts of the stages: one folder of `templates/prompts` each.

use std::collections::BTreeMap;

use crate::assets::Assets;
use crate::model::AuthorStage;
use crate::prompts::{PromptSet, PromptsError};

/// Prompts of every stage that asks a model, and of the judges.
#[derive(Clone, Debug)]
pub struct StageTexts {
    stages: BTreeMap<AuthorStage, PromptSet>,
    pub(super) arbiter: PromptSet,
    /// Of mutants that pass every check.
    pub(super) equivalence: PromptSet,
    /// Of a request that a recording shows.
    pub(super) recording: PromptSet,
    /// Of a task that becomes harder or easier.
    pub(super) evolve: PromptSet,
    /// Of the shell in which stages try things out.
    pub(super) shell: PromptSet,
}

impl StageTexts {
    /// Reads the prompts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        // An overriding folder must be complete, whatever the endpoint.
        PromptSet::load(assets, "author-idea", &["prefix.md.j2"])?;
        let load = |name: &str, needed: &[&str]| PromptSet::load(assets, &format!("author-{name}"), needed);
        let folder = |name: &str| load(name, &["task.md.j2"]);
        let mut stages = BTreeMap::new();
        for stage in AuthorStage::ALL {
            let needed: &[&str] = match stage {
                AuthorStage::Screening | AuthorStage::Blind => continue,
                AuthorStage::Idea | AuthorStage::Feasibility => &["task.md.j2"],
                // The second is what a stage is told of a version that cannot be used.
                AuthorStage::Environment
                | AuthorStage::Instruction
                | AuthorStage::Solution
                | AuthorStage::Checks
                | AuthorStage::Attacks
                | AuthorStage::Clauses
                | AuthorStage::Mistakes
                | AuthorStage::Configuration => &["task.md.j2", "feedback.md.j2"],
            };
            stages.insert(stage, load(stage.as_str(), needed)?);
        }
        let shell = ["offer.md.j2", "observation.md.j2", "environment.md", "solution.md", "checks.md"];
        let shell = PromptSet::load(assets, "author-shell", &shell)?;
        Ok(Self {
            stages,
            arbiter: folder("arbiter")?,
            equivalence: folder("equivalence")?,
            recording: folder("recording")?,
            evolve: folder("evolve")?,
            shell,
        })
    }

    /// The prompts of a stage.
    pub(super) fn of(&self, stage: AuthorStage) -> Result<&PromptSet, PromptsError> {
        let missing = || PromptsError::Missing {
            folder: format!("author-{}", stage.as_str()),
            name: "task.md.j2".to_owned(),
        };
        self.stages.get(&stage).ok_or_else(missing)
    }
}
