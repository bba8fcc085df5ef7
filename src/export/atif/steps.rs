//! Turns as ATIF steps.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::document::{Metrics, ObjectText, Observation, ObservationResult, Step, ToolCall, object};
use super::stamps::Stamps;
use crate::clock::iso8601;
use crate::model::{
    Act, Actor, CallDetail, Message, Role, Rollout, ShellOutcome, Shown, Tokens, Turn, TurnKind,
};

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

/// The steps of one segment of `rollout`, which consists of `turns`. `details` has one entry for
/// each turn of the rollout.
pub(super) fn steps(
    rollout: &Rollout,
    segment: usize,
    turns: Range<usize>,
    stamps: Option<&Stamps>,
    calls: Calls,
    details: &[Option<CallDetail>],
) -> Vec<Step> {
    let record = &rollout.record;
    let mut steps = opening(rollout, segment, stamps);
    let copied = record.fork.as_ref().map_or(0, |fork| fork.turns);
    let submit = how_it_submits(rollout);
    let all = record.turns.iter().zip(&rollout.shown).enumerate();
    for (number, (turn, shown)) in all.skip(turns.start).take(turns.len()) {
        let stamp = stamps.and_then(|stamps| stamps.turns.get(number).map(|turn| iso8601(*turn)));
        let detail = details.get(number).and_then(Option::as_ref);
        let (replies, seen): (Vec<&Shown>, Vec<&Shown>) =
            shown.iter().partition(|shown| is_reply(turn, shown));
        let is_copied_context = (number < copied).then_some(true);
        let step = Step { timestamp: stamp, is_copied_context, ..of_turn(turn, number, calls, submit) };
        steps.push(inferred(observing(step, turn, &seen), turn, &record.actor, detail));
        steps.extend(
            replies.iter().map(|shown| Step { is_copied_context, ..message_step("user", &shown.content) }),
        );
    }
    steps
}

/// The messages before the first answer.
fn opening(rollout: &Rollout, segment: usize, stamps: Option<&Stamps>) -> Vec<Step> {
    let record = &rollout.record;
    // The context after a summary repeats messages of other documents. The prompt of a further step
    // does not.
    let summed_up =
        segment.checked_sub(1).and_then(|before| record.handoffs.get(before)?.step.is_none().then_some(true));
    let is_copied_context = summed_up;
    let timestamp = stamps.filter(|_| segment == 0).map(|stamps| iso8601(stamps.started));
    let step = |message: &Message| {
        let source = match message.role {
            Role::System => "system",
            Role::User | Role::Tool => "user",
            Role::Assistant => "agent",
        };
        Step { timestamp: timestamp.clone(), is_copied_context, ..message_step(source, &message.content) }
    };
    rollout.opening(segment).iter().map(step).collect()
}

/// The steps with their numbers, from 1.
pub(super) fn numbered(mut steps: Vec<Step>) -> Vec<Step> {
    for (number, step) in steps.iter_mut().enumerate() {
        step.step_id = number + 1;
    }
    steps
}

/// The steps as copies at the beginning of another document. The mark tells trainers to skip them.
pub(super) fn copied(steps: &[Step]) -> Vec<Step> {
    let copy = |step: &Step| Step {
        is_copied_context: Some(true),
        timestamp: None,
        metrics: None,
        llm_call_count: None,
        ..step.clone()
    };
    steps.iter().map(copy).collect()
}

/// Whether `shown` is a user message, and not an observation: a mentor's answer, or feedback
/// between rounds.
fn is_reply(turn: &Turn, shown: &Shown) -> bool {
    shown.tool_call.is_none() && matches!(turn.kind, TurnKind::Submitted | TurnKind::Asked)
}

pub(super) fn message_step(source: &'static str, message: &str) -> Step {
    Step { source, message: message.to_owned(), ..Step::default() }
}

/// Whether an agent can submit by a command that its scaffold parses from a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Submit {
    ByCommand,
    /// It ends with a message that calls no function, or its program exits.
    ByEnding,
}

/// How the agent of `rollout` submits. Scaffolds with functions have none to submit, and an agent
/// program has no parsed commands at all.
fn how_it_submits(rollout: &Rollout) -> Submit {
    let record = &rollout.record;
    let parses = record.turns.iter().any(|turn| !turn.acts.is_empty());
    if record.tools.is_empty() && parses { Submit::ByCommand } else { Submit::ByEnding }
}

