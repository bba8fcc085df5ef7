//! Config `sft`: one row for each trajectory, for supervised fine-tuning on chat messages.
//!
//! There is no `prompt` column beside `messages` (TRL would take the row for prompt and completion), and none called
//! `labels` (TRL would take it for token labels) or `tools`, `images`, `input_ids`.

use arrow::datatypes::DataType;
use serde::Serialize;

use super::DATA_LICENCE;
use super::messages::{MessageError, TEACHER, conversation};
use super::row::{Column, METADATA_WEIGHT, Row as RowOf, column, list, measured, messages, text, weight_of};
use crate::agent::SCAFFOLD;
use crate::judge::{self, Label};
use crate::model::{Difficulty, EngineeringKind, Message, Outcome, Rollout};

/// Which trajectories become rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Those that passed every check.
    #[default]
    Passing,
    /// Every one in which something was said.
    All,
}

/// What kept a trajectory from passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nothing: it passed.
    None,
    /// What the solver did or left undone, running out of time included.
    Policy,
    /// The engine failed, so nothing is known about the solver.
    Sandbox,
    /// The verifier broke.
    Verifier,
}

impl From<Outcome> for FailureKind {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Pass => Self::None,
            Outcome::Fail | Outcome::Timeout => Self::Policy,
            Outcome::Infra => Self::Sandbox,
            Outcome::VerifierError => Self::Verifier,
        }
    }
}

/// A row of `sft`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub messages: Vec<Message>,
    pub trajectory_id: String,
    pub task_id: String,
    pub task_digest: String,
    pub environment_digest: String,
    pub domain: String,
    pub skills: Vec<String>,
    pub operations: Vec<String>,
    pub kind: EngineeringKind,
    pub difficulty: Difficulty,
    pub language: String,
    pub persona: String,
    pub recipe: String,
    pub scaffold: &'static str,
    pub teacher: &'static str,
    pub seed: u64,
    pub attempt: u32,
    pub outcome: Outcome,
    pub failure_kind: FailureKind,
    pub success: bool,
    pub reward: Option<f64>,
    pub pass_ratio: Option<f64>,
    pub f2p: Option<f64>,
    pub p2p: Option<f64>,
    pub n_turns: usize,
    pub judge_labels: Vec<Label>,
    pub license: &'static str,
    pub tool_version: &'static str,
}

impl Row {
    /// The row of `rollout`, whether or not a filter would keep it.
    pub fn new(rollout: &Rollout) -> Result<Self, MessageError> {
        let (record, blueprint) = (&rollout.record, &rollout.blueprint);
        let rewards = rollout.rewards;
        Ok(Self {
            messages: conversation(rollout)?.into_messages(),
            trajectory_id: rollout.id.clone(),
            task_id: record.task.0.clone(),
            task_digest: record.task_digest.clone(),
            environment_digest: record.environment_digest.clone(),
            domain: blueprint.domain.0.clone(),
            skills: blueprint.skills.clone(),
            operations: blueprint.operations.clone(),
            kind: blueprint.kind,
            difficulty: blueprint.difficulty,
            language: blueprint.language.clone(),
            persona: blueprint.persona.clone(),
            recipe: blueprint.recipe.0.clone(),
            scaffold: SCAFFOLD,
            teacher: TEACHER,
            seed: blueprint.seed.0,
            attempt: record.attempt,
            outcome: record.verdict.outcome,
            failure_kind: record.verdict.outcome.into(),
            success: record.verdict.passed(),
            reward: rewards.map(|rewards| rewards.binary),
            pass_ratio: rewards.map(|rewards| rewards.pass_ratio),
            f2p: rewards.map(|rewards| rewards.f2p),
            p2p: rewards.map(|rewards| rewards.p2p),
            n_turns: record.turns.len(),
            judge_labels: judge::labels(rollout),
            license: DATA_LICENCE,
            tool_version: env!("CARGO_PKG_VERSION"),
        })
    }
}

