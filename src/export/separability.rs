//! Separability: how well a surface feature alone tells chosen sides from rejected ones.
//!
//! It is measured by the AUC: the probability that a random chosen side has a larger value than a
//! random rejected side. Ties count half. 0.5 means that the feature says nothing.

use std::fmt;

use serde::Serialize;

use super::pairs::{Pair, PairKind};
use super::surface::{Feature, Values, values};

/// The largest AUC that `--strict` accepts. The smallest is 1 minus this. At 0.65, a guess by this
/// feature alone would be right for about two of three pairs. Features that follow from the work,
/// e.g. one more check, are about that informative.
pub const MOST_AUC: f64 = 0.65;

/// Minimum number of pairs that a result is based on. With n pairs the standard error of an AUC is
/// about √(1 / 6n), 0.09 for 20 pairs. So with 20 pairs, one meaningless feature in ten is beyond
/// [`MOST_AUC`].
pub const FEWEST_PAIRS: usize = 20;

/// Maximum number of pairs that are measured, the first ones of an export. Here the standard error
/// is 0.003, so more pairs would only take memory.
const MOST_PAIRS: usize = 20_000;

/// The turns of a side that a feature is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Whole,
    /// The turns from the first differing action on.
    AfterDivergence,
}

impl Part {
    pub const ALL: [Self; 2] = [Self::Whole, Self::AfterDivergence];

    /// Its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "the whole side",
            Self::AfterDivergence => "the part after the divergence",
        }
    }
}

/// The features of both sides of many pairs.
#[derive(Clone, Debug, Default)]
pub struct Separability {
    /// For each pair, one sample for each part.
    samples: Vec<[Sample; Part::ALL.len()]>,
}

/// The features of both sides of a pair.
#[derive(Clone, Copy, Debug)]
struct Sample {
    chosen: Values,
    rejected: Values,
}

/// A feature that tells the sides apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Telling {
    pub feature: Feature,
    pub part: Part,
    pub auc: f64,
}

/// Why `--strict` refuses an export.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "surface features alone tell chosen from rejected sides in {pairs} pairs: {}\n\
     hint: a model would learn these features instead of the work. Export without --strict, and read the table of AUCs in the card. Rollouts that share \
     a prefix (`rollout --arm fork`) and more attempts for each task bring them nearer to 0.5",
    Listed(found)
)]
pub struct SeparableError {
    pub pairs: usize,
    /// The most telling feature first. Never empty.
    pub found: Vec<Telling>,
}

struct Listed<'a>(&'a [Telling]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Telling { feature, part, auc }) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { "; " };
            write!(
                f,
                "{gap}`{}` over {} has an AUC of {auc:.2}, not {:.2} to {MOST_AUC}",
                feature.as_str(),
                part.as_str(),
                1.0 - MOST_AUC
            )?;
        }
        Ok(())
    }
}

/// The table of AUCs.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pairs: usize,
    conclusive: bool,
    features: Vec<MeasuredFeature>,
}

#[derive(Debug, Serialize)]
pub(super) struct MeasuredFeature {
    name: &'static str,
    whole: String,
    after: String,
    /// Whether an AUC of the feature is outside of the accepted range.
    telling: bool,
}

impl Separability {
    /// Adds a pair. Pairs of rounds are skipped: one side contains the other, so their lengths
    /// always differ.
    pub(super) fn add(&mut self, pair: &Pair<'_>) {
        match pair.kind {
            PairKind::Fork | PairKind::NearMiss | PairKind::BestWorst => {}
            PairKind::SelfCorrection => return,
        }
        if self.samples.len() == MOST_PAIRS {
            return;
        }
        let (chosen, rejected) = (pair.chosen_side(), pair.rejected_side());
        let sample = |from| Sample { chosen: values(&chosen, from), rejected: values(&rejected, from) };
        self.samples.push([sample(0), sample(pair.divergence)]);
    }

    pub fn pairs(&self) -> usize {
        self.samples.len()
    }

    /// The AUC of each feature over a part. `None` without pairs.
    pub fn aucs(&self, part: Part) -> Option<[(Feature, f64); Feature::ALL.len()]> {
        if self.samples.is_empty() {
            return None;
        }
        let at = match part {
            Part::Whole => 0,
            Part::AfterDivergence => 1,
        };
        let mut number = 0;
        Some(Feature::ALL.map(|feature| {
            let of = |values: &Values| values.get(number).copied().unwrap_or_default();
            let samples = || self.samples.iter().filter_map(|sample| sample.get(at));
            let chosen: Vec<f64> = samples().map(|sample| of(&sample.chosen)).collect();
            let rejected: Vec<f64> = samples().map(|sample| of(&sample.rejected)).collect();
            number += 1;
            (feature, auc(&chosen, &rejected))
        }))
    }

    /// Whether there are enough pairs for a result.
    pub fn is_conclusive(&self) -> bool {
        self.pairs() >= FEWEST_PAIRS
    }

