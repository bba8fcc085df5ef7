//! A request to a model, before an endpoint and its settings are known.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    pub role: ChatRole,
    /// The text, byte for byte.
    pub content: String,
    /// Thoughts of a reasoning model before `content`, if the server returns them apart.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    /// What the endpoint wants back with `reasoning`, e.g. Anthropic's signature.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signature: Option<String>,
    /// Calls of tools in an assistant's message.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tool_calls: Vec<ToolCall>,
    /// The tool call that a tool's message answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call_id: Option<String>,
    /// The agent says that the tool call failed.
    #[serde(skip_serializing_if = "is_false", default)]
    pub tool_failed: bool,
    /// Images in the message, in the order of their places.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub images: Vec<Image>,
}

/// An image in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Its place: the number of bytes of `content` before it.
    pub at: usize,
    /// A `data:` URL, or an address.
    pub url: String,
}

impl ChatMessage {
    /// A message with text only.
    pub fn text(role: ChatRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning: None,
            signature: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_failed: false,
            images: Vec::new(),
        }
    }

    /// A system prompt.
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(ChatRole::System, content)
    }

    /// A user's turn.
    pub fn user(content: impl Into<String>) -> Self {
        Self::text(ChatRole::User, content)
    }

    /// An assistant's turn.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(ChatRole::Assistant, content)
    }

    /// The result of the tool call `id`.
    pub fn tool(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id.into()), ..Self::text(ChatRole::Tool, content) }
    }
}

/// A model's call of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them. They should be a JSON object, but may be malformed.
    pub arguments: String,
}

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// The form that a reply must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON that fits this schema.
    JsonSchema { name: String, schema: Value },
}

/// A request without the fields from the role's settings: model, sampling and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChatRequest {
    pub messages: Vec<ChatMessage>,
    /// A text to continue, in place of messages (`/completions`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    pub tools: Vec<Tool>,
    /// The model must not call tools (`tool_choice: none`).
    #[serde(skip_serializing_if = "is_false")]
    pub no_tool_calls: bool,
    pub response_format: Option<ResponseFormat>,
    /// Stop sequences: the reply ends before any of these texts.
    pub stop: Vec<String>,
    /// Maximum tokens of the reply, if not the role's `max_tokens`. The role bounds it.
    pub max_tokens: Option<u32>,
    /// Ask for log-probabilities of the reply's tokens.
    pub logprobs: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl ChatRequest {
    /// A request with messages only.
    pub fn of(messages: Vec<ChatMessage>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// A request to continue `prompt` up to one of the texts in `stop`.
    pub fn continuation(prompt: String, stop: Vec<String>) -> Self {
        Self { prompt: Some(prompt), stop, ..Self::default() }
    }
}
