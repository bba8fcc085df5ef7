//! Labels for trajectories, from deterministic detectors over turns and observations.
//!
//! The names follow LiteCoder's taxonomy of trajectory failures (Adaptability, Groundedness, Persistence, Refusal).
//! A label never changes a reward and never keeps a trajectory from being stored: export policies filter over labels.
//! Detectors prefer silence to a wrong label, since a reader takes a label for a fact.

mod feedback;
mod repetition;

use serde::{Deserialize, Serialize};

use crate::model::{self, ShellOutcome, Shown, TrajectoryRecord, Turn};

/// Version of the rules, as rows carry it. Raise it whenever the same trajectory would get other labels.
pub const RULES: &str = "rules-2";

pub use feedback::ignored_error;
pub use repetition::{LOOP_LENGTH, Repetition, mechanical_loop};

/// What a detector can say of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The same command failed the same way [`LOOP_LENGTH`] times or more in a row.
    MechanicalLoop,
    /// The last command failed visibly and success was claimed all the same.
    IgnoringFeedback,
}

impl Label {
    /// The id used in exported rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MechanicalLoop => "mechanical_loop",
            Self::IgnoringFeedback => "ignoring_feedback",
        }
    }
}

/// Every label that holds for a trajectory, in the order of [`Label`]. `shown` is what followed each turn.
pub fn labels(record: &TrajectoryRecord, shown: &[Vec<Shown>]) -> Vec<Label> {
    let looping = mechanical_loop(&record.turns, shown).map(|_| Label::MechanicalLoop);
    let ignoring = ignored_error(&record.turns, shown, record.end).map(|_| Label::IgnoringFeedback);
    looping.into_iter().chain(ignoring).collect()
}

/// A command with how it ended and what was shown of it.
struct Act<'a> {
    /// Index of its turn.
    turn: usize,
    command: &'a str,
    outcome: ShellOutcome,
    observation: &'a str,
}

/// The commands of a trajectory in order; one without an observation (the sandbox died under it) is left out.
fn acts<'a>(turns: &'a [Turn], shown: &'a [Vec<Shown>]) -> impl Iterator<Item = Act<'a>> {
    turns.iter().zip(shown).enumerate().flat_map(|(turn, (said, shown))| {
        said.acts.iter().enumerate().filter_map(move |(at, act)| {
            // Calls of functions have a result each; else all acts of a turn are shown together.
            let observation = shown.get(at).or_else(|| shown.first())?;
            match act {
                model::Act::Command { command, outcome } => Some(Act {
                    turn,
                    command: command.trim(),
                    outcome: (*outcome)?,
                    observation: &observation.content,
                }),
                model::Act::Keys { .. } => None,
            }
        })
    })
}

fn failed(outcome: ShellOutcome) -> bool {
    match outcome {
        ShellOutcome::Exited(status) => status != 0,
        ShellOutcome::TimedOut | ShellOutcome::ShellDied(_) => true,
    }
}

#[cfg(test)]
mod script {
    //! Turns written as a table: `command => outcome: observation`.

    use crate::model::{Act, ShellOutcome, Shown, Turn, TurnKind};

    pub(super) type Played<'a> = (&'a str, ShellOutcome, &'a str);

    /// Turns that run `commands`, then one that submits with the words `done`.
    pub(super) fn play(commands: &[Played<'_>], done: &str) -> (Vec<Turn>, Vec<Vec<Shown>>) {
        let mut turns: Vec<_> = commands
            .iter()
            .map(|(command, outcome, _)| Turn {
                content: "Next.".to_owned(),
                acts: vec![Act::Command { command: (*command).to_owned(), outcome: Some(*outcome) }],
                ..Turn::default()
            })
            .collect();
        turns.push(Turn { content: done.to_owned(), kind: TurnKind::Submitted, ..Turn::default() });
        let shown = commands.iter().map(|(_, _, text)| vec![Shown::text(*text)]).chain([Vec::new()]);
        (turns, shown.collect())
    }
}
