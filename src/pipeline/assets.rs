//! Loads everything that is needed from the start: specs, recipes, shared templates, rules,
//! prompts.

use std::collections::BTreeMap;

use crate::agent::{PromptsError, ScriptedScaffolds};
use crate::assets::Assets;
use crate::author::{AuthorAssets, AuthorError, Recipe, recipes};
use crate::domain::{DomainError, DomainSpec, load_domains};
use crate::judge::judge_texts;
use crate::lint::attack::{Attack, AttackError, Kind, attacks};
use crate::lint::{LintError, Rules};
use crate::model::{DomainId, RecipeId};
use crate::mutate::{VariantError, variants};
use crate::prompts::PromptSet;
use crate::rollout::{Forensics, Texts};
use crate::screen::{AttackSuite, Exploit, Watch, WatchPlace};

/// Loaded and checked assets.
#[derive(Debug)]
pub struct PipelineAssets {
    pub domains: BTreeMap<DomainId, DomainSpec>,
    pub recipes: BTreeMap<RecipeId, Recipe>,
    pub kit: AuthorAssets,
    pub rules: Rules,
    pub suite: AttackSuite,
    /// The scaffolds of scripted experts.
    pub scripted: ScriptedScaffolds,
    /// Prompts of models that act as agents, for every scaffold and arm.
    pub texts: Texts,
    /// Prompts of the role `judge`.
    pub judge: PromptSet,
}

/// Why assets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AssetsError {
    #[error(transparent)]
    Domain(#[from] DomainError),
    #[error(transparent)]
    Author(#[from] AuthorError),
    #[error(transparent)]
    Lint(#[from] LintError),
    #[error(transparent)]
    Attack(#[from] AttackError),
    #[error(transparent)]
    Variant(#[from] VariantError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
}

impl PipelineAssets {
    /// Loads `assets`.
    pub fn load(assets: &Assets) -> Result<Self, AssetsError> {
        let domains = load_domains(assets)?;
        let recipes = recipes(assets, &domains)?;
        let known = attacks(assets)?;
        Ok(Self {
            domains,
            recipes,
            kit: AuthorAssets::load(assets)?,
            rules: Rules::load(assets)?,
            suite: AttackSuite {
                attacks: known.iter().filter_map(exploit).collect(),
                watches: known.iter().filter_map(watch).collect(),
                variants: variants(assets)?,
            },
            scripted: ScriptedScaffolds::load(assets)?,
            judge: judge_texts(assets)?,
            texts: Texts::load(assets, Forensics::new(&known))?,
        })
    }
}

/// The attack as a script for trials. `None` if it is a pattern.
fn exploit(attack: &Attack) -> Option<Exploit> {
    match &attack.kind {
        Kind::Execute { script, alone } => Some(Exploit {
            id: attack.id.clone(),
            name: attack.name.clone(),
            script: script.clone(),
            alone: *alone,
            plants: attack.plants.clone().unwrap_or_default(),
            stopped_by: attack.stopped_by.clone().unwrap_or_default(),
        }),
        Kind::Scan(_) | Kind::Trace(_) => None,
    }
}

/// The attack as a pattern for commands. `None` if it is a script.
fn watch(attack: &Attack) -> Option<Watch> {
    let watched = match attack.kind {
        Kind::Execute { .. } => return None,
        Kind::Scan(_) => WatchPlace::Task,
        Kind::Trace(_) => WatchPlace::Trajectory,
    };
    Some(Watch { name: attack.name.clone(), place: watched })
}
