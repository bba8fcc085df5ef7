//! Labels for trajectories, from deterministic detectors over turns and observations.
//!
//! The names follow LiteCoder's taxonomy of trajectory failures (Adaptability, Groundedness, Persistence, Refusal).
//! A label never changes a reward and never keeps a trajectory from being stored: export policies filter over labels.
//! Detectors prefer silence to a wrong label, since a reader takes a label for a fact.

mod feedback;
mod repetition;

use serde::{Deserialize, Serialize};

use crate::model::{Rollout, ShellOutcome, Turn};

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

/// Every label that holds for `rollout`, in the order of [`Label`].
pub fn labels(rollout: &Rollout) -> Vec<Label> {
    let (turns, observations) = (&rollout.record.turns, &rollout.observations);
    let looping = mechanical_loop(turns, observations).map(|_| Label::MechanicalLoop);
    let ignoring = ignored_error(turns, observations, rollout.record.end).map(|_| Label::IgnoringFeedback);
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
fn acts<'a>(turns: &'a [Turn], observations: &'a [String]) -> impl Iterator<Item = Act<'a>> {
    let commands = turns.iter().enumerate().filter_map(|(turn, said)| {
        let command = said.command.as_deref()?;
        Some((turn, command, said.outcome?))
    });
    commands.zip(observations).map(|((turn, command, outcome), observation)| Act {
        turn,
        command: command.trim(),
        outcome,
        observation,
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

    use crate::model::{ShellOutcome, Turn};

    pub(super) type Played<'a> = (&'a str, ShellOutcome, &'a str);

    /// Turns that run `commands`, then one that submits with the words `done`.
    pub(super) fn play(commands: &[Played<'_>], done: &str) -> (Vec<Turn>, Vec<String>) {
        let mut turns: Vec<_> = commands
            .iter()
            .map(|(command, outcome, _)| Turn {
                thought: "Next.".to_owned(),
                command: Some((*command).to_owned()),
                outcome: Some(*outcome),
            })
            .collect();
        turns.push(Turn { thought: done.to_owned(), command: None, outcome: None });
        (turns, commands.iter().map(|(_, _, text)| (*text).to_owned()).collect())
    }
}
