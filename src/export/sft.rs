//! Config `sft`: trajectories as chat messages of text, for supervised fine-tuning. A row is one
//! conversation. Rollouts in which the model could call functions are rows of `sft_tools`.
//!
//! Some column names must not occur, because trainers give them a meaning. With `prompt`, TRL would
//! take the row for prompt and completion. With `labels`, it would take it for token labels. The
//! same holds for `images` and `input_ids`. `tools` must hold the functions that the messages call,
//! so only `sft_tools` has it.

use arrow_schema::DataType;
use serde::Serialize;

use super::ExportOptions;
use super::error::RowsError;
use super::exclusion::{describe, exclusions};
use super::function_messages::has_functions;
use super::messages::{MessageError, conversation_of};
use super::rollout_columns::{RolloutColumns, n_context, rows};
use super::row::{Column, METADATA_WEIGHT, Row as RowOf, list, messages, weight_of};
use super::train::FailedTurns;
use crate::model::{Message, Rollout};

/// A row of `sft`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub messages: Vec<Message>,
    pub n_context: usize,
    pub train: Vec<bool>,
    #[serde(flatten)]
    pub rollout: RolloutColumns,
}

impl Row {
    /// The rows of `rollout`, one for each of its conversations. No filter is applied.
    pub fn all(rollout: &Rollout, failed_turns: FailedTurns) -> Result<Vec<Self>, MessageError> {
        rows(rollout, |thread, segment, columns| {
            let conversation = conversation_of(thread, segment)?;
            Ok(Self {
                train: failed_turns.flags_of(thread, segment.turns.clone()),
                n_context: conversation.prompt.len(),
                messages: conversation.into_messages(),
                rollout: columns,
            })
        })
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "sft";
    const SCHEMA_VERSION: u32 = 6;
    const TAGS: &'static [&'static str] = &["sft"];

    fn about(options: &ExportOptions) -> String {
        format!(
            "Text only. Rollouts in which the model could call functions are in `sft_tools`. {}",
            describe(options)
        )
    }

    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError> {
        let mut rows = Vec::new();
        for (rollout, exclusion) in rollouts.iter().zip(exclusions(rollouts, options)) {
            if exclusion.is_none() && !has_functions(rollout) {
                rows.extend(Self::all(rollout, options.failed_turns)?);
            }
        }
        Ok(rows)
    }

    fn columns() -> Vec<Column> {
        let mut columns = vec![
            messages(
                "messages",
                "the conversation: an optional system message, then user and assistant in turn, assistant last",
            ),
            n_context(),
            list(
                "train",
                DataType::Boolean,
                "for each assistant message after the context, whether to train on it",
            ),
        ];
        columns.extend(RolloutColumns::columns());
        columns
    }

    fn split_group(&self) -> &str {
        &self.rollout.split_group
    }

