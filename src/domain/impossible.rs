//! Impossible cells: cells of the coverage grid that a spec asks for and no recipe can fill.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::plan::{Candidate, Domains, candidates};
use super::{RecipeDecl, Recipes, Specs};
use crate::model::{Difficulty, DomainId, EngineeringKind, RecipeId};

/// A cell that stays empty for every seed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ImpossibleCell {
    pub domain: DomainId,
    pub cell: Cell,
}

/// The part of a domain that cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// The domain has no recipes.
    Domain,
    /// The recipe declares only kinds, or only difficulties, that have no weight in the domain.
    Recipe(RecipeId),
    /// No recipe makes tasks of this kind at a difficulty that the domain asks for.
    Kind(EngineeringKind),
    /// No recipe makes tasks of this kind at this difficulty. Some make them at another difficulty.
    KindDifficulty(EngineeringKind, Difficulty),
    /// No recipe exercises this skill.
    Skill(String),
}

impl fmt::Display for ImpossibleCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = &self.domain;
        match &self.cell {
            Cell::Domain => {
                write!(f, "{domain} has no recipe; `termsmith new recipe {domain}/NAME` creates one")
            }
            Cell::Recipe(recipe) => {
                write!(f, "{recipe} declares no kind or no difficulty that has a weight in {domain}")
            }
            Cell::Kind(kind) => write!(f, "{domain}: no recipe makes {} tasks", kind.as_str()),
            Cell::KindDifficulty(kind, difficulty) => {
                write!(f, "{domain}: no recipe makes {} {} tasks", difficulty.as_str(), kind.as_str())
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
        for kind in wanted(&spec.kinds) {
            let makes_kind_at = |level: &Difficulty| {
                let fits =
                    |decl: &RecipeDecl| decl.kinds.contains(&kind) && decl.difficulties.contains(level);
                recipes.iter().any(|recipe| fits(recipe.decl))
            };
            let (prepared, missing): (Vec<_>, Vec<_>) = wanted(&spec.difficulty).partition(makes_kind_at);
            if prepared.is_empty() {
                add(Cell::Kind(kind));
            } else {
                missing.into_iter().for_each(|level| add(Cell::KindDifficulty(kind, level)));
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

/// The values with a positive weight in a mix.
fn wanted<T: Copy>(mix: &BTreeMap<T, f64>) -> impl Iterator<Item = T> {
    mix.iter().filter(|(_, weight)| **weight > 0.0).map(|(item, _)| *item)
}

/// The cells as text: one line per domain, with everything that a new recipe could fill.
pub fn gaps(cells: &[ImpossibleCell]) -> String {
    let mut by_domain: BTreeMap<&DomainId, Vec<&ImpossibleCell>> = BTreeMap::new();
    for cell in cells {
        by_domain.entry(&cell.domain).or_default().push(cell);
    }
    let mut out = String::new();
    for (domain, cells) in by_domain {
        let pick = |of: fn(&Cell) -> Option<String>| {
            cells.iter().filter_map(|cell| of(&cell.cell)).collect::<Vec<_>>()
        };
        let prepared = pick(|cell| match cell {
            Cell::Kind(kind) => Some(kind.as_str().to_owned()),
            Cell::KindDifficulty(kind, level) => Some(format!("{} {}", level.as_str(), kind.as_str())),
            Cell::Domain | Cell::Recipe(_) | Cell::Skill(_) => None,
        });
        let skills = pick(|cell| match cell {
            Cell::Skill(skill) => Some(skill.clone()),
            Cell::Domain | Cell::Recipe(_) | Cell::Kind(_) | Cell::KindDifficulty(..) => None,
        });
        let lists = [("no recipe makes", prepared), ("no recipe exercises", skills)];
        let lists = lists.iter().filter(|(_, list)| !list.is_empty());
        let lists: Vec<_> = lists.map(|(what, list)| format!("{what} {}", list.join(", "))).collect();
        for cell in cells.iter().filter(|cell| matches!(cell.cell, Cell::Domain | Cell::Recipe(_))) {
            out += &format!("{cell}\n");
        }
        if !lists.is_empty() {
            out += &format!("{domain}: {}\n", lists.join("; "));
        }
    }
    out
}
