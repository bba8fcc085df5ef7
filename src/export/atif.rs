//! Rollouts as ATIF v1.7, the Agent Trajectory Interchange Format that Harbor, NeMo Gym and OpenEnv read.
//!
//! One flat document for each rollout. Version 1.7 is what most readers speak; Harbor takes 1.0 to 1.8. Its rules that
//! matter here: steps are numbered from 1; tool calls stand on agent steps only; every observation names a tool call of
//! its own step; steps without a model call carry no metrics; unknown keys are refused, so what is ours stands in `extra`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::messages::{MessageError, TEACHER, check_observations, is_observed};
use crate::agent::SCAFFOLD;
use crate::judge;
use crate::model::{Actor, Rollout, ShellOutcome, Turn};

/// What `schema_version` says.
pub const SCHEMA_VERSION: &str = "ATIF-v1.7";

/// When things happened, as it was observed: ISO 8601 with a zone (`2026-03-01T12:00:00Z`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// When the task was posed.
    pub started: String,
    /// When each turn was said.
    pub turns: Vec<String>,
}

/// A rollout that has no ATIF form.
#[derive(Debug, thiserror::Error)]
pub enum AtifError {
    #[error(transparent)]
    Damaged(#[from] MessageError),
    #[error(
        "trajectory `{id}` has {turns} turns but {stamps} time stamps\nhint: observe one for each turn, or none"
    )]
    StampCount { id: String, turns: usize, stamps: usize },
    #[error(
        "time stamp `{stamp}` of trajectory `{id}` is not ISO 8601 with a zone\nhint: `2026-03-01T12:00:00Z` is"
    )]
    Stamp { id: String, stamp: String },
}

