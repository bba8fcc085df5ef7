//! Rollouts as ATIF v1.7, the Agent Trajectory Interchange Format. Harbor, NeMo Gym and OpenEnv
//! read it.
//!
//! A rollout becomes one flat document. Most readers accept version 1.7, Harbor 1.0 to 1.8. These
//! rules of the format matter here:
//!
//! - Steps are numbered from 1.
//! - Only agent steps have tool calls.
//! - An observation names a tool call of its own step, or none.
//! - Steps without a model call have no metrics.
//! - Unknown keys are refused, so termsmith's own fields are in `extra`.

mod agent;
mod asides;
mod document;
mod error;
mod stamps;
mod steps;
mod sub_agents;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub(in crate::export) use agent::{agent_identity, agent_name, model_name, program_version};
pub use document::{Document, SCHEMA_VERSION, Trajectory};
pub use error::AtifError;
pub use stamps::Stamps;
pub use steps::Calls;

use self::agent::agent;
use self::document::{FinalMetrics, object};
use self::steps::StepSource;
use self::sub_agents::SideThreads;
use super::messages::check_observations;
use crate::model::{Actor, CallDetail, Key, Rollout, Tokens};

/// The ATIF documents of `rollout`. The first is `<base>.json`.
///
/// Each handoff adds documents, named as by terminus-2 with `linear_history`.
/// `<base>.cont-<n>.json` is the conversation after a summary or in a further step of the task.
/// `<base>.summarization-<n>-<kind>.json` are the calls that made the summary. Sub-agents and other
/// threads are embedded in the document of the thread that began them.
///
/// `detail` returns the details of a model call. It is not called for turns without a call.
pub fn documents(
    rollout: &Rollout,
    base: &str,
    stamps: Option<&Stamps>,
    calls: Calls,
    detail: impl Fn(&Key) -> Option<CallDetail>,
) -> Result<Vec<Document>, AtifError> {
    check_observations(rollout)?;
    if let Some(stamps) = stamps {
        stamps::check(rollout, stamps)?;
    }
    let record = &rollout.record;
    let details: Vec<Option<CallDetail>> =
        record.turns.iter().map(|turn| turn.call.as_ref().and_then(&detail)).collect();
    let side = SideThreads::of(rollout, calls, &detail);
    let begun = side.begun_by(0);
    let source = StepSource { rollout, stamps, calls, details: &details, begun: &begun };
    let segments = record.segments();
    let of = segments.len();
    let mut documents = Vec::new();
    let mut aside = Vec::new();
    for (segment, turns) in segments.into_iter().enumerate() {
        let mut steps = source.steps(segment, turns.clone());
        if let Some(handoff) = record.handoffs.get(segment).filter(|handoff| handoff.step.is_none()) {
            let asides = asides::documents(rollout, base, segment, handoff, &steps, &detail);
            steps.push(asides::handed_off(&asides));
            aside.extend(asides);
        }
        let segment_turns = record.turns.get(turns.clone()).unwrap_or_default();
        let usages: Vec<_> = segment_turns.iter().filter_map(|turn| turn.usage).collect();
        let embedded = side.begun_in(0, &turns);
        let own = details.get(turns).unwrap_or_default().iter().flatten();
        let metrics = FinalMetrics::of(&usages, own, steps.len()).with(&embedded);
        let mut extra = rollout_extra(rollout);
        if of > 1 {
            extra.insert("segment".to_owned(), json!(segment));
            extra.insert("segments".to_owned(), json!(of));
        }
        let started = segment.checked_sub(1).and_then(|before| record.handoffs.get(before));
        if let Some(step) = started.and_then(|handoff| handoff.step.as_ref()) {
            extra.insert("task_step".to_owned(), json!(step));
        }
        let trajectory_id =
            if segment == 0 { rollout.id.clone() } else { format!("{}-cont-{segment}", rollout.id) };
        let trajectory = Trajectory {
            schema_version: SCHEMA_VERSION,
            session_id: rollout.id.clone(),
            trajectory_id,
            agent: agent(rollout),
            steps: steps::numbered(steps),
            final_metrics: metrics,
            subagent_trajectories: embedded,
            continued_trajectory_ref: (segment + 1 < of).then(|| segment_name(base, segment + 1)),
            extra,
        };
        documents.push(Document { name: segment_name(base, segment), trajectory });
    }
    documents.extend(aside);
    Ok(documents)
}

/// File name of a segment.
fn segment_name(base: &str, segment: usize) -> String {
    if segment == 0 { format!("{base}.json") } else { format!("{base}.cont-{segment}.json") }
}

/// Sum over all calls. `None` if the server counted none.
pub(in crate::export) fn total(rollout: &Rollout, of: impl Fn(&Tokens) -> u64) -> Option<u64> {
    rollout.record.usages().map(|usage| of(&usage)).reduce(|one, other| one + other)
}

/// termsmith's data about the rollout for which ATIF has no field.
fn rollout_extra(rollout: &Rollout) -> Map<String, Value> {
    let (record, metadata) = (&rollout.record, &rollout.metadata);
    let scripted = match &record.actor {
        Actor::Scripted { strategy, mistakes, failure } => {
            json!({ "strategy": strategy, "mistakes": mistakes, "failure": failure })
        }
        Actor::Oracle | Actor::Nop | Actor::Model(_) | Actor::Imported(_) => Value::Null,
    };
    object(json!({
        "task": record.task,
        "task_digest": record.task_digest,
        "environment_digest": record.environment_digest,
        "domain": metadata.domain,
        "recipe": metadata.recipe,
        "skills": metadata.skills,
        "operations": metadata.operations,
        "kind": metadata.kind,
        "difficulty": metadata.difficulty,
        "seed": metadata.seed,
        "attempt": record.attempt,
        "teacher": record.actor.teacher(),
        "arm": record.actor.arm(),
        "scripted": scripted,
        "end": record.end,
        "outcome": record.verdict.outcome,
        "cause": record.verdict.cause,
        "failure_kind": record.failure_kind(),
        "mask_sample": record.failure_kind().masks(),
        "reward": rollout.rewards.map(|rewards| rewards.binary),
        "rewards": rollout.rewards,
        "checks": record.verdict.checks,
        "rounds": record.rounds,
        "fork": record.fork,
        "exploits": record.exploits,
        "judge_labels": rollout.labels,
        "judge": rollout.judge,
    }))
}
