//! Rollouts as ATIF v1.7, the Agent Trajectory Interchange Format that Harbor, NeMo Gym and OpenEnv read.
//!
//! One flat document for each rollout. Version 1.7 is what most readers speak; Harbor takes 1.0 to 1.8. Its rules that
//! matter here: steps are numbered from 1; tool calls stand on agent steps only; every observation names a tool call of
//! its own step; steps without a model call carry no metrics; unknown keys are refused, so what is ours stands in `extra`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::messages::{MessageError, check_observations};
use crate::model::{Act, Actor, Rollout, ShellOutcome, ToolDefinition, Turn, TurnKind};

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
    name: String,
    version: String,
    model_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_definitions: Vec<Value>,
    extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Step {
    step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    source: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    llm_call_count: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Metrics {
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_ids: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_token_ids: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ToolCall {
    tool_call_id: String,
    function_name: String,
    arguments: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Observation {
    results: Vec<ObservationResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ObservationResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    source_call_id: Option<String>,
    content: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct FinalMetrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    total_prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_completion_tokens: Option<u64>,
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
    let record = &rollout.record;
    let (name, version) = match &record.actor {
        Actor::Imported(origin) => (origin.agent.clone(), origin.agent_version.clone().unwrap_or_default()),
        Actor::Model(_) => (format!("termsmith-{}", record.scaffold), env!("CARGO_PKG_VERSION").to_owned()),
        _ => (format!("termsmith-{}", record.actor.teacher()), env!("CARGO_PKG_VERSION").to_owned()),
    };
    Ok(Trajectory {
        schema_version: SCHEMA_VERSION,
        session_id: rollout.id.clone(),
        trajectory_id: rollout.id.clone(),
        agent: Agent {
            name,
            version,
            model_name: record.actor.teacher().to_owned(),
            tool_definitions: record.tools.iter().map(definition).collect(),
            extra: object(json!({ "scaffold": record.scaffold })),
        },
        final_metrics: FinalMetrics {
            total_prompt_tokens: total(rollout, |usage| usage.prompt),
            total_completion_tokens: total(rollout, |usage| usage.completion),
            total_steps: steps.len(),
        },
        steps,
        extra: facts(rollout),
    })
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({ "type": "function", "function": tool })
}

fn total(rollout: &Rollout, of: impl Fn(&crate::model::Tokens) -> u64) -> Option<u64> {
    let mut counted = rollout.record.turns.iter().filter_map(|turn| turn.usage.as_ref()).peekable();
    counted.peek()?;
    Some(counted.map(of).sum())
}

fn steps(rollout: &Rollout, stamps: Option<&Stamps>) -> Vec<Step> {
    let record = &rollout.record;
    let started = stamps.map(|stamps| stamps.started.clone());
    let mut steps = Vec::with_capacity(record.turns.len() + 2);
    if !record.system.is_empty() {
        steps.push(Step::said("system", &record.system, started.clone()));
    }
    steps.push(Step::said("user", &record.prompt, started));

    let by_model = matches!(record.actor, Actor::Model(_));
    for (number, (turn, shown)) in record.turns.iter().zip(&rollout.shown).enumerate() {
        let mut step = Step::said("agent", &turn.content, None);
        step.timestamp = stamps.and_then(|stamps| stamps.turns.get(number).cloned());
        step.tool_calls = tool_calls(turn, number);
        if by_model {
            step.reasoning_content.clone_from(&turn.reasoning);
            step.metrics = turn.usage.map(|usage| Metrics {
                prompt_tokens: usage.prompt,
                completion_tokens: usage.completion,
                prompt_token_ids: None,
                completion_token_ids: None,
                logprobs: None,
            });
        } else {
            step.llm_call_count = Some(0);
        }
        // One observation of one call names it; one of several keys typed in a row belongs to all of them.
        let only = match step.tool_calls.as_slice() {
            [call] => Some(call.tool_call_id.clone()),
            _ => None,
        };
        let results: Vec<_> = shown
            .iter()
            .map(|shown| ObservationResult {
                source_call_id: shown.tool_call.clone().or_else(|| only.clone()),
                content: shown.content.clone(),
                extra: ending(turn),
            })
            .collect();
        step.observation = (!results.is_empty()).then_some(Observation { results });
        steps.push(step);
    }
    for (number, step) in steps.iter_mut().enumerate() {
        step.step_id = number + 1;
    }
    steps
}

/// What a turn did, as calls: the model's own where it calls functions, else one for each act.
fn tool_calls(turn: &Turn, number: usize) -> Vec<ToolCall> {
    if !turn.tool_calls.is_empty() {
        let own = turn.tool_calls.iter().map(|call| ToolCall {
            tool_call_id: call.id.clone(),
            function_name: call.name.clone(),
            arguments: match serde_json::from_str(&call.arguments) {
                Ok(Value::Object(arguments)) => arguments,
                _ => object(json!({ "arguments": call.arguments })),
            },
        });
        return own.collect();
    }
    let id = |at: usize| {
        if at == 0 { format!("call_{}", number + 1) } else { format!("call_{}_{}", number + 1, at + 1) }
    };
    if turn.kind == TurnKind::Submitted {
        let (tool_call_id, function_name) = (id(0), "submit".to_owned());
        return vec![ToolCall { tool_call_id, function_name, arguments: Map::new() }];
    }
    let calls = turn.acts.iter().enumerate().map(|(at, act)| match act {
        Act::Command { command, .. } => ToolCall {
            tool_call_id: id(at),
            function_name: "bash".to_owned(),
            arguments: object(json!({ "command": command })),
        },
        Act::Keys { keys } => ToolCall {
            tool_call_id: id(at),
            function_name: "keystrokes".to_owned(),
            arguments: object(json!({ "keystrokes": keys })),
        },
    });
    calls.collect()
}

impl Step {
    fn said(source: &'static str, message: &str, timestamp: Option<String>) -> Self {
        Self {
            step_id: 0,
            timestamp,
            source,
            message: message.to_owned(),
            reasoning_content: None,
            tool_calls: Vec::new(),
            observation: None,
            metrics: None,
            llm_call_count: None,
        }
    }
}

/// How the turn's only command ended.
fn ending(turn: &Turn) -> Map<String, Value> {
    let [Act::Command { outcome: Some(outcome), .. }] = turn.acts.as_slice() else { return Map::new() };
    match outcome {
        ShellOutcome::Exited(status) => object(json!({ "exit_status": status })),
        ShellOutcome::TimedOut => object(json!({ "timed_out": true })),
        ShellOutcome::ShellDied(status) => object(json!({ "shell_died": status })),
    }
}

/// What termsmith knows of the rollout beyond what was said.
fn facts(rollout: &Rollout) -> Map<String, Value> {
    let (record, facts) = (&rollout.record, &rollout.facts);
    let failure = match &record.actor {
        Actor::Scripted { failure } => *failure,
        _ => None,
    };
    object(json!({
        "task": record.task,
        "task_digest": record.task_digest,
        "environment_digest": record.environment_digest,
        "domain": facts.domain,
        "recipe": facts.recipe,
        "skills": facts.skills,
        "operations": facts.operations,
        "kind": facts.kind,
        "difficulty": facts.difficulty,
        "seed": facts.seed,
        "attempt": record.attempt,
        "teacher": record.actor.teacher(),
        "arm": record.actor.arm(),
        "scripted_failure": failure,
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
        cut_off.shown.pop();
        cut_off.record.end = End::StepLimit;
        let mut unused = fixture::unmeasured(passing.clone());
        unused.record.turns.clear();
        unused.shown.clear();
        let mut lost = cut_off.clone();
        lost.record.turns[2].acts = vec![Act::Command { command: "boom".to_owned(), outcome: None }];
        lost.shown[2].clear();
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
