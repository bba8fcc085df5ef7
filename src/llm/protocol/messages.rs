//! Messages in the form of Anthropic's Messages API.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::content::{
    Arguments, Content, ContentPart, Gathered, Thoughts, Unsigned, data_of, data_url, parts, signed,
    signed_blocks,
};
use crate::llm::{ChatMessage, ChatRole, ToolCall};

/// Between two blocks of text. The API shows them to the model one after the other.
const BETWEEN_TEXTS: &str = "\n";
/// Between two blocks of a system prompt.
const BETWEEN_SYSTEM_TEXTS: &str = "\n\n";

/// A message of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    role: Role,
    #[serde(borrow, default)]
    content: Content<Block<'a>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// A beta of the API: a system message in the middle of a conversation.
    System,
    User,
    Assistant,
}

/// A block of a message's content. Fields of all kinds of blocks.
#[derive(Debug, Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    #[serde(borrow, default)]
    content: Content<Block<'a>>,
    is_error: Option<bool>,
    source: Option<Source>,
    tool_name: Option<String>,
}

/// Where the data of an image or document is.
#[derive(Debug, Deserialize)]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
}

impl Block<'_> {
    /// Whether it is a text that begins with `start`.
    pub(crate) fn begins_with(&self, start: &str) -> bool {
        self.text.as_deref().is_some_and(|text| text.starts_with(start))
    }
}

/// The tools that results of searches name.
pub(crate) fn named_tools(messages: &[Message<'_>]) -> BTreeSet<String> {
    let blocks = messages.iter().flat_map(|message| message.content.parts());
    let inner = blocks.flat_map(|block| block.content.parts());
    inner.filter_map(|block| block.tool_name.clone()).collect()
}

/// A block that is written.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Written<'a> {
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    Text {
        text: &'a str,
    },
    Image {
        source: Value,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Arguments<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Written<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The system prompt of a request.
pub(crate) fn read_system(system: Content<Block<'_>>) -> Result<ChatMessage, String> {
    match system {
        Content::Text(text) => Ok(ChatMessage::system(text)),
        Content::Parts(blocks) => {
            let mut all = Gathered::default();
            for block in blocks {
                gather(&mut all, block, BETWEEN_SYSTEM_TEXTS)?;
            }
            Ok(all.into_message(ChatMessage::system("")))
        }
    }
}

/// The messages of a request. A user's message with results of tools is several of ours.
pub(crate) fn read_messages(messages: Vec<Message<'_>>) -> Result<Vec<ChatMessage>, String> {
    let mut out = Vec::with_capacity(messages.len());
    for Message { role, content } in messages {
        match (role, content) {
            (Role::System, content) => out.push(read_system(content)?),
            (Role::User, Content::Text(text)) => out.push(ChatMessage::user(text)),
            (Role::User, Content::Parts(blocks)) => read_user(&mut out, blocks)?,
            (Role::Assistant, Content::Text(text)) => out.push(ChatMessage::assistant(text)),
            (Role::Assistant, Content::Parts(blocks)) => out.push(read_assistant(blocks)?),
        }
    }
    Ok(out)
}

fn read_user(out: &mut Vec<ChatMessage>, blocks: Vec<Block<'_>>) -> Result<(), String> {
    let mut said = Gathered::default();
    let is_empty = blocks.is_empty();
    for block in blocks {
        if block.kind != "tool_result" {
            gather(&mut said, block, BETWEEN_TEXTS)?;
            continue;
        }
        if !said.is_empty() {
            out.push(std::mem::take(&mut said).into_message(ChatMessage::user("")));
        }
        let id = block.tool_use_id.ok_or("a block of type `tool_result` has no `tool_use_id`")?;
        let mut shown = Gathered::default();
        match block.content {
            Content::Text(text) => shown.text(&text, BETWEEN_TEXTS),
            Content::Parts(blocks) => {
                for block in blocks {
                    gather(&mut shown, block, BETWEEN_TEXTS)?;
                }
            }
        }
        let result = ChatMessage { tool_failed: block.is_error == Some(true), ..ChatMessage::tool(id, "") };
        out.push(shown.into_message(result));
    }
    if !said.is_empty() || is_empty {
        out.push(said.into_message(ChatMessage::user("")));
    }
    Ok(())
}

/// Adds a block of a user's message, or of a tool's result.
fn gather(all: &mut Gathered, block: Block<'_>, separator: &str) -> Result<(), String> {
    let missing = |field: &str| format!("a block of type `{}` has no `{field}`", block.kind);
    match block.kind.as_str() {
        "text" => all.text(&block.text.ok_or_else(|| missing("text"))?, separator),
        "image" => {
            let source = block.source.ok_or_else(|| missing("source"))?;
            all.image(source.image().ok_or_else(|| missing("source.data"))?);
        }
        // A tool that the model has searched for. The endpoint would show its definition.
        "tool_reference" => {
            let name = block.tool_name.ok_or_else(|| missing("tool_name"))?;
            all.text(&format!("The tool {name} is available now."), separator);
        }
        "document" => match block.source {
            Some(Source { kind, data: Some(text), .. }) if kind == "text" => all.text(&text, separator),
            _ => return Err("of documents, only texts are supported".to_owned()),
        },
        other => return Err(format!("blocks of type `{other}` are not supported here")),
    }
    Ok(())
}

impl Source {
    fn image(self) -> Option<String> {
        match self.kind.as_str() {
            "url" => self.url,
            _ => Some(data_url(&self.media_type?, &self.data?)),
        }
    }
}

/// An assistant's message.
pub(crate) fn read_assistant(blocks: Vec<Block<'_>>) -> Result<ChatMessage, String> {
    let (mut said, mut thoughts) = (Gathered::default(), Thoughts::default());
    let mut tool_calls = Vec::new();
    for block in blocks {
        match block.kind.as_str() {
            "thinking" => {
                let (text, signature) = (block.thinking.unwrap_or_default(), block.signature);
                let whole = json!({ "type": "thinking", "thinking": text, "signature": signature });
                thoughts.add(&text, signature, whole);
            }
            "redacted_thinking" => {
                let whole = json!({ "type": "redacted_thinking", "data": block.data });
                thoughts.add_hidden(whole);
            }
            "tool_use" => tool_calls.push(ToolCall {
                id: block.id.ok_or("a block of type `tool_use` has no `id`")?,
                name: block.name.ok_or("a block of type `tool_use` has no `name`")?,
                arguments: block.input.map_or("{}", RawValue::get).to_owned(),
            }),
            _ => gather(&mut said, block, BETWEEN_TEXTS)?,
        }
    }
    let message = ChatMessage { tool_calls, ..ChatMessage::assistant("") };
    Ok(thoughts.into_message(said.into_message(message)))
}

/// The blocks of an assistant's message. Without any, a client would show nothing.
pub(crate) fn write_assistant(message: &ChatMessage, unsigned: Unsigned) -> Vec<Written<'_>> {
    let mut blocks = Vec::new();
    if let Some((thinking, signature)) = signed(message, unsigned) {
        blocks.push(Written::Thinking { thinking, signature });
    }
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        blocks.push(Written::Text { text: &message.content });
    }
    blocks.extend(message.tool_calls.iter().map(|call| Written::ToolUse {
        id: &call.id,
        name: &call.name,
        input: Arguments(&call.arguments),
    }));
    blocks
}