impl RowOf for Row {
    const CONFIG: &'static str = "sft";
    const SCHEMA_VERSION: u32 = 1;

    fn columns() -> Vec<Column> {
        vec![
            messages(
                "messages",
                "the conversation: optional system, then user and assistant in turn, assistant last",
            ),
            text("trajectory_id", "id of the rollout; `trajectories/<id>.json` holds it in ATIF"),
            text("task_id", "name of the task; `tasks/<name>/` holds it as a Harbor task"),
            text("task_digest", "SHA-256 of the task's files, as Harbor computes it"),
            text("environment_digest", "BLAKE3 of Dockerfile, build context and base definition"),
            text("domain", "domain spec that the task was planned from"),
            list("skills", DataType::Utf8, "skills of the domain spec that the task exercises"),
            list(
                "operations",
                DataType::Utf8,
                "operations that those skills exercise (TerminalWorld's sixteen)",
            ),
            text("kind", "engineering kind: `from-scratch`, `feature-addition`, `bug-fix` or `refactor`"),
            text("difficulty", "`easy`, `medium` or `hard`"),
            text("language", "language that the task asks for or that its program has"),
            text("persona", "who asks"),
            text("recipe", "recipe that authored the task"),
            text("scaffold", "protocol that the agent spoke"),
            text("teacher", "who acted; `scripted` is a recipe's script, not a model"),
            column("seed", DataType::Int64, "seed that the task derives from"),
            column("attempt", DataType::Int32, "which attempt at the task, from 0"),
            text("outcome", "`pass`, `fail`, `timeout`, `infra` or `verifier_error`"),
            text(
                "failure_kind",
                "`none`, `policy`, `sandbox` or `verifier`; only `none` and `policy` carry rewards",
            ),
            column("success", DataType::Boolean, "whether every check passed"),
            measured("reward", "1 when every check passed, else 0; null where nothing was measured"),
            measured("pass_ratio", "share of checks that passed"),
            measured(
                "f2p",
                "weighted share of passed checks among those that fail on the untouched environment",
            ),
            measured(
                "p2p",
                "weighted share of passed checks among those that pass on the untouched environment",
            ),
            column("n_turns", DataType::Int32, "assistant turns"),
            list(
                "judge_labels",
                DataType::Utf8,
                "`mechanical_loop`, `ignoring_feedback`; labels never change a reward",
            ),
            text("license", "licence of the row (SPDX)"),
            text("tool_version", "version of termsmith that wrote it"),
        ]
    }

    fn weight(&self) -> usize {
        weight_of(&self.messages) + METADATA_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use crate::export::fixture;

    use super::*;

    #[test]
    fn outcomes_and_rewards() {
        let check = |outcome: Outcome, expect: (FailureKind, bool)| {
            let mut rollout = fixture::rollout("games", 0, 0, 2, 8);
            rollout.record.verdict.outcome = outcome;
            let row = Row::new(&rollout).unwrap();
            assert_eq!((row.failure_kind, row.success), expect, "{outcome:?}");
        };
        check(Outcome::Pass, (FailureKind::None, true));
        check(Outcome::Fail, (FailureKind::Policy, false));
        check(Outcome::Timeout, (FailureKind::Policy, false));
        check(Outcome::Infra, (FailureKind::Sandbox, false));
        check(Outcome::VerifierError, (FailureKind::Verifier, false));

        let rewards = |row: &Row| (row.reward, row.pass_ratio, row.f2p, row.p2p);
        let failed = fixture::rollout("games", 0, 0, 2, 6);
        assert_eq!(rewards(&Row::new(&failed).unwrap()), (Some(0.0), Some(0.75), Some(0.75), Some(1.0)));
        let unmeasured = fixture::unmeasured(failed);
        assert_eq!(rewards(&Row::new(&unmeasured).unwrap()), (None, None, None, None));
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
