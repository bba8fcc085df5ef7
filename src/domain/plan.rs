//! Plans blueprints from specs and recipes.
//!
//! Blueprint *i* depends only on specs, recipes, run seed and *i*. It does not depend on earlier
//! blueprints, or on their number. So a run can be extended, sharded and resumed.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use super::cycle::Cycle;
use super::impossible::{ImpossibleCell, impossible_cells};
use super::problem::suggest;
use super::shard::Shard;
use super::{DomainSpec, RecipeDecl, Recipes, Specs};
use crate::model::{Blueprint, DomainId, RecipeId, Seed, TaskAuthor};

/// Blueprints, and the cells that no recipe can fill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Sorted by index, from 0.
    pub blueprints: Vec<Blueprint>,
    /// Cells that the specs ask for and no recipe fills.
    pub impossible: Vec<ImpossibleCell>,
}

/// The domains of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domains {
    All,
    Only(BTreeSet<DomainId>),
}

/// The error for a requested domain that has no spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown domain `{name}`\nhint: {hint}")]
pub struct UnknownDomain {
    pub name: String,
    pub hint: String,
}

impl Domains {
    /// The domains with these names. All domains if `names` is empty.
    pub fn named(specs: &Specs, names: &[String]) -> Result<Self, UnknownDomain> {
        let find = |name: &String| {
            let known = || specs.keys().map(DomainId::as_str);
            let unknown = || UnknownDomain { name: name.clone(), hint: suggest(name, known()) };
            specs.keys().find(|id| id.as_str() == name).cloned().ok_or_else(unknown)
        };
        let only: BTreeSet<_> = names.iter().map(find).collect::<Result<_, _>>()?;
        Ok(if only.is_empty() { Self::All } else { Self::Only(only) })
    }

    /// Whether the plan includes the domain.
    pub fn contains(&self, id: &DomainId) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(id),
        }
    }
}

/// The first `count` blueprints of a run.
///
/// The recipe is chosen first: by a seeded cycle over all recipes, interleaved by domain. The other
/// axes are drawn from the values that the recipe declares, with the weights of its domain.
pub fn plan(specs: &Specs, recipes: &Recipes, run_seed: Seed, count: u32, domains: &Domains) -> Plan {
    let usable: Vec<_> = candidates(specs, recipes, domains).filter(Candidate::is_usable).collect();
    let cycle = Cycle::new(usable.iter().map(|candidate| candidate.domain), run_seed);
    let blueprints = (0..count).filter_map(|index| {
        let candidate = usable.get(cycle.recipe_at(index)?)?;
        candidate.blueprint(run_seed, index)
    });
    Plan { blueprints: blueprints.collect(), impossible: impossible_cells(specs, recipes, domains) }
}

impl Plan {
    /// The blueprints of one shard, in order.
    pub fn shard(&self, shard: Shard) -> impl Iterator<Item = &Blueprint> {
        self.blueprints.iter().filter(move |blueprint| shard.contains(blueprint.index))
    }
}

/// A recipe with the spec of its domain.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) domain: &'a DomainId,
    pub(super) spec: &'a DomainSpec,
    pub(super) id: &'a RecipeId,
    pub(super) decl: &'a RecipeDecl,
}

/// Recipes of the wanted domains, by id.
pub(super) fn candidates<'a>(
    specs: &'a Specs,
    recipes: &'a Recipes,
    domains: &'a Domains,
) -> impl Iterator<Item = Candidate<'a>> {
    recipes.iter().filter_map(|(id, decl)| {
        let (domain, spec) = specs.get_key_value(id.domain())?;
        domains.contains(domain).then_some(Candidate { domain, spec, id, decl })
    })
}

impl Candidate<'_> {
    /// Whether a kind and a difficulty that the recipe declares have a weight in the domain.
    pub(super) fn is_usable(&self) -> bool {
        let wanted = |weight: Option<&f64>| weight.is_some_and(|weight| *weight > 0.0);
        self.decl.kinds.iter().any(|kind| wanted(self.spec.kinds.get(kind)))
            && self.decl.difficulties.iter().any(|level| wanted(self.spec.difficulty.get(level)))
    }

    pub(super) fn blueprint(&self, run_seed: Seed, index: u32) -> Option<Blueprint> {
        let seed = run_seed.derive(&["blueprint", self.domain.as_str(), &index.to_string()]);
        // Each axis has its own generator. E.g. a longer list of personas must not change the
        // language.
        let axis = |name: &str| ChaCha20Rng::seed_from_u64(seed.derive(&["axis", name]).0);
        let operations = self.spec.operations(&self.decl.skills);
        Some(Blueprint {
            index,
            seed,
            domain: self.domain.clone(),
            author: TaskAuthor::Recipe(self.id.clone()),
            skills: self.decl.skills.clone(),
            operations: operations.into_iter().map(|operation| operation.as_str().to_owned()).collect(),
            kind: *weighted(&self.decl.kinds, &self.spec.kinds, &mut axis("kind"))?,
            persona: uniform(&self.spec.personas, &mut axis("persona"))?.id.clone(),
            language: uniform(&self.decl.languages, &mut axis("language"))?.clone(),
            difficulty: *weighted(&self.decl.difficulties, &self.spec.difficulty, &mut axis("difficulty"))?,
            fixture: uniform(&self.decl.fixtures, &mut axis("fixture"))?.clone(),
            verifier: uniform(&self.decl.verifiers, &mut axis("verifier"))?.clone(),
        })
    }
}

pub(super) fn uniform<'a, T>(items: &'a [T], rng: &mut ChaCha20Rng) -> Option<&'a T> {
    // Drawn as `u32`, because ranges of `usize` give other numbers on other platforms.
    let len = u32::try_from(items.len()).ok().filter(|len| *len > 0)?;
    items.get(rng.random_range(0..len) as usize)
}

/// Draws one of `items`, with probability proportional to its weight. `None` if no weight is
/// positive.
pub(super) fn weighted<'a, T: Ord>(
    items: &'a [T],
    weights: &BTreeMap<T, f64>,
    rng: &mut ChaCha20Rng,
) -> Option<&'a T> {
    let weigh = |item: &'a T| Some((item, weights.get(item).copied().filter(|weight| *weight > 0.0)?));
    let positive: Vec<_> = items.iter().filter_map(weigh).collect();
    let total: f64 = positive.iter().map(|(_, weight)| weight).sum();
    let mut left = rng.random::<f64>() * total;
    for (item, weight) in &positive {
        left -= weight;
        if left < 0.0 {
            return Some(item);
        }
    }
    // Reached only because of rounding.
    positive.last().map(|(item, _)| *item)
}