/// The system prompt and the messages of a request.
pub(crate) fn write_messages(messages: &[ChatMessage]) -> (Option<&str>, Vec<Value>) {
    let (system, rest) = match messages.split_first() {
        Some((first, rest)) if first.role == ChatRole::System => (Some(first.content.as_str()), rest),
        Some(_) | None => (None, messages),
    };
    let mut out = Vec::new();
    // Results of parallel calls must be in one message.
    for group in rest.chunk_by(|one, other| one.role == ChatRole::Tool && other.role == ChatRole::Tool) {
        let Some(message) = group.first() else { continue };
        out.push(match message.role {
            ChatRole::Tool => {
                let results: Vec<_> = group.iter().map(result).collect();
                json!({ "role": "user", "content": results })
            }
            ChatRole::Assistant => json!({ "role": "assistant", "content": history(message) }),
            ChatRole::System => json!({ "role": "system", "content": plain(message) }),
            ChatRole::User => json!({ "role": "user", "content": plain(message) }),
        });
    }
    (system, out)
}

/// An assistant's earlier message. Its signature may stand for several blocks.
fn history(message: &ChatMessage) -> Value {
    let blocks = write_assistant(message, Unsigned::LeftOut);
    match signed_blocks(message) {
        None => json!(blocks),
        Some(signed) => {
            let rest = blocks.iter().filter(|block| !matches!(block, Written::Thinking { .. }));
            signed.into_iter().chain(rest.map(|block| json!(block))).collect()
        }
    }
}

fn result(message: &ChatMessage) -> Written<'_> {
    Written::ToolResult {
        tool_use_id: message.tool_call_id.as_deref().unwrap_or_default(),
        content: parts(message).map(part).collect(),
        is_error: message.tool_failed,
    }
}

fn plain(message: &ChatMessage) -> Value {
    if message.images.is_empty() {
        return json!(message.content);
    }
    json!(parts(message).map(part).collect::<Vec<_>>())
}

fn part(part: ContentPart<'_>) -> Written<'_> {
    match part {
        ContentPart::Text(text) => Written::Text { text },
        ContentPart::Image(url) => Written::Image {
            source: match data_of(url) {
                Some((media_type, data)) => {
                    json!({ "type": "base64", "media_type": media_type, "data": data })
                }
                None => json!({ "type": "url", "url": url }),
            },
        },
    }
}
