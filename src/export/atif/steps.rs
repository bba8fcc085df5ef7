//! Turns as ATIF steps.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::document::{
    Metrics, ObjectText, Observation, ObservationResult, Step, SubagentRef, ToolCall, object,
};
use super::stamps::Stamps;
use crate::clock::iso8601;
use crate::model::{
    Act, Actor, CallDetail, Role, Rollout, Sender, ShellOutcome, Shown, Tokens, Turn, TurnKind,
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

/// A thread whose turns become steps.
pub(super) struct StepSource<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) stamps: Option<&'a Stamps>,
    pub(super) calls: Calls,
    /// One entry for each turn.
    pub(super) details: &'a [Option<CallDetail>],
    /// Threads that this one began.
    pub(super) begun: &'a [BegunThread],
}

/// A thread, and the place at which it was begun.
pub(super) struct BegunThread {
    pub(super) turn: usize,
    pub(super) tool_call: Option<String>,
    pub(super) reference: SubagentRef,
}

impl StepSource<'_> {
    /// The steps of one segment, which consists of `turns`.
    pub(super) fn steps(&self, segment: usize, turns: Range<usize>) -> Vec<Step> {
        let Self { rollout, stamps, calls, details, begun } = *self;
        let record = &rollout.record;
        let mut steps = opening(rollout, segment, stamps);
        let copied = record.fork.as_ref().map_or(0, |fork| fork.turns);
        let submit = how_it_submits(rollout);
        let all = record.turns.iter().zip(&rollout.shown).enumerate();
        for (number, (turn, shown)) in all.skip(turns.start).take(turns.len()) {
            let stamp = stamps.and_then(|stamps| stamps.turns.get(number).map(|turn| iso8601(*turn)));
            let detail = details.get(number).and_then(Option::as_ref);
            let (messages, seen): (Vec<&Shown>, Vec<&Shown>) =
                shown.iter().partition(|shown| is_message(turn, shown, &record.actor));
            let is_copied_context = (number < copied).then_some(true);
            let step = Step { timestamp: stamp, is_copied_context, ..of_turn(turn, number, calls, submit) };
            let mut step = observing(step, turn, &seen);
            for thread in begun.iter().filter(|thread| thread.turn == number) {
                refer(&mut step, thread);
            }
            steps.push(inferred(step, turn, &record.actor, detail));
            steps.extend(messages.iter().map(|shown| {
                let source = match shown.sender {
                    Sender::User => "user",
                    Sender::System => "system",
                };
                Step { is_copied_context, ..message_step(source, &shown.content) }
            }));
        }
        steps
    }
}

/// Adds a reference to a thread, to the result of the call that began it.
fn refer(step: &mut Step, thread: &BegunThread) {
    let known = |id: &String| step.tool_calls.iter().any(|call| call.tool_call_id == *id);
    let call = thread.tool_call.clone().filter(known);
    let results = &mut step.observation.get_or_insert_default().results;
    let at = results.iter().position(|result| result.source_call_id == call).unwrap_or_else(|| {
        results.push(ObservationResult { source_call_id: call, ..ObservationResult::default() });
        results.len() - 1
    });
    if let Some(result) = results.get_mut(at) {
        result.subagent_trajectory_ref.push(thread.reference.clone());
    }
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
    let mut steps: Vec<Step> = Vec::new();
    for message in rollout.opening(segment) {
        let source = match message.role {
            Role::System => "system",
            Role::User | Role::Tool => "user",
            Role::Assistant => "agent",
        };
        let mut step = message_step(source, &message.content);
        step.timestamp.clone_from(&timestamp);
        // An assistant message of the opening is no turn, e.g. an example.
        step.is_copied_context = is_copied_context.or((message.role == Role::Assistant).then_some(true));
        step.tool_calls = message.tool_calls.iter().map(model_call).collect();
        step.reasoning_content = message.reasoning;
        let called = |last: &&mut Step| {
            last.tool_calls.iter().any(|call| Some(&call.tool_call_id) == message.tool_call.as_ref())
        };
        match steps.last_mut().filter(called) {
            Some(last) if message.role == Role::Tool => {
                last.observation.get_or_insert_default().results.push(ObservationResult {
                    source_call_id: message.tool_call,
                    content: Some(message.content),
                    ..ObservationResult::default()
                });
            }
            Some(_) | None => steps.push(step),
        }
    }
    steps
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

/// Whether `shown` is a message, and not an observation: a mentor's answer, feedback between
/// rounds, or what an agent program says beside the results of calls.
fn is_message(turn: &Turn, shown: &Shown, actor: &Actor) -> bool {
    let is_beside_results = !turn.tool_calls.is_empty() && matches!(actor, Actor::Model(_));
    let is_reply = matches!(turn.kind, TurnKind::Submitted | TurnKind::Asked);
    shown.tool_call.is_none() && (is_reply || is_beside_results || shown.sender == Sender::System)
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
