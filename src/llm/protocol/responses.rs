//! Messages in the form of OpenAI's Responses API: a flat list of items.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::content::{Content, ContentPart, Gathered, Thoughts, Unsigned, parts, signed, signed_blocks};
use crate::llm::{ChatMessage, ChatRole, ToolCall};

/// Between two parts of a text.
const BETWEEN_TEXTS: &str = "\n";
/// The function by which a call of the tool `local_shell` is recorded.
pub(crate) const LOCAL_SHELL: &str = "local_shell";

/// An item of a request or a reply. Fields of all kinds of items.
#[derive(Debug, Deserialize)]
pub(crate) struct Item {
    /// Messages may have none.
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(default)]
    content: Content<Part>,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
    #[serde(default)]
    output: Content<Part>,
    action: Option<Map<String, Value>>,
    #[serde(default)]
    summary: Content<Part>,
    encrypted_content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<String>,
}

/// The name by which the model calls a tool. A client may call it by a name in a namespace.
pub(crate) type FlatName<'a> = &'a dyn Fn(Option<&str>, &str) -> String;

/// The messages in a list of items. Consecutive items of the assistant are one message.
pub(crate) fn read_items(items: Vec<Item>, flat: FlatName<'_>) -> Result<Vec<ChatMessage>, String> {
    let mut out = Vec::new();
    let mut reply = None;
    for item in items {
        let kind = item.kind.as_deref().unwrap_or("message");
        match (kind, item.role.as_deref()) {
            ("message", Some("assistant"))
            | ("reasoning" | "function_call" | "custom_tool_call" | "local_shell_call", _) => {
                let said = reply.get_or_insert_with(Said::default);
                if said.is_followed_by(kind) {
                    out.push(std::mem::take(said).into_message());
                }
                said.add(item, flat)?;
                continue;
            }
            _ => out.extend(reply.take().map(Said::into_message)),
        }
        out.push(match (kind, item.role.as_deref()) {
            ("message", Some("system" | "developer")) => message(ChatRole::System, item.content)?,
            ("message", Some("user")) => message(ChatRole::User, item.content)?,
            ("function_call_output" | "custom_tool_call_output" | "local_shell_call_output", _) => {
                let id = item
                    .call_id
                    .or(item.id)
                    .ok_or_else(|| format!("an item of type `{kind}` has no `call_id`"))?;
                ChatMessage { tool_call_id: Some(id), ..message(ChatRole::Tool, item.output)? }
            }
            ("message", Some(role)) => return Err(format!("messages of role `{role}` are not supported")),
            (kind, _) => return Err(format!("items of type `{kind}` are not supported")),
        });
    }
    out.extend(reply.map(Said::into_message));
    Ok(out)
}

/// The message in the output of a response.
pub(crate) fn read_output(items: Vec<Item>) -> Result<ChatMessage, String> {
    let mut said = Said::default();
    for item in items {
        match item.kind.as_deref() {
            Some("message" | "reasoning" | "function_call" | "custom_tool_call" | "local_shell_call") => {
                said.add(item, &|_, name| name.to_owned())?;
            }
            other => return Err(format!("items of type `{}` are not supported", other.unwrap_or_default())),
        }
    }
    Ok(said.into_message())
}

/// An assistant's message that is being put together.
#[derive(Debug, Default)]
struct Said {
    text: Option<Gathered>,
    thoughts: Thoughts,
    calls: Vec<ToolCall>,
}

impl Said {
    /// Whether an item of type `kind` belongs to the next reply. A reply is in the order reasoning,
    /// message, calls.
    fn is_followed_by(&self, kind: &str) -> bool {
        match kind {
            "reasoning" => self.text.is_some() || !self.calls.is_empty(),
            "message" => !self.calls.is_empty(),
            _ => false,
        }
    }

