//! Selects the mutants that are tried when there is no time for all.

use std::collections::BTreeMap;

use super::mutants::Mutant;
use super::operator::Operator;
use crate::model::Seed;

/// At most `at_most` of `mutants`, most informative first. They are spread over operators, regions
/// and lines. Uninformative ones come last. A smaller sample is the beginning of a larger one.
pub fn sample(mutants: Vec<Mutant>, at_most: usize, seed: Seed) -> Vec<Mutant> {
    let mut open: Vec<(u64, Mutant)> =
        mutants.into_iter().map(|mutant| (seed.derive(&[&mutant.place, &mutant.what]).0, mutant)).collect();
    let mut by_operator: BTreeMap<Operator, usize> = BTreeMap::new();
    let mut by_region: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_place: BTreeMap<String, usize> = BTreeMap::new();
    let mut taken = Vec::new();
    while taken.len() < at_most {
        let cost = |(chance, mutant): &(u64, Mutant)| {
            let of = |map: &BTreeMap<String, usize>, key: &str| map.get(key).copied().unwrap_or(0);
            let operator = by_operator.get(&mutant.operator).copied().unwrap_or(0);
            // A second mutant of a line is usually caught by the same check.
            let spread = operator + of(&by_region, &mutant.region);
            (mutant.uninformative.is_some(), of(&by_place, &mutant.place), spread, *chance)
        };
        let Some(best) = (0..open.len()).min_by_key(|at| cost(&open[*at])) else { break };
        let (_, mutant) = open.swap_remove(best);
        *by_operator.entry(mutant.operator).or_default() += 1;
        *by_region.entry(mutant.region.clone()).or_default() += 1;
        *by_place.entry(mutant.place.clone()).or_default() += 1;
        taken.push(mutant);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileTree;

    fn mutant(operator: Operator, place: &str, region: &str, uninformative: Option<&'static str>) -> Mutant {
        Mutant {
            operator,
            place: place.to_owned(),
            region: region.to_owned(),
            what: format!("{operator:?} {place}"),
            uninformative,
            files: FileTree::default(),
        }
    }

    fn many() -> Vec<Mutant> {
        let mut all: Vec<_> =
            (0..30).map(|n| mutant(Operator::Constant, &format!("a:{n}"), "a:1", None)).collect();
        all.push(mutant(Operator::Flag, "a:1", "a:1", None));
        all.push(mutant(Operator::Logic, "b:1", "b:1", None));
        all.push(mutant(Operator::Path, "c:1", "c:1", Some("no file")));
        all
    }

    #[test]
    fn operators_and_regions_come_before_more_of_the_same() {
        let first: Vec<_> = sample(many(), 3, Seed(7)).into_iter().map(|mutant| mutant.operator).collect();
        let mut sorted = first.clone();
        sorted.sort();
        assert_eq!(sorted, [Operator::Constant, Operator::Flag, Operator::Logic], "{first:?}");
    }

    #[test]
    fn uninformative_mutants_come_last_and_none_is_lost() {
        let all = sample(many(), usize::MAX, Seed(7));
        assert_eq!(all.len(), many().len());
        assert_eq!(all.last().unwrap().operator, Operator::Path);
    }

    #[test]
    fn samples_are_beginnings_of_larger_ones_and_depend_on_the_seed() {
        let large = sample(many(), 20, Seed(7));
        assert_eq!(sample(many(), 5, Seed(7)), large[..5]);
        assert_ne!(sample(many(), 20, Seed(8)), large);
        let mut shuffled = many();
        shuffled.reverse();
        assert_eq!(sample(shuffled, 20, Seed(7)), large);
    }
}