    fn weight(&self) -> usize {
        weight_of(&self.messages) + METADATA_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use crate::export::{fixture, shapes};
    use crate::model::{Exploit, FailureKind, Outcome, Role, Tokens};

    use super::*;

    fn only(rollout: &Rollout) -> Row {
        let [row] = Row::all(rollout, FailedTurns::Mask).unwrap().try_into().unwrap();
        row
    }

    #[test]
    fn outcomes_and_rewards() {
        let check = |outcome: Outcome, expect: (FailureKind, bool)| {
            let mut rollout = fixture::rollout("games", 0, 0, 2, 8);
            rollout.record.verdict.outcome = outcome;
            let row = only(&rollout).rollout;
            assert_eq!((row.failure_kind, row.success), expect, "{outcome:?}");
        };
        check(Outcome::Pass, (FailureKind::None, true));
        check(Outcome::Fail, (FailureKind::Policy, false));
        check(Outcome::Timeout, (FailureKind::Policy, false));
        check(Outcome::Infra, (FailureKind::Sandbox, false));
        check(Outcome::VerifierError, (FailureKind::Verifier, false));

        let mut cheated = fixture::rollout("games", 0, 0, 2, 8);
        let message = "looks for tests".to_owned();
        cheated.record.exploits = vec![Exploit { thread: 0, turn: 0, attack: "D-12".to_owned(), message }];
        let row = only(&cheated).rollout;
        assert_eq!((row.failure_kind, row.success, row.mask_sample), (FailureKind::Exploit, false, false));

        let rewards = |row: &Row| {
            let row = &row.rollout;
            (row.reward, row.pass_ratio, row.f2p, row.p2p)
        };
        let failed = fixture::rollout("games", 0, 0, 2, 6);
        assert_eq!(rewards(&only(&failed)), (Some(0.0), Some(0.75), Some(0.75), Some(1.0)));
        let unmeasured = fixture::unmeasured(failed);
        assert_eq!(rewards(&only(&unmeasured)), (None, None, None, None));
    }

    #[test]
    fn numbers_of_records_from_elsewhere() {
        let check = |change: fn(&mut Rollout), left_out: u32, expect: (Option<u64>, Option<u64>, u32)| {
            let mut rollout = fixture::rollout("games", 0, 1, 2, 8);
            rollout.metadata.seed = Some(5);
            for turn in &mut rollout.record.turns {
                turn.usage = Some(Tokens { prompt: 1, completion: 2 });
            }
            change(&mut rollout);
            assert_eq!(rollout.leave_out_of_range(), left_out);
            let row = only(&rollout).rollout;
            assert_eq!((row.n_tokens, row.seed, row.attempt), expect);
        };
        let all = |rollout: &Rollout| Some(2 * rollout.record.turns.len() as u64);
        let whole = all(&fixture::rollout("games", 0, 1, 2, 8));
        check(|_| {}, 0, (whole, Some(5), 1));
        check(|rollout| rollout.metadata.seed = Some(u64::MAX), 1, (whole, None, 1));
        check(|rollout| rollout.record.attempt = u32::MAX, 1, (whole, Some(5), 0));
        let odd = |rollout: &mut Rollout| {
            for turn in &mut rollout.record.turns[..2] {
                turn.usage = Some(Tokens { prompt: 1, completion: u64::MAX });
            }
        };
        check(odd, 2, (None, Some(5), 1));
    }

    #[test]
    fn parts_between_summaries() {
        let rows = |name: &str| {
            let (_, rollout) = shapes::shapes().into_iter().find(|(shape, _)| *shape == name).unwrap();
            let rows = Row::all(&rollout, FailedTurns::Mask).unwrap();
            let figures = |row: &Row| {
                let of = &row.rollout;
                (of.segment, of.n_segments, row.n_context, of.n_turns, of.n_tokens)
            };
            (rows.iter().map(figures).collect::<Vec<_>>(), rows)
        };
        let (found, parts) = rows("summarised");
        assert_eq!(found, [(0, 3, 2, 2, Some(20)), (1, 3, 2, 2, Some(20)), (2, 3, 2, 2, Some(20))]);
        let begins = |row: &Row| row.messages[row.n_context - 1].content.clone();
        let begins: Vec<_> = parts.iter().map(begins).collect();
        assert_eq!(begins[1..], ["The task. Two parts are read.", "The task. Three are."]);
        assert!(parts.iter().all(|row| row.messages[0].role == Role::System));
        let of =
            |row: &Row| row.rollout.trajectory_id == parts[0].rollout.trajectory_id && row.rollout.success;
        assert!(parts.iter().all(of));

        // terminus-2's handoff has two user messages in a row. Its questions are assistant
        // messages.
        let (found, parts) = rows("summarised-terminus");
        assert_eq!(found, [(0, 2, 1, 2, Some(20)), (1, 2, 3, 2, Some(20))]);
        let roles: Vec<_> = parts[1].messages.iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::User, Role::Assistant, Role::User, Role::Assistant]
        );
        assert!(parts[1].messages[0].content.ends_with("\n\nAsk."));

        // The limit was reached right after the summary, so the last segment has no message.
        let (_, mut rollout) =
            shapes::shapes().into_iter().find(|(shape, _)| *shape == "summarised").unwrap();
        rollout.record.turns.truncate(4);
        rollout.shown.truncate(4);
        assert_eq!(Row::all(&rollout, FailedTurns::Mask).unwrap().len(), 2);
    }

    #[test]
    fn names_that_trainers_read_another_way_do_not_occur() {
        const TAKEN: [&str; 9] = [
            "prompt",
            "labels",
            "input_ids",
            "tools",
            "images",
            "text",
            "completion",
            "conversations",
            "label",
        ];
        for column in Row::columns() {
            assert!(!TAKEN.contains(&column.field.name().as_str()), "{}", column.field.name());
        }
    }
}