fn of_turn(turn: &Turn, number: usize, calls: Calls, submit: Submit) -> Step {
    let mut step = message_step("agent", &turn.content);
    step.tool_calls = turn.tool_calls.iter().map(model_call).collect();
    if calls == Calls::Parsed && turn.tool_calls.is_empty() {
        step.tool_calls = parsed(turn, number, submit);
    } else if !turn.acts.is_empty() {
        step.extra.insert("acts".to_owned(), json!(turn.acts));
    }
    if turn.kind != TurnKind::Acted {
        step.extra.insert("kind".to_owned(), json!(turn.kind));
    }
    if turn.cut_off {
        step.extra.insert("cut_off".to_owned(), json!(true));
    }
    step
}

/// The step, with the metrics of its model call if there was one.
fn inferred(mut step: Step, turn: &Turn, actor: &Actor, detail: Option<&CallDetail>) -> Step {
    step.llm_call_count = match actor {
        Actor::Model(_) => Some(1),
        // Unknown: another agent may have made calls for summaries.
        Actor::Imported(_) => None,
        Actor::Scripted { .. } | Actor::Oracle | Actor::Nop => {
            return Step { llm_call_count: Some(0), ..step };
        }
    };
    step.reasoning_content.clone_from(&turn.reasoning);
    step.metrics = metrics(turn.usage, detail);
    step
}

/// The metrics of a call.
pub(super) fn metrics(usage: Option<Tokens>, detail: Option<&CallDetail>) -> Option<Metrics> {
    let detail = detail.cloned().unwrap_or_default();
    let metrics = Metrics {
        prompt_tokens: usage.map(|usage| usage.prompt),
        completion_tokens: usage.map(|usage| usage.completion),
        cost_usd: detail.usd,
        prompt_token_ids: detail.prompt_token_ids,
        completion_token_ids: detail.completion_token_ids,
        logprobs: detail.logprobs,
    };
    (metrics != Metrics::default()).then_some(metrics)
}

/// The step with its observations.
fn observing(mut step: Step, turn: &Turn, seen: &[&Shown]) -> Step {
    // A single call names its observation. If several keystrokes were typed in a row, the
    // observation belongs to all of them.
    let only = match step.tool_calls.as_slice() {
        [call] if turn.tool_calls.is_empty() => Some(call.tool_call_id.clone()),
        _ => None,
    };
    let known = |id: &String| step.tool_calls.iter().any(|call| call.tool_call_id == *id);
    let results: Vec<_> = seen
        .iter()
        .map(|shown| ObservationResult {
            source_call_id: shown.tool_call.clone().filter(known).or_else(|| only.clone()),
            content: Some(shown.content.clone()),
            extra: ending(turn),
            ..ObservationResult::default()
        })
        .collect();
    step.observation = (!results.is_empty()).then_some(Observation { results });
    step
}

/// A function call of the model.
fn model_call(call: &crate::model::ToolCall) -> ToolCall {
    let (arguments, extra) = match ObjectText::parse(&call.arguments) {
        Some(arguments) => (arguments, Map::new()),
        // ATIF requires an object as arguments.
        None => {
            (ObjectText::of(json!({ "arguments": call.arguments })), object(json!({ "malformed": true })))
        }
    };
    ToolCall { tool_call_id: call.id.clone(), function_name: call.name.clone(), arguments, extra }
}

/// The acts that a scaffold parsed from a message, one tool call each.
fn parsed(turn: &Turn, number: usize, submit: Submit) -> Vec<ToolCall> {
    let id = |at: usize| {
        if at == 0 { format!("call_{}", number + 1) } else { format!("call_{}_{}", number + 1, at + 1) }
    };
    let call = |at: usize, name: &str, arguments: Value| ToolCall {
        tool_call_id: id(at),
        function_name: name.to_owned(),
        arguments: ObjectText::of(arguments),
        extra: object(json!({ "parsed": true })),
    };
    let acts = turn.acts.iter().enumerate().map(|(at, act)| match act {
        Act::Command { command, .. } => call(at, "bash", json!({ "command": command })),
        Act::Keys { keys } => call(at, "keystrokes", json!({ "keystrokes": keys })),
    });
    let by_command = turn.kind == TurnKind::Submitted && submit == Submit::ByCommand;
    let submitted = by_command.then(|| call(turn.acts.len(), "submit", json!({})));
    acts.chain(submitted).collect()
}

/// The exit status of the turn, if it ran exactly one command.
fn ending(turn: &Turn) -> Map<String, Value> {
    let [Act::Command { outcome: Some(outcome), .. }] = turn.acts.as_slice() else { return Map::new() };
    match outcome {
        ShellOutcome::Exited(status) => object(json!({ "exit_status": status })),
        ShellOutcome::TimedOut => object(json!({ "timed_out": true })),
        ShellOutcome::ShellDied(status) => object(json!({ "shell_died": status })),
    }
}
