//! Everything that is read once at the start: specs, recipes, shared templates, rules, prompts.

use std::collections::BTreeMap;

use crate::agent::{Prompts, PromptsError};
use crate::assets::Assets;
use crate::author::{AuthorError, Kit, Recipe, recipes};
use crate::domain::{DomainError, DomainSpec, load_domains};
use crate::lint::{LintError, Rules};
use crate::model::{DomainId, RecipeId};

/// Loaded and checked assets.
#[derive(Debug)]
pub struct Workshop {
    pub domains: BTreeMap<DomainId, DomainSpec>,
    pub recipes: BTreeMap<RecipeId, Recipe>,
    pub kit: Kit,
    pub rules: Rules,
    pub prompts: Prompts,
}

/// Assets that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkshopError {
    #[error(transparent)]
    Domain(#[from] DomainError),
    #[error(transparent)]
    Author(#[from] AuthorError),
    #[error(transparent)]
    Lint(#[from] LintError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
}

impl Workshop {
    /// Reads `assets`.
    pub fn load(assets: &Assets) -> Result<Self, WorkshopError> {
        let domains = load_domains(assets)?;
        let recipes = recipes(assets, &domains)?;
        Ok(Self {
            domains,
            recipes,
            kit: Kit::load(assets)?,
            rules: Rules::load(assets)?,
            prompts: Prompts::load(assets)?,
        })
    }
}
