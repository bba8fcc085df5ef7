//! Conversations with function calls as chat templates take them: messages with `tool_calls`, and
//! results of role `tool`.
//!
//! A message is JSON, because the arguments of functions have no common type. Keys without a value
//! are left out: some templates print them, or fail. Messages stand as they were sent, and none are
//! joined.

use super::json_text::{ObjectText, as_python_writes};
use super::messages::Segment;
use crate::llm::{sent_arguments, sent_name};
use crate::model::{Handoff, Message, Role, Rollout, ThreadKind, ToolCall, ToolDefinition, Turn};

/// Whether the model could call functions in the main conversation or in a sub-agent's.
pub(super) fn has_functions(rollout: &Rollout) -> bool {
    let has = |tools: &[ToolDefinition], handoffs: &[Handoff]| {
        !tools.is_empty() || handoffs.iter().any(|handoff| handoff.tools.iter().flatten().next().is_some())
    };
    let record = &rollout.record;
    let mut sub_agents = record.threads.iter().filter(|thread| thread.kind == ThreadKind::Subagent);
    has(&record.tools, &record.handoffs) || sub_agents.any(|thread| has(&thread.tools, &thread.handoffs))
}

/// The functions that the model could call in a segment, as its requests declared them. `None` if
/// there were none: templates treat an empty list as functions.
pub(super) fn definitions(rollout: &Rollout, segment: usize) -> Option<Vec<String>> {
    let tools = rollout.record.tools_of(segment);
    (!tools.is_empty()).then(|| tools.iter().map(definition).collect())
}

fn definition(tool: &ToolDefinition) -> String {
    as_python_writes(&serde_json::json!({ "type": "function", "function": tool }).to_string())
}

/// Whether every call of `turn` stands in rows as the model wrote it. A history with malformed
/// arguments, or with a name that no function can have, is sent back in another form.
pub(super) fn is_as_written(turn: &Turn) -> bool {
    turn.tool_calls
        .iter()
        .all(|call| sent_arguments(&call.arguments) == call.arguments && sent_name(&call.name) == call.name)
}

/// A conversation with function calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionConversation {
    /// One JSON text for each message.
    pub(super) messages: Vec<String>,
    /// Number of messages at the beginning that the agent was given.
    pub(super) n_context: usize,
}

impl FunctionConversation {
    /// The messages of `segment`. `train` has a flag for each of its turns.
    pub(super) fn of(rollout: &Rollout, segment: &Segment, train: &[bool]) -> Self {
        // Every assistant message has a flag, so that readers need not know the context.
        let mut messages: Vec<String> =
            rollout.opening(segment.number).iter().map(|message| json(message, false)).collect();
        let n_context = messages.len();
        let turns = rollout.record.turns.iter().zip(&rollout.shown);
        let turns = turns.skip(segment.turns.start).take(segment.turns.len());
        for ((turn, shown), train) in turns.zip(train) {
            messages.push(json(&Message::of(turn), *train));
            messages.extend(shown.iter().map(|shown| json(&shown.message(), false)));
        }
        // No message of the model follows the last observations.
        let last = segment.turns.end.checked_sub(1).and_then(|last| rollout.shown.get(last));
        messages.truncate(messages.len() - last.map_or(0, Vec::len));
        Self { messages, n_context }
    }
}

/// A message as JSON. Only assistant messages have the flag `train`.
fn json(message: &Message, train: bool) -> String {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut text = ObjectText::new().text("role", role).text("content", &message.content);
    if let Some(reasoning) = message.reasoning.as_deref().filter(|reasoning| !reasoning.trim().is_empty()) {
        text = text.text("reasoning_content", reasoning);
    }
    if !message.tool_calls.is_empty() {
        let calls: Vec<String> = message.tool_calls.iter().map(call).collect();
        text = text.json("tool_calls", &format!("[{}]", calls.join(", ")));
    }
    if let Some(id) = &message.tool_call {
        text = text.text("tool_call_id", id);
    }
    if message.role == Role::Assistant {
        text = text.json("train", if train { "true" } else { "false" });
    }
    text.end()
}

fn call(call: &ToolCall) -> String {
    let function = ObjectText::new()
        .text("name", &sent_name(&call.name))
        .json("arguments", &as_python_writes(sent_arguments(&call.arguments)))
        .end();
    ObjectText::new().text("id", &call.id).text("type", "function").json("function", &function).end()
}
