//! Figures for the dataset card: lengths, errors, pairs, and rollouts without a pair.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::exclusion::Exclusion;
use super::messages::assistant_text;
use super::overlap::{SHORTEST_LINE, Solutions};
use super::pairs::{PairKind, Unpaired, select};
use super::separability::{Measured, Separability};
use super::train::{errors_and_recoveries, repaired};
use super::{ExportOptions, RowsError, pref_dmpo, split};
use crate::model::{Actor, FailureMode, MadeMistake, Rollout};

/// Counts over the rollouts of an export. They are made in the same pass as the rows.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Split groups that occur.
    pub(super) groups: BTreeSet<String>,
    turns: Vec<usize>,
    characters: Vec<usize>,
    /// For each passing rollout, the percentage of its command lines that also occur in a solution.
    overlaps: Vec<usize>,
    passes: Errors,
    scripted: Scripted,
    kinds: BTreeMap<PairKind, u64>,
    unpaired: BTreeMap<Unpaired, u64>,
    modes: BTreeMap<&'static str, u64>,
    labels: BTreeMap<String, u64>,
    losers: u64,
    pub(super) separability: Separability,
}

/// Errors in passing rollouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Errors {
    /// Passing rollouts with at least one message.
    rollouts: u64,
    /// Rollouts in which a command failed.
    with_error: u64,
    /// Failed commands. Those that a successful command followed are `recovered`.
    errors: u64,
    recovered: u64,
    /// Rollouts in which a file was written again after a failure.
    with_repair: u64,
}

/// Mistakes of scripted experts in passing rollouts. The expert found each by its own check, and
/// repaired it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Scripted {
    rollouts: u64,
    with_mistake: u64,
    /// Rollouts in which a first repair left the mistake as it was.
    with_wrong_repair: u64,
    kinds: BTreeMap<&'static str, u64>,
}

impl Scripted {
    fn add(&mut self, mistakes: &[MadeMistake]) {
        self.rollouts += 1;
        self.with_mistake += u64::from(!mistakes.is_empty());
        self.with_wrong_repair += u64::from(mistakes.iter().any(|made| !made.wrong_repairs.is_empty()));
        for mistake in mistakes {
            *self.kinds.entry(mistake.kind.as_str()).or_default() += 1;
        }
    }
}

impl Figures {
    /// Adds the rollouts of one task. `exclusions` says for each whether it has rows of `sft` or
    /// `sft_tools`.
    pub(super) fn add(
        &mut self,
        rollouts: &[Rollout],
        exclusions: &[Option<Exclusion>],
        solutions: &Solutions,
        options: &ExportOptions,
    ) -> Result<(), RowsError> {
        for (rollout, exclusion) in rollouts.iter().zip(exclusions) {
            self.groups.insert(split::group(rollout));
            if exclusion.is_none() {
                self.turns.push(rollout.record.turns.len());
                let texts = rollout.record.turns.iter().map(assistant_text);
                self.characters.push(texts.map(|text| text.chars().count()).sum());
            }
            if rollout.record.succeeded() && !rollout.record.turns.is_empty() {
                let (errors, recovered) = errors_and_recoveries(rollout);
                self.overlaps.extend(solutions.overlap(rollout));
                self.passes.rollouts += 1;
                self.passes.with_error += u64::from(errors > 0);
                self.passes.errors += errors as u64;
                self.passes.recovered += recovered as u64;
                self.passes.with_repair += u64::from(!repaired(rollout).is_empty());
                if let Actor::Scripted { mistakes, .. } = &rollout.record.actor {
                    self.scripted.add(mistakes);
                }
            }
        }
        let selection = select(rollouts, &options.pairs)?;
        let mut losers = BTreeSet::new();
        for pair in &selection.pairs {
            *self.kinds.entry(pair.kind).or_default() += 1;
            self.separability.add(pair);
            if pair.kind != PairKind::SelfCorrection && losers.insert(&pair.rejected.id) {
                self.losers += 1;
                if let Some(mode) = pref_dmpo::failure_mode(pair.rejected) {
                    *self.modes.entry(FailureMode::as_str(mode)).or_default() += 1;
                }
                for label in &pair.rejected.labels {
                    *self.labels.entry(label.clone()).or_default() += 1;
                }
            }
        }
        for (_, why) in selection.unpaired {
            *self.unpaired.entry(why).or_default() += 1;
        }
        Ok(())
    }

    /// Whether there are enough groups to hold some out.
    pub(super) fn hold_out(&self) -> bool {
        let held_out = self.groups.iter().filter(|group| split::is_held_out(group)).count();
        self.groups.len() >= split::FEWEST_GROUPS && held_out < self.groups.len()
    }

    /// The figures as variables of the card's template.
    pub(super) fn card(&self) -> Content {
        let held_out = if self.hold_out() {
            self.groups.iter().filter(|group| split::is_held_out(group)).cloned().collect()
        } else {
            Vec::new()
        };
        Content {
            groups: self.groups.len(),
            held_out,
            turns: Spread::of(&self.turns),
            characters: Spread::of(&self.characters),
            overlap: Spread::of(&self.overlaps),
            shortest_line: SHORTEST_LINE,
            passes: self.passes,
            scripted: self.scripted.clone(),
            kinds: PairKind::ALL
                .into_iter()
                .filter_map(|kind| Some((kind.as_str(), *self.kinds.get(&kind)?)))
                .collect(),
            unpaired: Unpaired::ALL
                .into_iter()
                .filter_map(|why| Some((why.describe(), *self.unpaired.get(&why)?)))
                .collect(),
            modes: self.modes.clone(),
            labels: self.labels.clone(),
            losers: self.losers,
            separability: self.separability.card(),
        }
    }
}

/// Figures about the content of the export.
#[derive(Debug, Serialize)]
pub(super) struct Content {
    groups: usize,
    held_out: Vec<String>,
    turns: Option<Spread>,
    characters: Option<Spread>,
    overlap: Option<Spread>,
    shortest_line: usize,
    passes: Errors,
    scripted: Scripted,
    kinds: Vec<(&'static str, u64)>,
    unpaired: Vec<(&'static str, u64)>,
    modes: BTreeMap<&'static str, u64>,
    labels: BTreeMap<String, u64>,
    losers: u64,
    separability: Measured,
}

/// Least, median, ninth decile and greatest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Spread {
    least: usize,
    median: usize,
    p90: usize,
    most: usize,
}

impl Spread {
    fn of(numbers: &[usize]) -> Option<Self> {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        // The nearest-rank percentile: it is always one of the numbers.
        let rank = |share: usize| {
            let at = (sorted.len() * share).div_ceil(100).max(1) - 1;
            sorted.get(at).copied()
        };
        Some(Self { least: *sorted.first()?, median: rank(50)?, p90: rank(90)?, most: *sorted.last()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let check = |numbers: &[usize], expect: Option<[usize; 4]>| {
            let found = Spread::of(numbers);
            assert_eq!(found.map(|of| [of.least, of.median, of.p90, of.most]), expect);
        };
        check(&[], None);
        check(&[7], Some([7, 7, 7, 7]));
        check(&[3, 1, 2], Some([1, 2, 3, 3]));
        check(&(1..=100).collect::<Vec<_>>(), Some([1, 50, 90, 100]));
    }
}
