//! Config `sft`: trajectories as chat messages, for supervised fine-tuning. A row is one
//! conversation.
//!
//! Some column names must not occur, because trainers give them a meaning. With `prompt`, TRL would
//! take the row for prompt and completion. With `labels`, it would take it for token labels. The
//! same holds for `tools`, `images` and `input_ids`.

use std::ops::Range;

use arrow_schema::DataType;
use serde::Serialize;

use super::actions::{actions, commands};
use super::error::RowsError;
use super::licence::licence;
use super::messages::{Branch, MessageError, branches, has_empty_message};
use super::row::{
    Column, METADATA_WEIGHT, Row as RowOf, column, list, measured, messages, optional, text, weight_of,
};
use super::split;
use super::train::{FailedTurns, flags};
use super::{ExportOptions, SftFilter};
use crate::model::{
    Difficulty, EngineeringKind, EnvironmentDigest, FailureKind, Message, Outcome, Rollout, TaskDigest,
};

/// A row of `sft`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub messages: Vec<Message>,
    pub n_context: usize,
    pub train: Vec<bool>,
    pub trajectory_id: String,
    pub segment: usize,
    pub n_segments: usize,
    pub task_id: String,
    pub task_digest: Option<TaskDigest>,
    pub environment_digest: Option<EnvironmentDigest>,
    pub domain: String,
    pub skills: Vec<String>,
    pub operations: Vec<String>,
    pub kind: Option<EngineeringKind>,
    pub difficulty: Option<Difficulty>,
    pub language: Option<String>,
    pub persona: Option<String>,
    pub recipe: Option<String>,
    pub scaffold: String,
    pub teacher: String,
    pub arm: &'static str,
    pub seed: Option<u64>,
    pub attempt: u32,
    pub end: &'static str,
    pub outcome: Outcome,
    pub cause: String,
    pub failure_kind: FailureKind,
    pub mask_sample: bool,
    pub success: bool,
    pub reward: Option<f64>,
    pub pass_ratio: Option<f64>,
    pub f2p: Option<f64>,
    pub p2p: Option<f64>,
    pub n_turns: usize,
    pub n_tokens: Option<u64>,
    pub judge_labels: Vec<String>,
    pub judge: String,
    pub split_group: String,
    pub license: Option<&'static str>,
    pub tool_version: &'static str,
}

impl Row {
    /// The rows of `rollout`, one for each of its conversations. No filter is applied.
    pub fn all(rollout: &Rollout, failed_turns: FailedTurns) -> Result<Vec<Self>, MessageError> {
        let branches = branches(rollout)?;
        let n_segments = branches.len();
        let flags = failed_turns.flags(rollout);
        Ok(branches.into_iter().map(|branch| Self::new(rollout, branch, n_segments, &flags)).collect())
    }

