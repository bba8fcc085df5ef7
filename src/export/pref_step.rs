//! Config `pref_step`: the first differing message of each side of a pair, after their common
//! history.
//!
//! Trainers for single-turn preferences compute the right loss from it: the prompt is masked, and
//! each side is one assistant message.

use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use super::pairs::{PairKind, pairs};
use super::pref_dmpo::{self, PairColumns};
use super::row::{Column, Row as RowOf, messages};
use crate::model::Rollout;

/// The description of the config in the card.
const ABOUT: &str = "\
The first differing messages of pairs of `pref_dmpo`. Their history has the same commands and the same observations on both
sides. A pair has no row here if observations differ before the divergence, or if the better side begins with a failed
command. It was not measured whether one message is better than the other. It is only known that the rollout with it ended better.";

/// Columns of `pref_dmpo` that do not apply to single messages.
const OF_TRAJECTORIES: [&str; 10] = [
    "gamma",
    "shared_turns",
    "turns_chosen",
    "turn_index_chosen",
    "phi_chosen",
    "train_chosen",
    "turns_rejected",
    "turn_index_rejected",
    "phi_rejected",
    "train_rejected",
];

/// A row of `pref_step`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub pair: PairColumns,
}

impl Row {
    /// The step at which the sides of `row` diverge. `None` if their histories differ, or if the
    /// better step is not worth imitating.
    pub fn of(row: pref_dmpo::Row) -> Option<Self> {
        let at = row.pair.divergence_turn;
        let comparable = row.shared_turns == at
            && row.pair.pair_kind != PairKind::SelfCorrection.as_str()
            && row.train_chosen.get(at) == Some(&true);
        if !comparable {
            return None;
        }
        let mut pair = row.pair;
        // The message of turn t has index 2t.
        let (chosen, rejected) = (pair.chosen.get(2 * at)?.clone(), pair.rejected.get(2 * at)?.clone());
        pair.chosen.truncate(2 * at);
        pair.prompt.append(&mut pair.chosen);
        (pair.chosen, pair.rejected) = (vec![chosen], vec![rejected]);
        Some(Self { pair })
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        let (one, other) = (&self.pair, &other.pair);
        (&one.prompt, &one.chosen, &one.rejected) == (&other.prompt, &other.chosen, &other.rejected)
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "pref_step";
    const SCHEMA_VERSION: u32 = 2;
    const TAGS: &'static [&'static str] = &["dpo"];

    fn about(_: &ExportOptions) -> String {
        ABOUT.to_owned()
    }

    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError> {
        let mut rows: Vec<Self> = Vec::new();
        for pair in pairs(rollouts, &options.pairs)? {
            let row = Self::of(pref_dmpo::Row::new(&pair, options)?);
            rows.extend(row.filter(|row| !rows.iter().any(|other| row.says_the_same_as(other))));
        }
        Ok(rows)
    }

    fn columns() -> Vec<Column> {
        let columns = pref_dmpo::Row::columns().into_iter();
        let columns = columns.filter(|column| !OF_TRAJECTORIES.contains(&column.field.name().as_str()));
        let columns = columns.map(|column| match column.field.name().as_str() {
            "prompt" => messages("prompt", "all messages before the divergence. Both sides share them"),
            "chosen" => messages("chosen", "the assistant message that the better rollout continued with"),
            "rejected" => messages("rejected", "the assistant message that the worse rollout continued with"),
            _ => column,
        });
        columns.collect()
    }

    fn split_group(&self) -> &str {
        &self.pair.split_group
    }

    fn weight(&self) -> usize {
        self.pair.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;
    use crate::model::{Act, Role, ShellOutcome};

    #[test]
    fn steps_after_a_shared_history() {
        let check = |change: fn(&mut [Rollout; 2]), expect: Option<usize>| {
            let mut rollouts = [fixture::rollout("games", 3, 0, 3, 6), fixture::rollout("games", 3, 1, 3, 8)];
            change(&mut rollouts);
            let rows = Row::of_task(&rollouts, &ExportOptions::default()).unwrap();
            assert_eq!(rows.first().map(|row| row.pair.prompt.len()), expect);
            for row in rows {
                assert_eq!((row.pair.chosen.len(), row.pair.rejected.len()), (1, 1));
                assert_eq!(row.pair.prompt.last().unwrap().role, Role::User);
                assert_eq!(row.pair.chosen[0].role, Role::Assistant);
                assert_ne!(row.pair.chosen, row.pair.rejected);
            }
        };
        // The history: system, task, one shared turn and its observation.
        check(|_| {}, Some(4));
        // The sides differ from the first message on. Their history is the task.
        check(|rollouts| rollouts[0].record.turns.swap(0, 1), Some(2));
        // The sides read different observations.
        check(|rollouts| rollouts[0].shown[0][0].content.push('!'), None);
        // The better side begins with an error.
        let slipped = |rollouts: &mut [Rollout; 2]| {
            let outcome = Some(ShellOutcome::Exited(2));
            rollouts[1].record.turns[1].acts = vec![Act::Command { command: "sed x".to_owned(), outcome }];
        };
        check(slipped, None);
    }

    #[test]
    fn equal_steps_are_one_row() {
        // Two losers begin with the same error, and differ later.
        let mut rollouts = [
            fixture::rollout("games", 3, 0, 3, 8),
            fixture::rollout("games", 3, 1, 3, 6),
            fixture::rollout("games", 3, 2, 3, 6),
        ];
        rollouts[2].record.turns[1] = rollouts[1].record.turns[1].clone();
        assert_eq!(Row::of_task(&rollouts, &ExportOptions::default()).unwrap().len(), 1);
    }

    #[test]
    fn columns_are_those_of_the_rows() {
        let rollouts = [fixture::rollout("games", 3, 0, 3, 6), fixture::rollout("games", 3, 1, 3, 8)];
        let row = Row::of_task(&rollouts, &ExportOptions::default()).unwrap().remove(0);
        let row = serde_json::to_value(row).unwrap();
        let mut names: Vec<String> =
            Row::columns().iter().map(|column| column.field.name().clone()).collect();
        names.sort();
        assert_eq!(row.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), names);
    }
}
