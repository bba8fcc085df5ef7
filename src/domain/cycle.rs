//! The seeded order in which recipes are used.

use std::collections::BTreeMap;

use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use rand::seq::SliceRandom as _;

use crate::model::{DomainId, Seed};

/// A seeded cycle over all recipes, interleaved by domain. With *D* domains, the first *D*
/// positions have different domains. With *R* recipes, each cycle of *R* positions has every recipe
/// once.
pub(super) struct Cycle {
    /// Indices of the recipes of each domain.
    domains: Vec<Vec<u32>>,
    recipes: u32,
    run_seed: Seed,
}

impl Cycle {
    /// A cycle over recipes. `domains` has the domain of each.
    pub(super) fn new<'a>(domains: impl Iterator<Item = &'a DomainId>, run_seed: Seed) -> Self {
        let mut by_domain: BTreeMap<&DomainId, Vec<u32>> = BTreeMap::new();
        let mut recipes = 0;
        for domain in domains {
            by_domain.entry(domain).or_default().push(recipes);
            recipes += 1;
        }
        Self { domains: by_domain.into_values().collect(), recipes, run_seed }
    }

    /// Index of the recipe at position `index`. `None` if there are no recipes.
    pub(super) fn recipe_at(&self, index: u32) -> Option<usize> {
        let round = index.checked_div(self.recipes)?;
        let turn = (index % self.recipes) as usize;
        self.order(round).get(turn).map(|place| *place as usize)
    }

    /// Each cycle has its own order. Otherwise a shard `i/n` would always contain the same recipes
    /// if *n* divides their number.
    fn order(&self, round: u32) -> Vec<u32> {
        let seed = self.run_seed.derive(&["cycle", &round.to_string()]);
        let mut rng = ChaCha20Rng::seed_from_u64(seed.0);
        let mut domains = self.domains.clone();
        domains.shuffle(&mut rng);
        for recipes in &mut domains {
            recipes.shuffle(&mut rng);
        }
        let longest = domains.iter().map(Vec::len).max().unwrap_or_default();
        (0..longest)
            .flat_map(|turn| domains.iter().filter_map(move |recipes| recipes.get(turn).copied()))
            .collect()
    }
}