    /// The table for the card.
    pub(super) fn card(&self) -> Measured {
        let both = self.aucs(Part::Whole).zip(self.aucs(Part::AfterDivergence));
        let features = both.into_iter().flat_map(|(whole, after)| {
            whole.into_iter().zip(after).map(|((feature, whole), (_, after))| MeasuredFeature {
                name: feature.as_str(),
                whole: format!("{whole:.2}"),
                after: format!("{after:.2}"),
                telling: is_telling(whole) || is_telling(after),
            })
        });
        Measured { pairs: self.pairs(), conclusive: self.is_conclusive(), features: features.collect() }
    }

    /// Returns an error if a feature tells the sides apart, and there are enough pairs.
    pub fn check(&self) -> Result<(), SeparableError> {
        if !self.is_conclusive() {
            return Ok(());
        }
        let mut found: Vec<Telling> = Vec::new();
        for part in Part::ALL {
            let aucs = self.aucs(part).into_iter().flatten();
            found.extend(aucs.filter(|(_, auc)| is_telling(*auc)).map(|(feature, auc)| Telling {
                feature,
                part,
                auc,
            }));
        }
        found.sort_by(|one, other| strength(other.auc).total_cmp(&strength(one.auc)));
        if found.is_empty() { Ok(()) } else { Err(SeparableError { pairs: self.pairs(), found }) }
    }
}

/// Whether an AUC is outside of the accepted range.
pub fn is_telling(auc: f64) -> bool {
    !(1.0 - MOST_AUC..=MOST_AUC).contains(&auc)
}

fn strength(auc: f64) -> f64 {
    (auc - 0.5).abs()
}

/// The Mann–Whitney statistic of `chosen` against `rejected`, divided by the number of
/// combinations.
fn auc(chosen: &[f64], rejected: &[f64]) -> f64 {
    let mut pooled: Vec<(f64, bool)> = chosen.iter().map(|&value| (value, true)).collect();
    pooled.extend(rejected.iter().map(|&value| (value, false)));
    pooled.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let (mut below, mut won) = (0.0, 0.0);
    for tied in pooled.chunk_by(|(one, _), (other, _)| one == other) {
        let ours = tied.iter().filter(|(_, chosen)| *chosen).count() as f64;
        let theirs = tied.len() as f64 - ours;
        won += ours * (below + theirs / 2.0);
        below += theirs;
    }
    won / (chosen.len() as f64 * rejected.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;
    use crate::export::pairs::{PairPolicy, pairs};

    #[test]
    fn areas_under_the_curve() {
        let check = |chosen: &[f64], rejected: &[f64], expect: f64| {
            assert_eq!(auc(chosen, rejected), expect, "{chosen:?} {rejected:?}");
            assert_eq!(auc(rejected, chosen), 1.0 - expect);
        };
        check(&[1.0], &[0.0], 1.0);
        check(&[1.0], &[1.0], 0.5);
        check(&[1.0, 2.0], &[1.0, 2.0], 0.5);
        check(&[1.0, 2.0, 3.0], &[0.0, 2.0, 9.0], 0.5);
        check(&[2.0, 2.0], &[0.0, 2.0], 0.75);
        check(&[-0.0], &[0.0], 0.5);
    }

    /// `count` pairs whose chosen side has `more` commands than the rejected one.
    fn measured(count: u32, more: usize) -> Separability {
        let mut measured = Separability::default();
        for task in 0..count {
            let rollouts =
                [fixture::rollout("games", task, 0, 5, 4), fixture::rollout("games", task, 1, 5 + more, 8)];
            pairs(&rollouts, &PairPolicy::default()).unwrap().iter().for_each(|pair| measured.add(pair));
        }
        measured
    }

    #[test]
    fn telling_features_are_refused() {
        assert_eq!(Separability::default().aucs(Part::Whole), None);
        let few = measured(FEWEST_PAIRS as u32 - 1, 3);
        assert!(!few.is_conclusive() && few.check().is_ok());
        let of = |measured: &Separability, wanted| {
            let aucs = measured.aucs(Part::Whole).unwrap();
            aucs.into_iter().find(|(feature, _)| *feature == wanted).unwrap().1
        };
        assert_eq!(of(&few, Feature::Turns), 1.0);

        let many = measured(FEWEST_PAIRS as u32, 3);
        let error = many.check().unwrap_err();
        assert_eq!(error.pairs, FEWEST_PAIRS);
        assert!(
            error
                .found
                .iter()
                .any(|telling| telling.feature == Feature::Turns && telling.part == Part::Whole)
        );
        let text = error.to_string();
        for part in
            ["in 20 pairs", "`turns` over the whole side has an AUC of 1.00, not 0.35 to 0.65", "hint: "]
        {
            assert!(text.contains(part), "{text}");
        }

        // The lengths are equal. The remaining difference is the fixture's line numbers.
        let even = measured(FEWEST_PAIRS as u32, 0);
        assert_eq!(of(&even, Feature::Turns), 0.5);
        let found = even.check().err().map(|error| error.found).unwrap_or_default();
        assert!(found.iter().all(|telling| telling.feature != Feature::Turns));
    }

    #[test]
    fn the_accepted_range() {
        for (auc, expect) in [(0.5, false), (0.65, false), (0.36, false), (0.66, true), (0.34, true)] {
            assert_eq!(is_telling(auc), expect, "{auc}");
        }
    }
}
