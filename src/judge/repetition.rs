//! Mechanical loops: "exact same command repeated after an error", LiteCoder's lowest level of failure.

use super::{Act, acts, failed};
use crate::model::{Shown, Turn};

/// Runs of the same failing command that count as a loop. Twice is a retry, which flaky commands deserve.
pub const LOOP_LENGTH: usize = 3;

/// A run of equal commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Index of the turn that ran it first.
    pub first_turn: usize,
    /// How often it was run.
    pub times: usize,
}

/// The first run of [`LOOP_LENGTH`] or more equal commands that failed with equal output.
pub fn mechanical_loop(turns: &[Turn], shown: &[Vec<Shown>]) -> Option<Repetition> {
    let acts: Vec<_> = acts(turns, shown).collect();
    let same = |one: &Act<'_>, next: &Act<'_>| {
        failed(one.outcome)
            && one.outcome == next.outcome
            && one.command == next.command
            && one.observation == next.observation
    };
    acts.chunk_by(same)
        .find(|run| run.len() >= LOOP_LENGTH)
        .and_then(|run| Some(Repetition { first_turn: run.first()?.turn, times: run.len() }))
}

#[cfg(test)]
mod tests {
    use crate::judge::script::{Played, play};
    use crate::model::ShellOutcome::{Exited, ShellDied, TimedOut};

    use super::*;

    #[track_caller]
    fn check(commands: &[Played<'_>], expect: Option<(usize, usize)>) {
        let (turns, observations) = play(commands, "Done.");
        let found = mechanical_loop(&turns, &observations).map(|found| (found.first_turn, found.times));
        assert_eq!(found, expect, "{commands:?}");
    }

    #[test]
    fn loops() {
        let bad = ("make", Exited(2), "no rule");
        let good = ("ls", Exited(0), "a");
        check(&[], None);
        check(&[bad, bad], None);
        check(&[bad, bad, bad], Some((0, 3)));
        check(&[good, bad, bad, bad, bad, good], Some((1, 4)));
        // An act in between breaks the run.
        check(&[bad, bad, good, bad], None);
        // Success repeated is no loop: polling, or looking again.
        check(&[good, good, good], None);
        // Another output or another status means that something changed.
        check(&[bad, bad, ("make", Exited(2), "other")], None);
        check(&[bad, bad, ("make", Exited(1), "no rule")], None);
        check(&[("sleep 99", TimedOut, ""); 3], Some((0, 3)));
        check(&[("exit 9", ShellDied(9), ""); 3], Some((0, 3)));
        // Blanks around a command do not hide a loop.
        check(&[bad, ("make\n", Exited(2), "no rule"), (" make", Exited(2), "no rule")], Some((0, 3)));
        // The first of two loops is named.
        check(
            &[bad, bad, bad, good, ("x", Exited(1), ""), ("x", Exited(1), ""), ("x", Exited(1), "")],
            Some((0, 3)),
        );
    }

    #[test]
    fn a_command_without_observation_does_not_count() {
        let (turns, mut observations) = play(&[("make", Exited(2), "no rule"); 3], "Done.");
        observations[2].clear();
        assert_eq!(mechanical_loop(&turns, &observations), None);
    }
}
