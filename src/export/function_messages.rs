//! Conversations with function calls as chat templates take them: messages with `tool_calls`, and
//! results of role `tool`.
//!
//! A message is JSON, because the arguments of functions have no common type. Keys without a value
//! are left out: some templates print them, or fail. Messages stand as they were sent, and none are
//! joined.

use super::json_text::{ObjectText, as_python_writes};
use super::messages::Branch;
use crate::llm::{sent_arguments, sent_name};
use crate::model::{Message, Role, Rollout, Sender, Shown, ToolCall, ToolDefinition, Turn};

/// Whether the model could call functions in this rollout.
pub(super) fn has_functions(rollout: &Rollout) -> bool {
    !rollout.record.tools.is_empty()
}

/// The functions that the model could call, as they were declared in its requests. `None` if there
/// were none: templates treat an empty list as functions.
pub(super) fn definitions(rollout: &Rollout) -> Option<Vec<String>> {
    let tools = &rollout.record.tools;
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
    /// The messages of `branch`. `train` has a flag for each of its turns.
    pub(super) fn of(rollout: &Rollout, branch: &Branch, train: &[bool]) -> Self {
        let mut messages = context(rollout, branch.segment);
        let n_context = messages.len();
        let turns = rollout.record.turns.iter().zip(&rollout.shown);
        let turns = turns.skip(branch.turns.start).take(branch.turns.len());
        for ((turn, shown), train) in turns.zip(train) {
            messages.push(assistant(turn, *train));
            messages.extend(shown.iter().map(observation));
        }
        // No message of the model follows the last observations.
        let last = branch.turns.end.checked_sub(1).and_then(|last| rollout.shown.get(last));
        messages.truncate(messages.len() - last.map_or(0, Vec::len));
        Self { messages, n_context }
    }
}

/// The messages that a model read before its first answer in a segment.
fn context(rollout: &Rollout, segment: usize) -> Vec<String> {
    rollout.opening(segment).iter().map(given).collect()
}

/// A message of the context.
fn given(message: &Message) -> String {
    match message.role {
        Role::System => self::message("system", &message.content),
        Role::User => self::message("user", &message.content),
        // Every assistant message has a flag, so that readers need not know the context.
        Role::Assistant => spoken(message, false),
        Role::Tool => result(message.tool_call.as_deref().unwrap_or_default(), &message.content),
    }
}

fn assistant(turn: &Turn, train: bool) -> String {
    spoken(&Message::of(turn), train)
}

fn spoken(message: &Message, train: bool) -> String {
    let mut text = begun("assistant", &message.content);
    if let Some(reasoning) = message.reasoning.as_deref().filter(|reasoning| !reasoning.trim().is_empty()) {
        text = text.text("reasoning_content", reasoning);
    }
    if !message.tool_calls.is_empty() {
        let calls: Vec<String> = message.tool_calls.iter().map(call).collect();
        text = text.json("tool_calls", &format!("[{}]", calls.join(", ")));
    }
    text.json("train", if train { "true" } else { "false" }).end()
}

fn call(call: &ToolCall) -> String {
    let function = ObjectText::new()
        .text("name", &sent_name(&call.name))
        .json("arguments", &as_python_writes(sent_arguments(&call.arguments)))
        .end();
    ObjectText::new().text("id", &call.id).text("type", "function").json("function", &function).end()
}

fn observation(shown: &Shown) -> String {
    match (&shown.tool_call, shown.sender) {
        (Some(id), _) => result(id, &shown.content),
        (None, Sender::User) => message("user", &shown.content),
        (None, Sender::System) => message("system", &shown.content),
    }
}

fn result(id: &str, content: &str) -> String {
    begun("tool", content).text("tool_call_id", id).end()
}

fn message(role: &str, content: &str) -> String {
    begun(role, content).end()
}

fn begun(role: &str, content: &str) -> ObjectText {
    ObjectText::new().text("role", role).text("content", content)
}
