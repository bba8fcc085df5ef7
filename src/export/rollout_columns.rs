//! The columns about the rollout of a row. `sft` and `sft_tools` share them.

use std::ops::Range;

use arrow_schema::DataType;
use serde::Serialize;

use super::atif::agent_identity;
use super::licence::licence;
use super::messages::{MessageError, Segment, segments};
use super::row::{Column, column, list, measured, optional, text};
use super::split;
use crate::model::{
    Difficulty, EngineeringKind, EnvironmentDigest, FailureKind, Outcome, Rollout, TaskDigest, ThreadKind,
    ThreadView,
};

/// What a row says about its rollout, and which part of it the row is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RolloutColumns {
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
    pub agent: String,
    pub agent_version: Option<String>,
    pub thread: &'static str,
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

/// The part of a rollout that a row holds.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) thread: &'static str,
    pub(super) segment: usize,
    pub(super) n_segments: usize,
    pub(super) turns: Range<usize>,
}

/// The threads of a rollout that give rows: the main one, and those of sub-agents. Titles, commit
/// messages and discarded replies are no work on the task.
pub(super) fn working_threads(rollout: &Rollout) -> impl Iterator<Item = ThreadView<'_>> {
    rollout.views().filter(|view| match view.kind {
        ThreadKind::Main => true,
        ThreadKind::Subagent => !view.rollout.record.turns.is_empty(),
        ThreadKind::Auxiliary | ThreadKind::Superseded => false,
    })
}

/// The rows of `rollout`, one for each conversation of its threads. `row` makes one of a thread, a
/// segment of it, and what the row says about both.
pub(super) fn rows<R>(
    rollout: &Rollout,
    row: impl Fn(&Rollout, &Segment, RolloutColumns) -> Result<R, MessageError>,
) -> Result<Vec<R>, MessageError> {
    let mut threads = Vec::new();
    for view in working_threads(rollout) {
        threads.push((segments(&view.rollout)?, view));
    }
    let n_segments = threads.iter().map(|(segments, _)| segments.len()).sum();
    let mut rows = Vec::with_capacity(n_segments);
    let mut first = 0;
    for (segments, view) in threads {
        let thread = view.kind.as_str();
        for segment in segments {
            let (number, turns) = (first + segment.number, segment.turns.clone());
            let part = Part { thread, segment: number, n_segments, turns };
            rows.push(row(&view.rollout, &segment, RolloutColumns::of(&view.rollout, part))?);
        }
        first += view.rollout.record.handoffs.len() + 1;
    }
    Ok(rows)
}

impl RolloutColumns {
    pub(super) fn of(rollout: &Rollout, part: Part) -> Self {
        let (record, metadata) = (&rollout.record, rollout.metadata.clone());
        let (agent, agent_version) = agent_identity(rollout);
        let rewards = rollout.rewards;
        let failure_kind = record.failure_kind();
        let Part { thread, segment, n_segments, turns } = part;
        Self {
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
            agent,
            agent_version,
            thread,
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

    pub(super) fn columns() -> Vec<Column> {
        vec![
            text("trajectory_id", "id of the rollout. `trajectories/<id>.json` is its ATIF document"),
            column(
                "segment",
                DataType::Int32,
                "number of this part of the trajectory, from 0. There are several parts if the conversation was summarised, if the task has steps, or if the agent began sub-agents",
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
            text(
                "agent",
                "the agent's name, as in its ATIF document, e.g. `termsmith-terminus-json` or `claude-code`",
            ),
            optional(
                "agent_version",
                DataType::Utf8,
                "the agent's version. Null if an imported rollout does not state it",
            ),
            text(
                "thread",
                "`main` for the conversation that began with the task, `subagent` for one that the agent began itself",
            ),
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
}

/// The column with the number of messages before the first answer.
pub(super) fn n_context() -> Column {
    column(
        "n_context",
        DataType::Int32,
        "number of messages at the beginning that the agent was given: system, task, and a summary of earlier messages. Train on the messages after them",
    )
}

/// Tokens that the model wrote in `turns`. `None` if the count of a turn is unknown.
fn tokens(rollout: &Rollout, turns: Range<usize>) -> Option<u64> {
    rollout.record.turns.get(turns)?.iter().map(|turn| turn.usage.map(|usage| usage.completion)).sum()
}
