//! Mutants of every recipe's reference solution: there are enough, of many kinds, and they are
//! sound.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use termsmith::assets::Assets;
use termsmith::author::{AuthorAssets, Recipe, draft, recipes};
use termsmith::domain::{Domains, OwnVariantDecl, VariantsDecl, load_domains, plan};
use termsmith::model::{Applies, Draft, File, Limits, RelPath, Seed};
use termsmith::mutate::{Mutant, Operator, ablations, mutants, sample};

/// Minimum number of mutants for a task's kill rate, if its solution is long enough.
const ENOUGH: usize = 20;

/// One draft of each recipe, modified by `bend`.
fn bent_drafts(bend: impl Fn(&mut Recipe)) -> Vec<Draft> {
    let mut seen = BTreeSet::new();
    let mut drafts = all_drafts(60, bend);
    drafts.retain(|draft| seen.insert(draft.task.blueprint.author.clone()));
    drafts
}

/// The drafts of a plan of this many tasks.
fn all_drafts(count: u32, bend: impl Fn(&mut Recipe)) -> Vec<Draft> {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap();
    let mut recipes = recipes(&assets, &specs).unwrap();
    recipes.values_mut().for_each(bend);
    let kit = AuthorAssets::load(&assets).unwrap();
    let declared = recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
    let plan = plan(&specs, &declared, Seed(7), count, &Domains::All);
    plan.blueprints
        .iter()
        .map(|blueprint| {
            let limits = specs[&blueprint.domain].limits.over(&Limits::default());
            draft(&kit, &recipes[blueprint.recipe().unwrap()], blueprint, &limits).unwrap()
        })
        .collect()
}

fn drafts() -> Vec<Draft> {
    bent_drafts(|_| ())
}

/// A draft is refused if no clause has a sentence of its instruction, or if an edit does not fit
/// its solution.
#[test]
fn every_recipe_declares_what_its_instruction_demands() {
    // The plan has every recipe about twice at every difficulty.
    for draft in all_drafts(80, |_| ()) {
        let clauses = &draft.clauses.clause;
        let violations: usize = clauses.iter().map(|clause| clause.violation.len()).sum();
        let name = &draft.task.name;
        assert!(clauses.len() >= 10 && violations >= 25, "{name}: {} clauses, {violations}", clauses.len());
    }
}

#[test]
fn every_reference_has_mutants_of_many_kinds() {
    let mut table = String::new();
    let mut few = Vec::new();
    for draft in drafts() {
        let all = mutants(&draft.task.solution);
        let informative = all.iter().filter(|mutant| mutant.uninformative.is_none()).count();
        let script = draft.task.solution.text("solve.sh").unwrap();
        let mut by_operator: BTreeMap<Operator, usize> = BTreeMap::new();
        for mutant in &all {
            *by_operator.entry(mutant.operator).or_default() += 1;
        }
        let recipe = draft.task.blueprint.recipe().unwrap();
        write!(
            table,
            "{recipe}: {} mutants, {informative} informative, {} ablations;",
            all.len(),
            ablations(script).len()
        )
        .unwrap();
        for (operator, count) in by_operator {
            write!(table, " {} {count}", operator.as_str()).unwrap();
        }
        table.push('\n');
        if informative < ENOUGH {
            few.push((recipe.clone(), informative));
        }
    }
    insta::assert_snapshot!(table);
    assert!(few.is_empty(), "{few:?}");
}

#[test]
fn mutants_are_distinct_and_samples_are_spread() {
    for draft in drafts() {
        let all = mutants(&draft.task.solution);
        let recipe = draft.task.blueprint.recipe().unwrap();
        let key = |mutant: &Mutant| termsmith::model::task_digest(&mutant.files);
        let texts: BTreeSet<_> = all.iter().map(key).collect();
        assert_eq!(texts.len(), all.len(), "{recipe}");
        assert!(all.iter().all(|mutant| mutant.files != draft.task.solution), "{recipe}");
        let operators = |some: &[Mutant]| some.iter().map(|mutant| mutant.operator).collect::<BTreeSet<_>>();
        let informative: Vec<_> =
            all.iter().filter(|mutant| mutant.uninformative.is_none()).cloned().collect();
        let sampled = sample(all, ENOUGH, Seed(7));
        assert_eq!(sampled.len(), ENOUGH, "{recipe}");
        assert!(
            operators(&sampled).len() + 1 >= operators(&informative).len().min(8),
            "{recipe}: {:?}",
            operators(&sampled)
        );
    }
}

#[test]
fn drafts_carry_the_legal_variants() {
    for draft in drafts() {
        assert!(draft.variants.len() >= 10, "{:?}", draft.task.blueprint.author);
    }
}

#[test]
fn a_recipe_leaves_out_includes_and_adds_variants() {
    let bent = bent_drafts(|recipe| {
        let own = OwnVariantDecl {
            name: "spare".to_owned(),
            title: "A spare file".to_owned(),
            applies: Applies::Any,
            legal: "It is not checked.".to_owned(),
        };
        recipe.decl.variants = VariantsDecl {
            include: vec!["csv-row-order".to_owned()],
            exclude: BTreeMap::from([("json-compact".to_owned(), "indented by two".to_owned())]),
            own: vec![own],
        };
        let script = File::text("touch /tmp/{{ task.difficulty }}\n");
        recipe.files.insert(RelPath::new("variants/spare.sh.j2").unwrap(), script);
    });
    for draft in bent {
        let names: Vec<_> = draft.variants.iter().map(|variant| &*variant.name).collect();
        assert!(names.contains(&"csv-row-order") && !names.contains(&"csv-quoted"), "{names:?}");
        assert!(names.contains(&"json-indented") && !names.contains(&"json-compact"), "{names:?}");
        assert_eq!(draft.variants_excluded["json-compact"], "indented by two");
        let own = draft.variants.last().unwrap();
        let expect = format!("touch /tmp/{}\n", draft.task.blueprint.difficulty.as_str());
        assert_eq!((&*own.name, &own.script), ("spare", &expect));
    }
}

/// For work on an operator: `cargo test --test fast mutants -- --ignored --nocapture` lists every
/// mutant, best first.
#[test]
#[ignore = "prints, and checks nothing"]
#[allow(clippy::print_stdout, reason = "it is a listing")]
fn list() {
    for draft in drafts() {
        println!("{:?}", draft.task.blueprint.author);
        for mutant in sample(mutants(&draft.task.solution), usize::MAX, Seed(7)) {
            let Mutant { operator, place, what, uninformative, .. } = mutant;
            println!("  {} {place} {what} {}", operator.as_str(), uninformative.unwrap_or_default());
        }
    }
}
