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

mod asides;
mod document;
mod stamps;
mod steps;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use document::Trajectory;
pub use stamps::Stamps;

use self::document::{Agent, FinalMetrics};
use super::messages::{MessageError, check_observations};
use crate::model::{Actor, CallDetail, Key, Rollout, Tokens, ToolDefinition};

/// The value of `schema_version`.
pub const SCHEMA_VERSION: &str = "ATIF-v1.7";

/// Which tool calls a document contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// The model's function calls. In addition, one call with `extra.parsed` for each command that
    /// a scaffold parsed from a message.
    #[default]
    Parsed,
    /// The model's function calls only. Harbor's `traces export` writes tool calls into the text;
    /// with this choice that text is the model's exact message (Harbor's `raw_content`). Parsed
    /// commands are in the step's `extra.acts`.
    Spoken,
}

/// A rollout that cannot be written as ATIF.
#[derive(Debug, thiserror::Error)]
pub enum AtifError {
    #[error(transparent)]
    Damaged(#[from] MessageError),
    #[error(
        "trajectory `{id}` has {turns} turns but {stamps} time stamps\nhint: observe one for each turn, or none"
    )]
    StampCount { id: String, turns: usize, stamps: usize },
}

/// A document, and its file name.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub name: String,
    pub trajectory: Trajectory,
}

/// The ATIF documents of `rollout`. The first is `<base>.json`.
///
/// Each handoff adds documents, named as by terminus-2 with `linear_history`.
/// `<base>.cont-<n>.json` is the conversation after a summary or in a further step of the task.
/// `<base>.summarization-<n>-<kind>.json` are the calls that made the summary.
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
    let segments = record.segments();
    let of = segments.len();
    let mut documents = Vec::new();
    let mut aside = Vec::new();
    for (segment, turns) in segments.into_iter().enumerate() {
        let mut steps = steps::steps(rollout, segment, turns.clone(), stamps, calls, &details);
        if let Some(handoff) = record.handoffs.get(segment).filter(|handoff| handoff.step.is_none()) {
            let asides = asides::documents(rollout, base, segment, handoff, &steps, &detail);
            steps.push(asides::handed_off(&asides));
            aside.extend(asides);
        }
        let segment_turns = record.turns.get(turns.clone()).unwrap_or_default();
        let usages: Vec<_> = segment_turns.iter().filter_map(|turn| turn.usage).collect();
        let metrics =
            FinalMetrics::of(&usages, details.get(turns).unwrap_or_default().iter().flatten(), steps.len());
        let mut extra = rollout_extra(rollout);
        if of > 1 {
            extra.insert("segment".to_owned(), json!(segment));
            extra.insert("segments".to_owned(), json!(of));
        }
        let begun = segment.checked_sub(1).and_then(|before| record.handoffs.get(before));
        if let Some(step) = begun.and_then(|handoff| handoff.step.as_ref()) {
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

/// Name and version of the agent in ATIF and Harbor documents.
pub(in crate::export) fn agent_name(rollout: &Rollout) -> (String, String) {
    let record = &rollout.record;
    let ours = |name: &str| (format!("termsmith-{name}"), env!("CARGO_PKG_VERSION").to_owned());
    match &record.actor {
        // Harbor refuses null. It writes `unknown` itself.
        Actor::Imported(origin) => {
            (origin.agent.clone(), origin.agent_version.clone().unwrap_or_else(|| "unknown".to_owned()))
        }
        Actor::Model(_) => ours(&record.scaffold),
        Actor::Scripted { .. } | Actor::Oracle | Actor::Nop => ours(record.actor.teacher()),
    }
}

/// The model of the rollout, or what acted in place of one: `scripted`, `oracle` or `nop`.
pub(in crate::export) fn model_name(rollout: &Rollout) -> Option<String> {
    match &rollout.record.actor {
        Actor::Imported(origin) => origin.model.clone(),
        actor => Some(actor.teacher().to_owned()),
    }
}

fn agent(rollout: &Rollout) -> Agent {
    let (name, version) = agent_name(rollout);
    Agent {
        name,
        version,
        model_name: model_name(rollout),
        tool_definitions: rollout.record.tools.iter().map(definition).collect(),
        extra: object(json!({ "scaffold": rollout.record.scaffold })),
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({ "type": "function", "function": tool })
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

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