/// An ATIF document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trajectory {
    schema_version: &'static str,
    session_id: String,
    trajectory_id: String,
    agent: Agent,
    steps: Vec<Step>,
    final_metrics: FinalMetrics,
    extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Agent {
    name: &'static str,
    version: &'static str,
    model_name: &'static str,
    extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Step {
    step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    source: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    llm_call_count: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ToolCall {
    tool_call_id: String,
    function_name: &'static str,
    arguments: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Observation {
    results: Vec<ObservationResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ObservationResult {
    source_call_id: String,
    content: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct FinalMetrics {
    total_steps: usize,
}

impl Trajectory {
    /// The document as it stands in a file.
    pub fn to_json(&self) -> String {
        // Maps have text keys and numbers are finite, so there is always a JSON form.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }
}

/// The ATIF document of `rollout`.
pub fn trajectory(rollout: &Rollout, stamps: Option<&Stamps>) -> Result<Trajectory, AtifError> {
    check_observations(rollout)?;
    if let Some(stamps) = stamps {
        check_stamps(rollout, stamps)?;
    }
    let steps = steps(rollout, stamps);
    Ok(Trajectory {
        schema_version: SCHEMA_VERSION,
        session_id: rollout.id.clone(),
        trajectory_id: rollout.id.clone(),
        agent: Agent {
            name: "termsmith-scripted",
            version: env!("CARGO_PKG_VERSION"),
            model_name: TEACHER,
            extra: object(json!({ "scaffold": SCAFFOLD })),
        },
        final_metrics: FinalMetrics { total_steps: steps.len() },
        steps,
        extra: facts(rollout),
    })
}

fn steps(rollout: &Rollout, stamps: Option<&Stamps>) -> Vec<Step> {
    let record = &rollout.record;
    let started = stamps.map(|stamps| stamps.started.clone());
    let mut steps = Vec::with_capacity(record.turns.len() + 2);
    if !record.system.is_empty() {
        steps.push(Step::said("system", &record.system, started.clone()));
    }
    steps.push(Step::said("user", &record.prompt, started));

    let mut observations = rollout.observations.iter();
    for (number, turn) in record.turns.iter().enumerate() {
        let call_id = format!("call_{}", number + 1);
        let mut step = Step::said("agent", &turn.thought, None);
        step.timestamp = stamps.and_then(|stamps| stamps.turns.get(number).cloned());
        step.llm_call_count = Some(0);
        let arguments =
            turn.command.as_ref().map_or_else(Map::new, |command| object(json!({ "command": command })));
        let function_name = if turn.command.is_some() { "bash" } else { "submit" };
        if is_observed(turn) {
            step.observation = observations.next().map(|shown| Observation {
                results: vec![ObservationResult {
                    source_call_id: call_id.clone(),
                    content: shown.clone(),
                    extra: ending(turn),
                }],
            });
        }
        step.tool_calls = vec![ToolCall { tool_call_id: call_id, function_name, arguments }];
        steps.push(step);
    }
    for (number, step) in steps.iter_mut().enumerate() {
        step.step_id = number + 1;
    }
    steps
}

impl Step {
    fn said(source: &'static str, message: &str, timestamp: Option<String>) -> Self {
        Self {
            step_id: 0,
            timestamp,
            source,
            message: message.to_owned(),
            tool_calls: Vec::new(),
            observation: None,
            llm_call_count: None,
        }
    }
}

/// How the turn's command ended.
fn ending(turn: &Turn) -> Map<String, Value> {
    match turn.outcome {
        None => Map::new(),
        Some(ShellOutcome::Exited(status)) => object(json!({ "exit_status": status })),
        Some(ShellOutcome::TimedOut) => object(json!({ "timed_out": true })),
        Some(ShellOutcome::ShellDied(status)) => object(json!({ "shell_died": status })),
    }
}

/// What termsmith knows of the rollout beyond what was said.
fn facts(rollout: &Rollout) -> Map<String, Value> {
    let (record, blueprint) = (&rollout.record, &rollout.blueprint);
    let Actor::Scripted { failure } = &record.actor;
    object(json!({
        "task": record.task,
        "task_digest": record.task_digest,
        "environment_digest": record.environment_digest,
        "domain": blueprint.domain,
        "recipe": blueprint.recipe,
        "skills": blueprint.skills,
        "operations": blueprint.operations,
        "kind": blueprint.kind,
        "difficulty": blueprint.difficulty,
        "seed": blueprint.seed,
        "attempt": record.attempt,
        "teacher": TEACHER,
        "scripted_failure": failure,
        "end": record.end,
        "outcome": record.verdict.outcome,
        "cause": record.verdict.cause,
        "reward": rollout.rewards.map(|rewards| rewards.binary),
        "rewards": rollout.rewards,
        "checks": record.verdict.checks,
        "judge_labels": judge::labels(rollout),
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn check_stamps(rollout: &Rollout, stamps: &Stamps) -> Result<(), AtifError> {
    let id = || rollout.id.clone();
    let turns = rollout.record.turns.len();
    if stamps.turns.len() != turns {
        return Err(AtifError::StampCount { id: id(), turns, stamps: stamps.turns.len() });
    }
    match [&stamps.started].into_iter().chain(&stamps.turns).find(|stamp| !is_iso_8601(stamp)) {
        None => Ok(()),
        Some(stamp) => Err(AtifError::Stamp { id: id(), stamp: stamp.clone() }),
    }
}

fn is_iso_8601(stamp: &str) -> bool {
    /// Compiled once; the pattern is fixed, so it compiles.
    static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let day = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])";
        let time = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?";
        Regex::new(&format!(r"^{day}T{time}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$")).ok()
    });
    SHAPE.as_ref().is_some_and(|shape| shape.is_match(stamp))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::export::fixture;
    use crate::model::End;

    use super::*;

    fn stamps(turns: usize) -> Stamps {
        let turn = |second: usize| format!("2026-03-01T12:00:{second:02}.250Z");
        Stamps { started: "2026-03-01T12:00:00Z".to_owned(), turns: (1..=turns).map(turn).collect() }
    }

    /// The rules of Harbor's validator, on the JSON.
    #[track_caller]
    fn check_rules(document: &Value) {
        let steps = document["steps"].as_array().unwrap();
        assert!(!steps.is_empty());
        assert_eq!(document["schema_version"], "ATIF-v1.7");
        assert_eq!(document["final_metrics"]["total_steps"], steps.len());
        let agent_only = [
            "model_name",
            "reasoning_effort",
            "reasoning_content",
            "tool_calls",
            "metrics",
            "llm_call_count",
        ];
        for (at, step) in steps.iter().enumerate() {
            assert_eq!(step["step_id"], at + 1);
            let source = step["source"].as_str().unwrap();
            assert!(["system", "user", "agent"].contains(&source));
            assert!(step["message"].is_string());
            for key in agent_only {
                assert!(source == "agent" || step.get(key).is_none(), "{key} on a {source} step");
            }
            if step["llm_call_count"] == 0 {
                assert!(step.get("metrics").is_none() && step.get("reasoning_content").is_none());
            }
            let calls: BTreeSet<_> = step["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| &call["tool_call_id"])
                .map(Value::to_string)
                .collect();
            for result in step["observation"]["results"].as_array().into_iter().flatten() {
                assert!(calls.contains(&result["source_call_id"].to_string()), "{result}");
            }
        }
    }

    #[test]
    fn the_rules_of_the_format() {
        let passing = fixture::rollout("games", 1, 0, 3, 8);
        let mut without_system = passing.clone();
        without_system.record.system.clear();
        let mut cut_off = passing.clone();
        cut_off.record.turns.pop();
        cut_off.record.end = End::StepLimit;
        let mut unused = fixture::unmeasured(passing.clone());
        unused.record.turns.clear();
        unused.observations.clear();
        let mut lost = cut_off.clone();
        lost.record.turns[2].outcome = None;
        lost.observations.pop();
        for (rollout, steps) in [(passing, 6), (without_system, 5), (cut_off, 5), (lost, 5), (unused, 2)] {
            for stamps in [None, Some(stamps(rollout.record.turns.len()))] {
                let document = serde_json::to_value(trajectory(&rollout, stamps.as_ref()).unwrap()).unwrap();
                check_rules(&document);
                assert_eq!(document["steps"].as_array().unwrap().len(), steps);
            }
        }
    }

    #[test]
    fn a_document() {
        let rollout = fixture::rollout("games", 1, 0, 1, 6);
        let text = trajectory(&rollout, Some(&stamps(2))).unwrap().to_json();
        insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "<version>"));
    }

    #[test]
    fn time_stamps() {
        let check = |stamp: &str, expect: bool| assert_eq!(is_iso_8601(stamp), expect, "{stamp}");
        check("2026-03-01T12:00:00Z", true);
        check("2026-03-01T12:00:00.123456+02:00", true);
        check("2026-03-01T12:00:00", false);
        check("2026-03-01 12:00:00Z", false);
        check("2026-13-01T12:00:00Z", false);
        check("2026-03-01T24:00:00Z", false);
        check("now", false);
        check("", false);

        let rollout = fixture::rollout("games", 1, 0, 1, 8);
        let mut bad = stamps(2);
        bad.turns[1] = "later".to_owned();
        assert!(
            matches!(trajectory(&rollout, Some(&bad)), Err(AtifError::Stamp { stamp, .. }) if stamp == "later")
        );
        let few = stamps(1);
        assert!(matches!(
            trajectory(&rollout, Some(&few)),
            Err(AtifError::StampCount { turns: 2, stamps: 1, .. })
        ));
    }
}