    fn new(rollout: &Rollout, branch: Branch, n_segments: usize, flags: &[bool]) -> Self {
        let (record, metadata) = (&rollout.record, rollout.metadata.clone());
        let rewards = rollout.rewards;
        let failure_kind = record.failure_kind();
        let Branch { segment, turns, conversation } = branch;
        Self {
            n_context: conversation.prompt.len(),
            messages: conversation.into_messages(),
            train: flags.get(turns.clone()).unwrap_or_default().to_vec(),
            trajectory_id: rollout.id.clone(),
            segment,
            n_segments,
            task_id: record.task.to_string(),
            task_digest: record.task_digest.clone(),
            environment_digest: record.environment_digest.clone(),
            domain: metadata.domain,
            skills: metadata.skills,
            operations: metadata.operations,
            kind: metadata.kind,
            difficulty: metadata.difficulty,
            language: metadata.language,
            persona: metadata.persona,
            recipe: metadata.recipe,
            scaffold: record.scaffold.clone(),
            teacher: record.actor.teacher().to_owned(),
            arm: record.actor.arm().as_str(),
            seed: metadata.seed,
            attempt: record.attempt,
            end: record.end.as_str(),
            outcome: record.verdict.outcome,
            cause: record.verdict.cause.clone(),
            failure_kind,
            mask_sample: failure_kind.masks(),
            success: record.succeeded(),
            reward: rewards.map(|rewards| rewards.binary),
            pass_ratio: rewards.map(|rewards| rewards.pass_ratio),
            f2p: rewards.map(|rewards| rewards.f2p),
            p2p: rewards.map(|rewards| rewards.p2p),
            n_tokens: tokens(rollout, turns.clone()),
            n_turns: turns.len(),
            judge_labels: rollout.labels.clone(),
            judge: rollout.judge.clone(),
            split_group: split::group(rollout),
            license: licence(rollout),
            tool_version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Tokens that the model wrote in `turns`. `None` if the count of a turn is unknown.
fn tokens(rollout: &Rollout, turns: Range<usize>) -> Option<u64> {
    rollout.record.turns.get(turns)?.iter().map(|turn| turn.usage.map(|usage| usage.completion)).sum()
}

/// Why a rollout gives no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exclusion {
    NotPassing,
    WithoutTurns,
    Adversarial,
    WithEmptyMessage,
    WithFailedTurns,
    NearDuplicate,
}

/// For each rollout of a task, the first reason why it gives no rows. `None` if it gives rows.
pub(super) fn exclusions(rollouts: &[Rollout], options: &ExportOptions) -> Vec<Option<Exclusion>> {
    let mut passes = Vec::new();
    let exclusions = rollouts.iter().map(|rollout| {
        let exclusion = exclusion(rollout, options);
        // If failures are rows too, duplicates stay: rewards are estimated from the numbers of
        // passes and failures.
        if exclusion.is_some() || options.sft == SftFilter::All {
            return exclusion;
        }
        // The same commands with other prose teach nothing new.
        let actions = actions(rollout);
        let commands: Vec<String> = commands(&actions).into_iter().map(str::to_owned).collect();
        if passes.contains(&commands) {
            return Some(Exclusion::NearDuplicate);
        }
        passes.push(commands);
        None
    });
    exclusions.collect()
}

/// The first reason why `rollout` gives no rows, without regard to other rollouts of its task.
fn exclusion(rollout: &Rollout, options: &ExportOptions) -> Option<Exclusion> {
    if options.sft == SftFilter::Passing && !rollout.record.succeeded() {
        Some(Exclusion::NotPassing)
    } else if rollout.record.turns.is_empty() {
        Some(Exclusion::WithoutTurns)
    } else if rollout.record.is_adversarial() {
        Some(Exclusion::Adversarial)
    } else if has_empty_message(rollout) {
        Some(Exclusion::WithEmptyMessage)
    } else if options.failed_turns == FailedTurns::Drop && flags(rollout).contains(&false) {
        Some(Exclusion::WithFailedTurns)
    } else {
        None
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "sft";
    const SCHEMA_VERSION: u32 = 5;
    const TAGS: &'static [&'static str] = &["sft"];

    fn about(options: &ExportOptions) -> String {
        let rows = match options.sft {
            SftFilter::Passing => {
                "those that passed every check. If several passes of a task ran the same commands, only the first has rows."
            }
            SftFilter::All => "all in which the agent wrote a message. Rewards can be estimated from them.",
        };
        let train = match options.failed_turns {
            FailedTurns::Mask => {
                "`train` is false for a message if it violates the protocol, if its command reported an error, or if it wrote a file that\nwas written again, differently, after a command failed. So a model reads the mistake, and is trained on the repair."
            }
            FailedTurns::All => "`train` is true for all messages.",
            FailedTurns::Drop => {
                "`train` is true for all messages. Trajectories are left out if a command failed in them, or if a file was written again\nafter that."
            }
        };
        format!("Trajectories: {rows}\n\n{train}")
    }

    fn of_task(rollouts: &[Rollout], options: &ExportOptions) -> Result<Vec<Self>, RowsError> {
        let mut rows = Vec::new();
        for (rollout, exclusion) in rollouts.iter().zip(exclusions(rollouts, options)) {
            if exclusion.is_none() {
                rows.extend(Self::all(rollout, options.failed_turns)?);
            }
        }
        Ok(rows)
    }

    fn columns() -> Vec<Column> {
        vec![
            messages(
                "messages",
                "the conversation: an optional system message, then user and assistant in turn, assistant last",
            ),
            column(
                "n_context",
                DataType::Int32,
                "number of messages at the beginning that the agent was given: system, task, and a summary of earlier messages. Train on the messages after them",
            ),
            list(
                "train",
                DataType::Boolean,
                "for each assistant message after the context, whether to train on it",
            ),
            text("trajectory_id", "id of the rollout. `trajectories/<id>.json` is its ATIF document"),
            column(
                "segment",
                DataType::Int32,
                "number of this part of the trajectory, from 0. There are several parts if the conversation was summarised, or if the task has steps",
            ),
            column("n_segments", DataType::Int32, "number of rows of the trajectory"),
            text("task_id", "name of the task. `tasks/<name>/` is its Harbor task directory"),
            optional(
                "task_digest",
                DataType::Utf8,
                "SHA-256 of the task's files, as Harbor computes it. Null if an imported rollout does not state it",
            ),
            optional(
                "environment_digest",
                DataType::Utf8,
                "BLAKE3 of Dockerfile, build context and base definition. Null if an imported rollout does not state it",
            ),
            text("domain", "domain of the task, or the category that a foreign task states"),
            list("skills", DataType::Utf8, "skills of the domain that the task exercises"),
            list(
                "operations",
                DataType::Utf8,
                "operations that those skills exercise, from TerminalWorld's sixteen",
            ),
            optional(
                "kind",
                DataType::Utf8,
                "kind of engineering work: `from-scratch`, `feature-addition`, `bug-fix` or `refactor`",
            ),
            optional("difficulty", DataType::Utf8, "`easy`, `medium` or `hard`"),
            optional(
                "language",
                DataType::Utf8,
                "programming language that the task asks for, or that its program is written in",
            ),
            optional("persona", DataType::Utf8, "who asks"),
            optional("recipe", DataType::Utf8, "recipe that made the task"),
            text("scaffold", "scaffold: the protocol between agent and environment"),
            text("teacher", "who wrote the messages: a model's name, or `scripted` for a recipe's script"),
            text("arm", "assistance that the agent got in addition to the task, e.g. `plan`. `base` is none"),
            optional("seed", DataType::Int64, "random seed of the task"),
            column("attempt", DataType::Int32, "number of the attempt at the task, from 0"),
            text("end", "why the episode stopped, e.g. `submitted`, `step_limit` or `timed_out`"),
            text("outcome", "outcome of the verdict: `pass`, `fail`, `timeout`, `infra` or `verifier_error`"),
            text("cause", "one sentence that explains an outcome without check results. Otherwise empty"),
            text(
                "failure_kind",
                "cause of the failure: `none`, `policy`, `exploit`, `sandbox` or `verifier`",
            ),
            column(
                "mask_sample",
                DataType::Boolean,
                "whether a trainer should leave the row out, because its reward says nothing about the policy",
            ),
            column("success", DataType::Boolean, "true if every check passed and no exploit was found"),
            measured("reward", "1 if every check passed, else 0. Null if nothing was measured"),
            measured("pass_ratio", "share of the checks that passed"),
            measured(
                "f2p",
                "weighted share of passed checks, of those that fail in the untouched environment",
            ),
            measured(
                "p2p",
                "weighted share of passed checks, of those that pass in the untouched environment",
            ),
            column("n_turns", DataType::Int32, "number of assistant turns after the context"),
            optional(
                "n_tokens",
                DataType::Int64,
                "tokens that the model wrote. Null if they were not counted",
            ),
            list(
                "judge_labels",
                DataType::Utf8,
                "what went wrong, in LiteCoder's taxonomy. Labels never change a reward",
            ),
            text("judge", "source of the labels: version of the rules, and the model if one judged"),
            text(
                "split_group",
                "the recipe, or the name of a group of similar tasks. Rows of a group are in one split",
            ),
            optional(
                "license",
                DataType::Utf8,
                "licence of the row (SPDX). Null if third parties have rights: in text by models, and in tasks by others",
            ),
            text("tool_version", "version of termsmith that wrote the row"),
        ]
    }

    fn split_group(&self) -> &str {
        &self.split_group
    }

    fn weight(&self) -> usize {
        weight_of(&self.messages) + METADATA_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use crate::export::{fixture, shapes};
    use crate::model::{Exploit, Role, Tokens};

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
            let row = only(&rollout);
            assert_eq!((row.failure_kind, row.success), expect, "{outcome:?}");
        };
        check(Outcome::Pass, (FailureKind::None, true));
        check(Outcome::Fail, (FailureKind::Policy, false));
        check(Outcome::Timeout, (FailureKind::Policy, false));
        check(Outcome::Infra, (FailureKind::Sandbox, false));
        check(Outcome::VerifierError, (FailureKind::Verifier, false));

        let mut cheated = fixture::rollout("games", 0, 0, 2, 8);
        let message = "looks for tests".to_owned();
        cheated.record.exploits = vec![Exploit { turn: 0, attack: "D-12".to_owned(), message }];
        let row = only(&cheated);
        assert_eq!((row.failure_kind, row.success, row.mask_sample), (FailureKind::Exploit, false, false));

        let rewards = |row: &Row| (row.reward, row.pass_ratio, row.f2p, row.p2p);
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
            let row = only(&rollout);
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
            let figures = |row: &Row| (row.segment, row.n_segments, row.n_context, row.n_turns, row.n_tokens);
            (rows.iter().map(figures).collect::<Vec<_>>(), rows)
        };
        let (found, parts) = rows("summarised");
        assert_eq!(found, [(0, 3, 2, 2, Some(20)), (1, 3, 2, 2, Some(20)), (2, 3, 2, 2, Some(20))]);
        let begins = |row: &Row| row.messages[row.n_context - 1].content.clone();
        let begins: Vec<_> = parts.iter().map(begins).collect();
        assert_eq!(begins[1..], ["The task. Two parts are read.", "The task. Three are."]);
        assert!(parts.iter().all(|row| row.messages[0].role == Role::System));
        assert!(parts.iter().all(|row| row.trajectory_id == parts[0].trajectory_id && row.success));

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
