//! Rollouts without an agent, as baselines.

use serde_json::json;

use super::attempt::PreparedTask;
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record};
use crate::clock::now_ms;
use crate::model::{Actor, End, FileTree, Key, Outcome, TrajectoryRecord};
use crate::store::key;
use crate::verify::{Act, Condition, TrialRunner};

/// A rollout of the task's own solution, or of no solver.
pub async fn reference(
    runner: &TrialRunner<'_>,
    prepared: &PreparedTask<'_>,
    actor: &Actor,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let input = json!({
        "task": prepared.target.identity(),
        "environment": prepared.target.environment_digest(),
        "actor": actor,
        "attempt": attempt,
    });
    let key = key(ROLLOUT, &input)?;
    if read_record(runner.store, &key)?.is_some() {
        return Ok(key);
    }
    let started_ms = now_ms();
    let none = FileTree::default();
    let act = match actor {
        Actor::Oracle => Act::Solve(prepared.target.solution().unwrap_or(&none)),
        _ => Act::Nothing,
    };
    let (trial, seen) = runner.trial(prepared.target, act, Condition::Ordinary, attempt).await?;
    let record = TrajectoryRecord {
        task: prepared.name.clone(),
        task_digest: prepared.task_digest.clone(),
        environment_digest: Some(prepared.target.environment_digest().clone()),
        attempt,
        actor: actor.clone(),
        scaffold: actor.teacher().to_owned(),
        system: String::new(),
        prompt: prepared.instruction.to_owned(),
        opening: Vec::new(),
        tools: Vec::new(),
        turns: Vec::new(),
        threads: Vec::new(),
        end: if trial.verdict.outcome == Outcome::Timeout { End::TimedOut } else { End::Submitted },
        verdict: trial.verdict,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: Vec::new(),
        fork: None,
        exploits: Vec::new(),
    };
    let log = RolloutLog {
        started_ms,
        turns: Vec::new(),
        handoffs: Vec::new(),
        threads: Vec::new(),
        cause: String::new(),
        verifier: seen.verifier,
        engine: seen.engine,
        seconds: seen.seconds,
    };
    runner.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}
