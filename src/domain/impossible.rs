//! What the specs ask for and no recipe can make.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::plan::{Candidate, Domains, candidates};
use super::{Recipes, Specs};
use crate::model::{Difficulty, DomainId, EngineeringKind, RecipeId};

/// A cell of the coverage grid that stays empty whatever the seed, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ImpossibleCell {
    pub domain: DomainId,
    pub cell: Cell,
}

/// What is out of reach in a domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// The domain has no recipe at all.
    Domain,
    /// The recipe declares only kinds or difficulties to which the domain gives no weight.
    Recipe(RecipeId),
    /// No recipe poses this kind at this difficulty.
    KindDifficulty(EngineeringKind, Difficulty),
    /// No recipe exercises this skill.
    Skill(String),
}

impl fmt::Display for ImpossibleCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = &self.domain;
        match &self.cell {
            Cell::Domain => {
                write!(f, "{domain} has no recipe; `termsmith new recipe {domain}/NAME` starts one")
            }
            Cell::Recipe(recipe) => {
                write!(f, "{recipe} declares only kinds or difficulties to which {domain} gives no weight")
            }
            Cell::KindDifficulty(kind, difficulty) => {
                write!(f, "{domain}: no recipe poses {} {} tasks", difficulty.as_str(), kind.as_str())
            }
            Cell::Skill(skill) => write!(f, "{domain}: no recipe exercises `{skill}`"),
        }
    }
}

/// Every cell that no recipe fills, by domain.
pub(super) fn impossible_cells(specs: &Specs, recipes: &Recipes, domains: &Domains) -> Vec<ImpossibleCell> {
    let mut by_domain: BTreeMap<&DomainId, Vec<Candidate<'_>>> = BTreeMap::new();
    for candidate in candidates(specs, recipes, domains) {
        by_domain.entry(candidate.domain).or_default().push(candidate);
    }
    let mut cells = Vec::new();
    for (domain, spec) in specs.iter().filter(|(id, _)| domains.contains(id)) {
        let mut add = |cell| cells.push(ImpossibleCell { domain: domain.clone(), cell });
        let Some(recipes) = by_domain.get(domain) else {
            add(Cell::Domain);
            continue;
        };
        for recipe in recipes.iter().filter(|recipe| !recipe.is_usable()) {
            add(Cell::Recipe(recipe.id.clone()));
        }
        for (kind, _) in spec.kinds.iter().filter(|(_, weight)| **weight > 0.0) {
            for (level, _) in spec.difficulty.iter().filter(|(_, weight)| **weight > 0.0) {
                let poses = |recipe: &Candidate<'_>| {
                    recipe.decl.kinds.contains(kind) && recipe.decl.difficulties.contains(level)
                };
                if !recipes.iter().any(poses) {
                    add(Cell::KindDifficulty(*kind, *level));
                }
            }
        }
        for skill in &spec.skills {
            if !recipes.iter().any(|recipe| recipe.is_usable() && recipe.decl.skills.contains(&skill.id)) {
                add(Cell::Skill(skill.id.clone()));
            }
        }
    }
    cells
}
