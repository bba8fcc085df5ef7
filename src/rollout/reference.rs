//! Rollouts in which no agent acts.

use serde_json::json;

use super::played::Posed;
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record};
use super::scripted::now_ms;
use super::venue::Venue;
use crate::model::{Actor, End, FileTree, Key, Outcome, TrajectoryRecord};
use crate::store::key;
use crate::verify::{Act, Condition, Lab};

/// A rollout of the task's own solution, or of nobody: what an agent's are measured by.
pub async fn reference(
    lab: &Lab<'_>,
    posed: &Posed<'_>,
    actor: &Actor,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let input = json!({
        "task": posed.identity,
        "environment": posed.environment_digest,
        "actor": actor,
        "attempt": attempt,
    });
    let key = key(ROLLOUT, &input)?;
    if read_record(lab.store, &key)?.is_some() {
        return Ok(key);
    }
    let started_ms = now_ms();
    let act = |solution| if *actor == Actor::Oracle { Act::Solve(solution) } else { Act::Nothing };
    let (trial, seen) = match posed.venue {
        Venue::CleanRoom(filed) => {
            lab.trial(filed, act(&filed.task.solution), Condition::Ordinary, attempt).await?
        }
        Venue::InPlace { task, images } => {
            let none = FileTree::default();
            let solution = task.solution().unwrap_or(&none);
            lab.trial_in_place(task, images, act(solution), Condition::Ordinary, attempt).await?
        }
    };
    let record = TrajectoryRecord {
        task: posed.name.clone(),
        task_digest: posed.task_digest.clone(),
        environment_digest: posed.environment_digest.clone(),
        attempt,
        actor: actor.clone(),
        scaffold: actor.teacher().to_owned(),
        system: String::new(),
        prompt: posed.instruction.to_owned(),
        tools: Vec::new(),
        turns: Vec::new(),
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
        verifier: seen.verifier,
        engine: seen.engine,
        seconds: seen.seconds,
    };
    lab.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}
