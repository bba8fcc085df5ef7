//! Anthropic's Messages API.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Dialect, Form, Operation, Parsed, Refusal, RefusalKind, Voice};
use crate::agent::installed::http::{self, Request};
use crate::llm::protocol::content::{Content, Unsigned};
use crate::llm::protocol::messages::{
    Block, Message, Written, named_tools, read_messages, read_system, write_assistant,
};
use crate::llm::{ChatRequest, Finish, Reply, Tool};

pub(super) static DIALECT: Dialect = Dialect {
    name: "messages",
    operation: |path| match path {
        _ if path.ends_with("/messages") => Some(Operation::Generate),
        _ if path.ends_with("/messages/count_tokens") => Some(Operation::CountTokens),
        _ => None,
    },
    read,
    counted: |tokens| json!({ "input_tokens": tokens }).to_string(),
    refusal: |refusal| (refusal.kind.status(), error(refusal).to_string()),
};

/// Claude Code puts this header into the system prompt. Anthropic's API removes it. A part of it
/// differs in each request.
const BILLING_HEADER: &str = "x-anthropic-billing-header:";

/// The fields of a request that are used.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow, default)]
    system: Content<Block<'a>>,
    #[serde(default)]
    tools: Option<Vec<SentTool>>,
    #[serde(default)]
    tool_choice: Option<Kind>,
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    thinking: Option<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct SentTool {
    name: String,
    #[serde(default)]
    description: Option<String>,
    /// Tools of the server have none. The model cannot call them.
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    defer_loading: Option<bool>,
}

fn read(request: &Request) -> Result<Parsed, String> {
    let sent: Sent<'_> = serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
    let named = named_tools(&sent.messages);
    let mut messages = Vec::new();
    if let Some(system) = without_billing(sent.system) {
        messages.push(read_system(system)?);
    }
    messages.extend(read_messages(sent.messages)?);
    let tools = sent.tools.into_iter().flatten();
    let request = ChatRequest {
        messages,
        tools: tools.filter_map(|sent| tool(sent, &named)).collect(),
        no_tool_calls: sent.tool_choice.is_some_and(|choice| choice.kind == "none"),
        stop: sent.stop_sequences.unwrap_or_default(),
        max_tokens: sent.max_tokens,
        ..ChatRequest::default()
    };
    let thoughts = match sent.thinking {
        Some(Kind { kind }) if kind != "disabled" => Thoughts::Shown,
        Some(_) | None => Thoughts::Hidden,
    };
    Ok(Parsed { request, form: Form::of(sent.stream), voice: Box::new(Messages { thoughts }) })
}

/// The system prompt, if there is one.
fn without_billing(system: Content<Block<'_>>) -> Option<Content<Block<'_>>> {
    match system {
        Content::Text(text) => (!text.is_empty()).then_some(Content::Text(text)),
        Content::Parts(mut blocks) => {
            blocks.retain(|block| !block.begins_with(BILLING_HEADER));
            (!blocks.is_empty()).then_some(Content::Parts(blocks))
        }
    }
}

/// A tool that the model is shown. Deferred ones are shown after a search has named them.
fn tool(sent: SentTool, named: &BTreeSet<String>) -> Option<Tool> {
    let is_deferred = sent.defer_loading == Some(true) && !named.contains(&sent.name);
    let parameters = sent.input_schema.filter(|_| !is_deferred)?;
    Some(Tool { name: sent.name, description: sent.description.unwrap_or_default(), parameters })
}

/// Whether the client asked for thinking blocks. Others do not expect any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thoughts {
    Shown,
    Hidden,
}

/// Writes a message.
#[derive(Debug)]
struct Messages {
    thoughts: Thoughts,
}

/// A message of a reply. Raw arguments keep their order only in typed fields.
#[derive(Serialize)]
struct WrittenMessage<'a> {
    content: Vec<Written<'a>>,
    #[serde(flatten)]
    rest: Value,
}

