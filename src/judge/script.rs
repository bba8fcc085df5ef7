//! Turns from a table: command, outcome, observation.

use super::attempt::{Attempt, attempts};
use crate::model::{Act, ShellOutcome, Shown, Turn, TurnKind};

pub(super) type ScriptedCommand<'a> = (&'a str, ShellOutcome, &'a str);

/// Turns that run `commands`, and one that submits with the message `done`.
pub(super) fn scripted_turns(commands: &[ScriptedCommand<'_>], done: &str) -> (Vec<Turn>, Vec<Vec<Shown>>) {
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

/// The result of `detect` for `commands`.
pub(super) fn with<T>(
    commands: &[ScriptedCommand<'_>],
    detect: impl FnOnce(&[Turn], &[Attempt<'_>]) -> T,
) -> T {
    let (turns, shown) = scripted_turns(commands, "Done.");
    detect(&turns, &attempts(&turns, &shown))
}