    fn add(&mut self, item: Item, flat: FlatName<'_>) -> Result<(), String> {
        let kind = item.kind.as_deref().unwrap_or("message");
        let missing = |field: &str| format!("an item of type `{kind}` has no `{field}`");
        match kind {
            "message" => gather(self.text.get_or_insert_default(), item.content)?,
            "reasoning" => {
                let mut text = Gathered::default();
                let (summary, content) = (texts(item.summary), texts(item.content));
                // The content is the reasoning itself.
                for part in if content.is_empty() { &summary } else { &content } {
                    text.text(part, BETWEEN_TEXTS);
                }
                let summary: Vec<_> =
                    summary.iter().map(|text| json!({ "type": "summary_text", "text": text })).collect();
                let sealed = item.encrypted_content;
                let whole = json!({ "type": "reasoning", "summary": summary, "encrypted_content": sealed });
                self.thoughts.add(&text.text, sealed, whole);
            }
            _ => {
                let id = item.call_id.or(item.id).ok_or_else(|| missing("call_id"))?;
                let name = item.name.as_deref().unwrap_or(LOCAL_SHELL);
                let arguments = match kind {
                    "custom_tool_call" => {
                        json!({ "input": item.input.ok_or_else(|| missing("input"))? }).to_string()
                    }
                    "local_shell_call" => shell_arguments(item.action.unwrap_or_default()),
                    _ => item.arguments.ok_or_else(|| missing("arguments"))?,
                };
                self.calls.push(ToolCall { id, name: flat(item.namespace.as_deref(), name), arguments });
            }
        }
        Ok(())
    }

    fn into_message(self) -> ChatMessage {
        let message = ChatMessage { tool_calls: self.calls, ..ChatMessage::assistant("") };
        self.thoughts.into_message(self.text.unwrap_or_default().into_message(message))
    }
}

/// The arguments of a shell's call, without what every call has.
fn shell_arguments(mut action: Map<String, Value>) -> String {
    action.remove("type");
    if action.get("env").is_some_and(|env| *env == json!({})) {
        action.remove("env");
    }
    Value::Object(action).to_string()
}

fn message(role: ChatRole, content: Content<Part>) -> Result<ChatMessage, String> {
    let mut all = Gathered::default();
    gather(&mut all, content)?;
    Ok(all.into_message(ChatMessage::text(role, "")))
}

fn gather(all: &mut Gathered, content: Content<Part>) -> Result<(), String> {
    let parts = match content {
        Content::Text(text) => {
            all.text(&text, BETWEEN_TEXTS);
            return Ok(());
        }
        Content::Parts(parts) => parts,
    };
    for part in parts {
        match (part.text.or(part.refusal), part.image_url) {
            (Some(text), _) => all.text(&text, BETWEEN_TEXTS),
            (None, Some(url)) => all.image(url),
            (None, None) => return Err(format!("content of type `{}` is not supported", part.kind)),
        }
    }
    Ok(())
}

fn texts(content: Content<Part>) -> Vec<String> {
    match content {
        Content::Text(text) => vec![text],
        Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
    }
}

/// The items of an assistant's message but its calls.
pub(crate) fn write_said(message: &ChatMessage, unsigned: Unsigned) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some((text, sealed)) = signed(message, unsigned) {
        let summary = json!([{ "type": "summary_text", "text": text }]);
        items.push(json!({ "type": "reasoning", "summary": summary, "encrypted_content": sealed }));
    }
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        let text = json!([{ "type": "output_text", "text": message.content, "annotations": [] }]);
        items.push(json!({ "type": "message", "role": "assistant", "content": text }));
    }
    items
}

/// The item of a function's call.
pub(crate) fn write_call(call: &ToolCall) -> Value {
    json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments })
}

/// The items of a request.
pub(crate) fn write_items(messages: &[ChatMessage]) -> Vec<Value> {
    let mut items = Vec::new();
    for message in messages {
        match message.role {
            ChatRole::System => items.push(written("system", message)),
            ChatRole::User => items.push(written("user", message)),
            ChatRole::Tool => {
                let output = if message.images.is_empty() { json!(message.content) } else { input(message) };
                items.push(json!({
                    "type": "function_call_output", "call_id": message.tool_call_id, "output": output,
                }));
            }
            ChatRole::Assistant => {
                let said = write_said(message, Unsigned::LeftOut);
                match signed_blocks(message) {
                    None => items.extend(said),
                    Some(signed) => {
                        items.extend(signed);
                        items.extend(said.into_iter().filter(|item| item["type"] != "reasoning"));
                    }
                }
                items.extend(message.tool_calls.iter().map(write_call));
            }
        }
    }
    items
}

fn written(role: &str, message: &ChatMessage) -> Value {
    json!({ "type": "message", "role": role, "content": input(message) })
}

fn input(message: &ChatMessage) -> Value {
    parts(message)
        .map(|part| match part {
            ContentPart::Text(text) => json!({ "type": "input_text", "text": text }),
            ContentPart::Image(url) => json!({ "type": "input_image", "image_url": url }),
        })
        .collect()
}
