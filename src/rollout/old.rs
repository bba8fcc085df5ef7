//! Rollouts of version 1, which only the scripted expert played: a thought and one command a turn.

use serde::Deserialize;

use super::record::{ROLLOUT, RolloutLog};
use crate::agent::{ActSeen, BASH_BLOCK, TurnSeen, write_block};
use crate::model::{
    Act, Actor, End, Key, ShellOutcome, Shown, TaskName, TrajectoryRecord, Turn, TurnKind, Verdict,
};
use crate::store::{Store, StoreError};
use crate::verify::VerifierLog;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    task: TaskName,
    task_digest: String,
    environment_digest: String,
    attempt: u32,
    actor: Actor,
    system: String,
    prompt: String,
    turns: Vec<OldTurn>,
    end: End,
    verdict: Verdict,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldTurn {
    thought: String,
    command: Option<String>,
    outcome: Option<ShellOutcome>,
}

#[derive(Deserialize)]
struct Log {
    started_ms: u64,
    /// One for each turn with a command that ended.
    turns: Vec<Observed>,
    verifier: VerifierLog,
    engine: String,
    seconds: f64,
}

#[derive(Deserialize)]
struct Observed {
    message: String,
    bytes: u64,
    milliseconds: f64,
}

/// Reads one, as the present version has it.
pub(super) fn read(store: &Store, key: &Key) -> Result<Option<(TrajectoryRecord, RolloutLog)>, StoreError> {
    let Some(record) = store.get::<Record>(ROLLOUT, key)? else { return Ok(None) };
    Ok(store.observed::<Log>(key)?.map(|log| renewed(record, log)))
}

fn renewed(old: Record, log: Log) -> (TrajectoryRecord, RolloutLog) {
    let mut observed = log.turns.into_iter();
    let mut at_ms = log.started_ms;
    let (turns, seen): (Vec<_>, Vec<_>) = old
        .turns
        .into_iter()
        .map(|turn| {
            let content = write_block(&turn.thought, turn.command.as_deref());
            let mut seen = TurnSeen { at_ms, ..TurnSeen::default() };
            let Some(command) = turn.command else {
                return (Turn { content, kind: TurnKind::Submitted, ..Turn::default() }, seen);
            };
            if let Some(shown) = turn.outcome.and_then(|_| observed.next()) {
                seen.shown = vec![Shown::text(shown.message)];
                seen.acts = vec![ActSeen { bytes: shown.bytes, milliseconds: shown.milliseconds }];
                // Commands take far less than 2^52 milliseconds, and never a negative number of them.
                at_ms += shown.milliseconds.round() as u64;
            }
            let acts = vec![Act::Command { command, outcome: turn.outcome }];
            (Turn { content, acts, ..Turn::default() }, seen)
        })
        .unzip();
    let record = TrajectoryRecord {
        task: old.task,
        task_digest: old.task_digest,
        environment_digest: old.environment_digest,
        attempt: old.attempt,
        actor: old.actor,
        scaffold: BASH_BLOCK.to_owned(),
        system: old.system,
        prompt: old.prompt,
        tools: Vec::new(),
        turns,
        end: old.end,
        verdict: old.verdict,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: Vec::new(),
        fork: None,
        exploits: Vec::new(),
    };
    let log = RolloutLog {
        started_ms: log.started_ms,
        turns: seen,
        handoffs: Vec::new(),
        verifier: log.verifier,
        engine: log.engine,
        seconds: log.seconds,
    };
    (record, log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_read() {
        let record = serde_json::from_str(include_str!("old/rollout-1.json")).unwrap();
        let log = serde_json::from_str(include_str!("old/observed-1.json")).unwrap();
        let (record, log) = renewed(record, log);
        insta::assert_snapshot!(serde_json::to_string_pretty(&(record, log.turns)).unwrap());
    }
}
