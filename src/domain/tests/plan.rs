use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::model::{Blueprint, RecipeId, Seed};

fn planned(count: u32, seed: u64) -> Plan {
    // Parsed once, because the property tests plan hundreds of times.
    static GARDEN: LazyLock<(Specs, Recipes)> = LazyLock::new(garden);
    plan(&GARDEN.0, &GARDEN.1, Seed(seed), count, &Domains::All)
}

#[test]
fn the_first_twenty_blueprints_are_golden() {
    let lines: Vec<_> =
        planned(20, 7).blueprints.iter().map(|blueprint| serde_json::to_string(blueprint).unwrap()).collect();
    insta::assert_snapshot!("blueprints", lines.join("\n"));
}

#[test]
fn the_embedded_plan_reaches_every_domain_first_and_then_every_recipe() {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap();
    let recipes = load_recipes(&assets, &specs).unwrap();
    reaches_everything(&specs, &recipes);
    let (specs, recipes) = garden();
    reaches_everything(&specs, &recipes);
}

fn reaches_everything(specs: &Specs, recipes: &Recipes) {
    let domains: BTreeSet<_> =
        recipes.keys().filter_map(|id| id.as_str().split_once('/')).map(|(domain, _)| domain).collect();
    for seed in 0..20 {
        let count = 3 * recipes.len();
        let plan = plan(specs, recipes, Seed(seed), u32::try_from(count).unwrap(), &Domains::All);
        let first: BTreeSet<_> =
            plan.blueprints.iter().take(domains.len()).map(|each| each.domain.as_str()).collect();
        assert_eq!(first, domains, "seed {seed}");
        for cycle in plan.blueprints.chunks(recipes.len().max(1)) {
            let hit: BTreeSet<_> = cycle.iter().map(|each| each.recipe().unwrap()).collect();
            assert_eq!(hit.len(), recipes.len(), "seed {seed}");
        }
    }
}

#[test]
fn axes_keep_to_the_recipe_and_to_the_weights() {
    let (specs, recipes) = garden();
    let plan = planned(600, 1);
    for blueprint in &plan.blueprints {
        let (spec, decl) = (&specs[&blueprint.domain], &recipes[blueprint.recipe().unwrap()]);
        assert!(decl.kinds.contains(&blueprint.kind) && decl.difficulties.contains(&blueprint.difficulty));
        assert!(decl.languages.contains(&blueprint.language) && decl.fixtures.contains(&blueprint.fixture));
        assert!(decl.verifiers.contains(&blueprint.verifier) && spec.persona(&blueprint.persona).is_some());
        assert_eq!(blueprint.skills, decl.skills);
    }
    let share = |test: fn(&Blueprint) -> bool| {
        plan.blueprints.iter().filter(|blueprint| test(blueprint)).count() as f64
            / plan.blueprints.len() as f64
    };
    let from_scratch = share(|each| each.kind.as_str() == "from-scratch");
    assert!((0.68..0.82).contains(&from_scratch), "weight 3 of 4: {from_scratch}");
    let easy = share(|each| each.difficulty.as_str() == "easy");
    assert!((0.43..0.57).contains(&easy), "weight 1 of 2: {easy}");
}

#[test]
fn operations_are_those_of_the_skills_in_terminalworlds_order() {
    let (specs, _) = garden();
    let spec = &specs["garden"];
    for (skills, expected) in [
        (vec!["pruning", "digging"], vec![Operation::FileSystem, Operation::TextEditing, Operation::Testing]),
        (vec!["watering", "digging"], vec![Operation::FileSystem, Operation::Network]),
        (vec![], vec![]),
    ] {
        let skills: Vec<_> = skills.into_iter().map(str::to_owned).collect();
        assert_eq!(spec.operations(&skills), expected, "{skills:?}");
    }
}

