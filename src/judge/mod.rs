//! Labels for trajectories. Detectors find them in turns and observations, and a model finds more.
//!
//! The names follow LiteCoder's taxonomy of trajectory failures (Adaptability, Groundedness,
//! Persistence, Refusal). A label never changes a reward, and every trajectory is stored. Exports
//! filter by labels. A detector rather misses a label than assigns a wrong one, since readers take
//! labels for facts. Detectors run on every trajectory. The model judge ([`judge`]) costs money, so
//! it runs only on request.

mod attempt;
mod called;
mod feedback;
mod model;
mod record;
mod refusal;
mod render;
mod repetition;
mod rigid;
mod screen;
#[cfg(test)]
mod script;
mod shell;
mod surrender;
mod words;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Shown, TrajectoryRecord, Turn};
use attempt::attempts;

pub use model::{JudgeError, JudgedTrajectory, judge, judge_texts};
pub use record::{
    Evidence, JUDGEMENT, JudgeId, Judgement, Judgements, commit_judgement, find_judgement, judge_id,
    judge_once, read_judgement,
};
pub use render::{MESSAGE_BYTES, OBSERVATION_BYTES, TASK_BYTES, WHOLE_BYTES};
pub use repetition::LOOP_LENGTH;
pub use rigid::{NEW_WORDS, RIGID_COMMANDS, RIGID_LENGTH, SMALL_EDIT};
pub use surrender::{ALTERNATIVES, RECENT};

/// Version of the rules. Rows have it. Raise it when a trajectory could get other labels.
pub const RULES: &str = "rules-7";

/// A property of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The same command failed the same way [`LOOP_LENGTH`] times or more in a row, or the same message was rejected as often.
    MechanicalLoop,
    /// [`RIGID_LENGTH`] commands or more in a row failed the same way, each a small edit of the one before.
    RigidStrategy,
    /// The last command failed visibly and success was claimed anyway.
    IgnoringFeedback,
    /// The agent assumed without evidence that something exists or has been reached. Only a model can tell.
    HallucinatedSuccess,
    /// The agent forgot an earlier failed attempt. Only a model can tell.
    ContextDrift,
    /// The agent gave up at the first limitation of the environment, with fewer than [`ALTERNATIVES`] alternatives tried.
    PrematureSurrender,
    /// The agent said that it will not or cannot do the task, and did nothing.
    ExplicitRefusal,
}

impl Label {
    /// Every label, in the order of exported rows.
    pub const ALL: [Self; 7] = [
        Self::MechanicalLoop,
        Self::RigidStrategy,
        Self::IgnoringFeedback,
        Self::HallucinatedSuccess,
        Self::ContextDrift,
        Self::PrematureSurrender,
        Self::ExplicitRefusal,
    ];

    /// The name in exported rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MechanicalLoop => "mechanical_loop",
            Self::RigidStrategy => "rigid_strategy",
            Self::IgnoringFeedback => "ignoring_feedback",
            Self::HallucinatedSuccess => "hallucinated_success",
            Self::ContextDrift => "context_drift",
            Self::PrematureSurrender => "premature_surrender",
            Self::ExplicitRefusal => "explicit_refusal",
        }
    }

    /// Whether detectors assign the label. Only the model judge assigns the others.
    pub fn is_deterministic(self) -> bool {
        !matches!(self, Self::HallucinatedSuccess | Self::ContextDrift)
    }
}

/// A label and its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub label: Label,
    /// Turns that show it, from 0, in ascending order. There is at least one.
    pub turns: Vec<usize>,
    /// A description of the evidence, for people.
    pub note: String,
}

/// The labels that detectors assign to a trajectory, in the order of [`Label`], each at most once.
/// `shown` has the observations of each turn.
pub fn findings(record: &TrajectoryRecord, shown: &[Vec<Shown>]) -> Vec<Finding> {
    let attempts = attempts(&record.turns, shown);
    [
        repetition::mechanical_loop(&record.turns, &attempts),
        rigid::rigid_strategy(&attempts),
        feedback::ignoring_feedback(&record.turns, &attempts)
            .or_else(|| feedback::ignoring_own_check(&record.turns, &attempts)),
        surrender::premature_surrender(&record.turns, &attempts),
        refusal::explicit_refusal(&record.turns, &attempts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A command, or the keys of one turn, as detectors see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    /// Index of its turn, from 0.
    pub turn: usize,
    pub command: String,
    /// It failed, by its exit status or by an error on the screen.
    pub failed: bool,
    /// It failed, and its output shows an error. Status 1 of a program like `diff` is a result.
    pub reports_error: bool,
}

/// All commands with an observation, in order.
pub fn commands_run(turns: &[Turn], shown: &[Vec<Shown>]) -> Vec<CommandRun> {
    let runs = attempts(turns, shown).into_iter().map(|attempt| CommandRun {
        turn: attempt.turn,
        failed: attempt.failed(),
        reports_error: attempt.visibly_failed(),
        command: attempt.command,
    });
    runs.collect()
}

/// The labels of [`findings`].
pub fn labels(record: &TrajectoryRecord, shown: &[Vec<Shown>]) -> Vec<Label> {
    findings(record, shown).into_iter().map(|finding| finding.label).collect()
}

/// The labels of an exported row, in the order of [`Label`], and their source: the version of the
/// rules, and the model judge if there was one, e.g. `rules-6+qwen@0123456789ab`.
pub fn merged(rules: &[Label], judgement: Option<&Judgement>) -> (Vec<String>, String) {
    let mut labels: BTreeSet<Label> = rules.iter().copied().collect();
    labels.extend(judgement.iter().flat_map(|judgement| judgement.labels()));
    let judge = match judgement {
        Some(judgement) => format!("{RULES}+{}", judgement.judge),
        None => RULES.to_owned(),
    };
    (labels.into_iter().map(|label| label.as_str().to_owned()).collect(), judge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_serde_writes() {
        for label in Label::ALL {
            assert_eq!(serde_json::to_value(label).unwrap(), label.as_str());
        }
        assert!(Label::ALL.is_sorted());
    }
}