impl Messages {
    fn blocks<'r>(&self, reply: &'r Reply) -> Vec<Written<'r>> {
        let mut blocks = write_assistant(&reply.message, Unsigned::Marked);
        blocks.retain(|block| self.thoughts == Thoughts::Shown || !matches!(block, Written::Thinking { .. }));
        blocks
    }

    /// The fields of a message but its content.
    fn envelope(reply: &Reply, stop_reason: Option<&str>) -> Value {
        let id = format!("msg_{}", reply.key.as_str().get(..24).unwrap_or_default());
        json!({
            "id": id, "type": "message", "role": "assistant", "model": reply.model,
            "stop_reason": stop_reason, "stop_sequence": null, "usage": usage(reply),
        })
    }
}

impl Voice for Messages {
    fn whole(&mut self, reply: &Reply) -> String {
        let rest = Self::envelope(reply, Some(stop_reason(reply)));
        let message = WrittenMessage { content: self.blocks(reply), rest };
        serde_json::to_string(&message).unwrap_or_default()
    }

    fn events(&mut self, reply: &Reply) -> String {
        let mut out = String::new();
        let mut event = |data: Value| {
            out += &http::event(data["type"].as_str(), &data.to_string());
        };
        let mut message = Self::envelope(reply, None);
        message["content"] = json!([]);
        message["usage"]["output_tokens"] = json!(0);
        event(json!({ "type": "message_start", "message": message }));
        for (index, block) in self.blocks(reply).into_iter().enumerate() {
            let (begin, deltas) = match block {
                Written::Thinking { thinking, signature } => (
                    json!({ "type": "thinking", "thinking": "", "signature": "" }),
                    vec![
                        json!({ "type": "thinking_delta", "thinking": thinking }),
                        json!({ "type": "signature_delta", "signature": signature }),
                    ],
                ),
                Written::Text { text } => (
                    json!({ "type": "text", "text": "" }),
                    vec![json!({ "type": "text_delta", "text": text })],
                ),
                Written::ToolUse { id, name, input } => (
                    json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                    vec![json!({ "type": "input_json_delta", "partial_json": input.text() })],
                ),
                // The model writes none of these.
                Written::Image { .. } | Written::ToolResult { .. } => continue,
            };
            event(json!({ "type": "content_block_start", "index": index, "content_block": begin }));
            for delta in deltas {
                event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            }
            event(json!({ "type": "content_block_stop", "index": index }));
        }
        let delta = json!({ "stop_reason": stop_reason(reply), "stop_sequence": null });
        event(json!({ "type": "message_delta", "delta": delta, "usage": usage(reply) }));
        event(json!({ "type": "message_stop" }));
        out
    }

    fn alive(&mut self) -> String {
        http::event(Some("ping"), r#"{"type":"ping"}"#)
    }

    fn refused(&mut self, refusal: &Refusal) -> String {
        http::event(Some("error"), &error(refusal).to_string())
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match &reply.finish {
        // Some servers say `stop` all the same. Clients run tools only for this reason.
        _ if !reply.message.tool_calls.is_empty() && reply.finish != Finish::Length => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
        Finish::Stop | Finish::ToolCalls | Finish::Other(_) => "end_turn",
    }
}

/// The protocol has no place for an unknown usage.
fn usage(reply: &Reply) -> Value {
    let usage = reply.usage.unwrap_or_default();
    json!({
        "input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    })
}

fn error(refusal: &Refusal) -> Value {
    let (kind, message) = match refusal.kind {
        RefusalKind::Malformed | RefusalKind::Encoding | RefusalKind::Upgrade => {
            ("invalid_request_error", refusal.message.clone())
        }
        // Clients know it by its first words.
        RefusalKind::ContextLength => {
            ("invalid_request_error", format!("prompt is too long: {}", refusal.message))
        }
        RefusalKind::Limit => ("permission_error", refusal.message.clone()),
        RefusalKind::TooLarge => ("request_too_large", refusal.message.clone()),
        RefusalKind::Unsupported => ("not_found_error", refusal.message.clone()),
        RefusalKind::Busy => ("overloaded_error", refusal.message.clone()),
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
