//! Plans blueprints over the cells of the specs, whether or not a recipe can fill them.
//!
//! As in [`super::plan`], blueprint *i* depends only on specs, recipes, run seed and *i*.

use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};

use super::cycle::Cycle;
use super::impossible::impossible_cells;
use super::plan::{Candidate, Domains, Plan, candidates, plan, uniform, weighted};
use super::{DomainSpec, Recipes, Specs};
use crate::model::{Blueprint, Difficulty, DomainId, EngineeringKind, Seed, TaskAuthor};

/// Maximum number of draws of a cell. After that a cell that already has a recipe is accepted,
/// because a domain may have no empty cell.
const MAX_DRAWS: u32 = 64;
/// Probability that a task has a second skill. Most requests are about one thing.
const SECOND_SKILL: f64 = 0.5;

/// Who writes the tasks of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authors {
    /// Recipes only.
    Recipes,
    /// A model only.
    Model,
    /// Recipes write the cells that they can fill, and a model writes the others.
    Mixed,
    /// A model only, and only cells that no recipe can fill.
    Fill,
}

/// The first `count` blueprints of a run by these authors.
pub fn plan_by(
    specs: &Specs,
    recipes: &Recipes,
    run_seed: Seed,
    count: u32,
    domains: &Domains,
    authors: Authors,
) -> Plan {
    if authors == Authors::Recipes {
        return plan(specs, recipes, run_seed, count, domains);
    }
    let wanted: Vec<_> = specs.iter().filter(|(id, _)| domains.contains(id)).collect();
    let cycle = Cycle::new(wanted.iter().map(|(id, _)| *id), run_seed);
    let usable: Vec<_> = candidates(specs, recipes, domains).filter(Candidate::is_usable).collect();
    let blueprints = (0..count).filter_map(|index| {
        let (domain, spec) = *wanted.get(cycle.recipe_at(index)?)?;
        let own: Vec<_> = usable.iter().filter(|candidate| candidate.domain == domain).collect();
        blueprint(domain, spec, &own, run_seed, index, authors)
    });
    Plan { blueprints: blueprints.collect(), impossible: impossible_cells(specs, recipes, domains) }
}

fn blueprint(
    domain: &DomainId,
    spec: &DomainSpec,
    own: &[&Candidate<'_>],
    run_seed: Seed,
    index: u32,
    authors: Authors,
) -> Option<Blueprint> {
    let seed = run_seed.derive(&["open-blueprint", domain.as_str(), &index.to_string()]);
    let axis = |name: &str| ChaCha20Rng::seed_from_u64(seed.derive(&["axis", name]).0);
    let mut rng = axis("cell");
    let mut cell = || {
        let kind = *weighted(&EngineeringKind::ALL, &spec.kinds, &mut rng)?;
        let difficulty = *weighted(&Difficulty::ALL, &spec.difficulty, &mut rng)?;
        Some((kind, difficulty))
    };
    let recipe_for = |kind: EngineeringKind, difficulty: Difficulty| {
        let fits: Vec<_> = own
            .iter()
            .filter(|candidate| {
                candidate.decl.kinds.contains(&kind) && candidate.decl.difficulties.contains(&difficulty)
            })
            .collect();
        uniform(&fits, &mut axis("recipe")).map(|candidate| ***candidate)
    };
    let mut drawn = cell()?;
    if authors == Authors::Fill {
        for _ in 0..MAX_DRAWS {
            if recipe_for(drawn.0, drawn.1).is_none() {
                break;
            }
            drawn = cell()?;
        }
    }
    let (kind, difficulty) = drawn;
    if authors == Authors::Mixed
        && let Some(candidate) = recipe_for(kind, difficulty)
    {
        return Some(Blueprint { kind, difficulty, ..candidate.blueprint(run_seed, index)? });
    }
    let mut rng = axis("skills");
    let mut skills = vec![uniform(&spec.skills, &mut rng)?.id.clone()];
    if rng.random::<f64>() < SECOND_SKILL {
        let second = &uniform(&spec.skills, &mut rng)?.id;
        if !skills.contains(second) {
            skills.push(second.clone());
        }
    }
    let operations = spec.operations(&skills);
    Some(Blueprint {
        index,
        seed,
        domain: domain.clone(),
        author: TaskAuthor::Model,
        operations: operations.into_iter().map(|operation| operation.as_str().to_owned()).collect(),
        skills,
        kind,
        persona: uniform(&spec.personas, &mut axis("persona"))?.id.clone(),
        language: uniform(&spec.languages, &mut axis("language"))?.clone(),
        difficulty,
        fixture: uniform(&spec.fixtures, &mut axis("fixture"))?.id.clone(),
        verifier: uniform(&spec.verifiers, &mut axis("verifier"))?.id.clone(),
    })
}