#[test]
fn impossible_cells_are_reported() {
    let (specs, mut recipes) = garden();
    recipes.retain(|id, _| id.as_str() != "garden/water-bed");
    for decl in recipes.values_mut() {
        decl.kinds.retain(|kind| kind.as_str() == "bug-fix");
        decl.difficulties.retain(|level| level.as_str() == "easy");
    }
    let narrow = plan(&specs, &recipes, Seed(1), 0, &Domains::All);
    let told: Vec<_> =
        narrow.impossible.iter().map(ToString::to_string).filter(|line| !line.contains("skill-")).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    garden: no recipe makes from-scratch tasks
    garden: no recipe makes hard bug-fix tasks
    garden: no recipe exercises `grafting`
    garden: no recipe exercises `watering`
    orchard: no recipe makes from-scratch tasks
    orchard: no recipe makes hard bug-fix tasks
    orchard: no recipe exercises `digging`
    orchard: no recipe exercises `pruning`
    orchard: no recipe exercises `grafting`
    pond has no recipe; `termsmith new recipe pond/NAME` creates one
    ");
    insta::assert_snapshot!(gaps(&narrow.impossible), @"
    garden: no recipe makes from-scratch, hard bug-fix; no recipe exercises grafting, watering, skill-5, skill-6, skill-7, skill-8, skill-9, skill-10, skill-11, skill-12, skill-13, skill-14, skill-15
    orchard: no recipe makes from-scratch, hard bug-fix; no recipe exercises digging, pruning, grafting, skill-5, skill-6, skill-7, skill-8, skill-9, skill-10, skill-11, skill-12, skill-13, skill-14, skill-15
    pond has no recipe; `termsmith new recipe pond/NAME` creates one
    ");
}

#[test]
fn a_recipe_that_its_domain_gives_no_weight_is_left_out() {
    let (mut specs, recipes) = garden();
    let spec = specs.get_mut("orchard").unwrap();
    spec.kinds.retain(|kind, _| kind.as_str() == "refactor");
    let plan = plan(&specs, &recipes, Seed(1), 30, &Domains::All);
    assert_eq!(plan.blueprints.len(), 30);
    assert!(plan.blueprints.iter().all(|each| each.domain.as_str() == "garden"));
    assert!(
        plan.impossible
            .iter()
            .any(|cell| cell.cell == Cell::Recipe(RecipeId::parse("orchard/water-trees").unwrap()))
    );
}

#[test]
fn without_recipes_there_is_no_blueprint() {
    let (specs, _) = garden();
    let plan = plan(&specs, &Recipes::new(), Seed(1), 5, &Domains::All);
    assert_eq!(plan.blueprints, []);
    assert_eq!(plan.impossible.len(), 3);
}

#[test]
fn domains_by_name() {
    let (specs, recipes) = garden();
    let named = |names: &[&str]| {
        Domains::named(&specs, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(named(&[]).unwrap(), Domains::All);
    let only = named(&["garden", "garden"]).unwrap();
    let plan = plan(&specs, &recipes, Seed(1), 9, &only);
    assert_eq!(plan.blueprints.iter().map(|each| each.index).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    assert!(plan.blueprints.iter().all(|each| each.domain.as_str() == "garden"));
    assert!(plan.impossible.iter().all(|cell| cell.domain.as_str() == "garden"));
    let message = named(&["gardem"]).unwrap_err().to_string();
    assert_eq!(message, "unknown domain `gardem`\nhint: did you mean `garden`?");
}

#[test]
fn the_grid_counts_every_cell() {
    let (specs, _) = garden();
    let plan = planned(12, 7);
    let grid = coverage(&specs, &plan.blueprints);
    insta::assert_snapshot!("coverage_table", grid.table());
    insta::assert_snapshot!("coverage_json", serde_json::to_string_pretty(&grid).unwrap());
}

proptest! {
    #[test]
    fn fewer_blueprints_are_a_prefix(seed: u64, long in 0u32..60, short in 0u32..60) {
        let (long, short) = (long.max(short), long.min(short));
        let (all, some) = (planned(long, seed).blueprints, planned(short, seed).blueprints);
        prop_assert_eq!(&all[..short as usize], &some[..]);
    }

    #[test]
    fn shards_partition_the_plan(seed: u64, count in 0u32..60, shards in 1u32..9) {
        let plan = planned(count, seed);
        let mut parts: Vec<Blueprint> = (0..shards)
            .filter_map(|index| Shard::new(index, shards))
            .flat_map(|shard| plan.shard(shard).cloned().collect::<Vec<_>>())
            .collect();
        parts.sort_by_key(|blueprint| blueprint.index);
        prop_assert_eq!(parts, plan.blueprints);
    }
}
