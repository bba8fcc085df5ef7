//! OpenAI's chat completions.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Dialect, Form, Operation, Parsed, Refusal, RefusalKind, Voice};
use crate::agent::installed::http::{self, Request};
use crate::llm::protocol::content::{Content, Gathered};
use crate::llm::{ChatMessage, ChatRequest, ChatRole, Finish, Reply, Tool, ToolCall};

pub(super) static DIALECT: Dialect = Dialect {
    name: "chat",
    operation: |path| path.ends_with("/chat/completions").then_some(Operation::Generate),
    read,
    counted: |tokens| json!({ "tokens": tokens }).to_string(),
    refusal: |refusal| (refusal.kind.status(), error(refusal).to_string()),
};

/// The fields of a request that are used. Model and sampling are the role's, whatever the client
/// sends.
#[derive(Deserialize)]
struct Sent {
    messages: Vec<SentMessage>,
    #[serde(default)]
    tools: Option<Vec<SentTool>>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct SentMessage {
    role: String,
    #[serde(default)]
    content: Content<Part>,
    /// The name of DeepSeek, and the one of OpenRouter.
    #[serde(default, alias = "reasoning")]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<SentCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    image_url: Option<ImageUrl>,
}

#[derive(Deserialize)]
struct ImageUrl {
    url: String,
}

#[derive(Deserialize)]
struct SentCall {
    id: String,
    function: SentFunction,
}

#[derive(Deserialize)]
struct SentFunction {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct SentTool {
    /// Tools of other types have none.
    #[serde(default)]
    function: Option<FunctionDefinition>,
}

#[derive(Deserialize)]
struct FunctionDefinition {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

fn read(request: &Request) -> Result<Parsed, String> {
    let sent: Sent = serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
    let tools = sent.tools.into_iter().flatten().filter_map(|tool| tool.function);
    let request = ChatRequest {
        messages: sent.messages.into_iter().map(message).collect::<Result<_, _>>()?,
        tools: tools
            .map(|tool| Tool {
                name: tool.name,
                description: tool.description.unwrap_or_default(),
                parameters: tool.parameters.unwrap_or_else(|| json!({})),
            })
            .collect(),
        no_tool_calls: sent.tool_choice == "none",
        stop: match sent.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop],
            Some(Stop::Several(stops)) => stops,
        },
        max_tokens: sent.max_tokens.or(sent.max_completion_tokens),
        ..ChatRequest::default()
    };
    let usage = sent.stream_options.is_some_and(|options| options.include_usage);
    let usage = if usage { UsageEvent::Sent } else { UsageEvent::LeftOut };
    Ok(Parsed { request, form: Form::of(sent.stream), voice: Box::new(Chat { usage }) })
}

fn message(sent: SentMessage) -> Result<ChatMessage, String> {
    let role = match sent.role.as_str() {
        "system" | "developer" => ChatRole::System,
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        "tool" => ChatRole::Tool,
        other => return Err(format!("messages of role `{other}` are not supported")),
    };
    let calls = sent.tool_calls.into_iter().flatten();
    Ok(content(sent.content)?.into_message(ChatMessage {
        reasoning: sent.reasoning_content,
        tool_calls: calls
            .map(|call| ToolCall {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            })
            .collect(),
        tool_call_id: sent.tool_call_id,
        ..ChatMessage::text(role, "")
    }))
}

/// The texts of parts are joined without a separator, as servers do it.
fn content(content: Content<Part>) -> Result<Gathered, String> {
    let mut all = Gathered::default();
    match content {
        Content::Text(text) => all.text(&text, ""),
        Content::Parts(parts) => {
            for part in parts {
                match (part.text.or(part.refusal), part.image_url) {
                    (Some(text), _) => all.text(&text, ""),
                    (None, Some(ImageUrl { url })) => all.image(url),
                    (None, None) => return Err(format!("parts of type `{}` are not supported", part.kind)),
                }
            }
        }
    }
    Ok(all)
}

/// Writes a chat completion.
#[derive(Debug)]
struct Chat {
    usage: UsageEvent,
}

/// Whether a stream has an event with the usage (`stream_options`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageEvent {
    Sent,
    LeftOut,
}

impl Voice for Chat {
    fn whole(&mut self, reply: &Reply) -> String {
        let mut message = json!({ "role": "assistant", "content": reply.message.content });
        if let Some(reasoning) = &reply.message.reasoning {
            message["reasoning_content"] = json!(reasoning);
        }
        if !reply.message.tool_calls.is_empty() {
            let calls = reply.message.tool_calls.iter().map(|call| {
                let function = json!({ "name": call.name, "arguments": call.arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            });
            message["tool_calls"] = calls.collect();
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish(reply) });
        envelope(reply, "chat.completion", &json!([choice]), &usage(reply)).to_string()
    }

    fn events(&mut self, reply: &Reply) -> String {
        let message = &reply.message;
        let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
        deltas.extend(message.reasoning.iter().map(|text| json!({ "reasoning_content": text })));
        if !message.content.is_empty() {
            deltas.push(json!({ "content": message.content }));
        }
        for (index, call) in message.tool_calls.iter().enumerate() {
            let begin = json!({ "name": call.name, "arguments": "" });
            let begin = json!({ "index": index, "id": call.id, "type": "function", "function": begin });
            deltas.push(json!({ "tool_calls": [begin] }));
            let rest = json!({ "index": index, "function": { "arguments": call.arguments } });
            deltas.push(json!({ "tool_calls": [rest] }));
        }
        let choices = deltas
            .into_iter()
            .map(|delta| json!([{ "index": 0, "delta": delta, "finish_reason": null }]))
            .chain([json!([{ "index": 0, "delta": {}, "finish_reason": finish(reply) }])])
            .map(|choices| (choices, Value::Null))
            .chain((self.usage == UsageEvent::Sent).then(|| (json!([]), usage(reply))));
        let events = choices.map(|(choices, usage)| {
            http::event(None, &envelope(reply, "chat.completion.chunk", &choices, &usage).to_string())
        });
        events.chain([http::event(None, "[DONE]")]).collect()
    }

    fn alive(&mut self) -> String {
        http::COMMENT.to_owned()
    }

    fn refused(&mut self, refusal: &Refusal) -> String {
        http::event(None, &error(refusal).to_string())
    }
}

fn envelope(reply: &Reply, object: &str, choices: &Value, usage: &Value) -> Value {
    let id = format!("chatcmpl-{}", reply.key.as_str().get(..16).unwrap_or_default());
    json!({
        "id": id, "object": object, "created": 0, "model": reply.model, "choices": choices, "usage": usage,
    })
}

fn finish(reply: &Reply) -> &str {
    match &reply.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    }
}

fn usage(reply: &Reply) -> Value {
    json!(reply.usage.map(|usage| {
        let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }))
}

/// An error in the form that OpenAI's clients expect.
pub(super) fn error(refusal: &Refusal) -> Value {
    let code = match refusal.kind {
        RefusalKind::ContextLength => json!("context_length_exceeded"),
        _ => Value::Null,
    };
    json!({ "error": { "message": refusal.message, "type": "invalid_request_error", "code": code } })
}
