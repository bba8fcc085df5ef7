//! The body of a request: the caller's request, and the role's settings.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::protocol::content::{ContentPart, parts};
use super::settings::{Api, EndpointSettings, RoleSettings};
use super::{CallSite, ChatMessage, ChatRequest, ChatRole, ResponseFormat, Usage, request_forms};
use crate::model::{Seed, canonical_json};

/// Tokens that a chat template adds, e.g. a system prompt or a preamble for tools. The longest in
/// use (Llama 3.1 and Hermes with tools) add about 300.
const TEMPLATE_TOKENS: u64 = 512;
/// Tokens around a message, e.g. of its role. Templates in use add up to ten.
const MESSAGE_TOKENS: u64 = 16;
/// Tokens of an image. The most in use is 48,169, of GPT-4o mini for an image of eight tiles.
const IMAGE_TOKENS: u64 = 50_000;
/// All servers take seeds of 32 bits with a sign.
const SEED_BITS: u32 = 31;

/// The key of a text to continue. A body with it is for `/completions`.
pub(super) const PROMPT: &str = "prompt";

/// The body of `request` at `site`. Its keys are sorted, so equal requests have equal bytes.
pub(super) fn body(
    site: &CallSite,
    request: &ChatRequest,
    role: &RoleSettings,
    endpoint: &EndpointSettings,
) -> Value {
    match endpoint.api {
        Api::Chat => chat_body(site, request, role, endpoint),
        Api::Responses => request_forms::responses_body(request, role),
        Api::Messages => request_forms::messages_body(request, role),
    }
}

fn chat_body(
    site: &CallSite,
    request: &ChatRequest,
    role: &RoleSettings,
    endpoint: &EndpointSettings,
) -> Value {
    let mut body = role.extra.clone();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("model", json!(role.model));
    match &request.prompt {
        Some(prompt) => set(PROMPT, json!(prompt)),
        None => {
            let messages = request.messages.iter().map(|message| write_message(message, endpoint));
            set("messages", messages.collect())
        }
    };
    set(endpoint.max_tokens_key.as_str(), json!(max_tokens(request, role)));
    if let Some(temperature) = role.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(top_p) = role.top_p {
        set("top_p", json!(top_p));
    }
    if let Some(seed) = role.seed {
        set("seed", json!(site_seed(seed, site)));
    }
    if !request.stop.is_empty() {
        set("stop", json!(request.stop));
    }
    if request.logprobs {
        set("logprobs", json!(true));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| json!({ "type": "function", "function": tool }));
        set("tools", tools.collect());
        if request.no_tool_calls {
            set("tool_choice", json!("none"));
        }
    }
    match &request.response_format {
        None => {}
        Some(ResponseFormat::JsonObject) => {
            set("response_format", json!({ "type": "json_object" }));
        }
        Some(ResponseFormat::JsonSchema { name, schema }) => {
            let schema = json!({ "name": name, "schema": schema });
            set("response_format", json!({ "type": "json_schema", "json_schema": schema }));
        }
    }
    Value::Object(body)
}

/// An upper bound of the call's tokens. A byte-level vocabulary has at most one token for each
/// byte. Tools and schemas count twice, since templates print them with indentation. The bytes of
/// an image do not count, since no model reads them as text.
pub(super) fn bound(body: &Value, request: &ChatRequest, role: &RoleSettings) -> Usage {
    let length = |value: Option<&Value>| {
        value.map_or(0, |value| canonical_json(value).map_or(0, |text| text.len() as u64))
    };
    let printed = length(Some(body)) + length(body.get("tools")) + length(body.get("response_format"));
    let images = request.messages.iter().flat_map(|message| &message.images);
    let (count, bytes) =
        images.fold((0, 0), |(count, bytes), image| (count + 1, bytes + image.url.len() as u64));
    let overhead = TEMPLATE_TOKENS + MESSAGE_TOKENS * request.messages.len() as u64 + IMAGE_TOKENS * count;
    let prompt_tokens = printed.saturating_sub(bytes) + overhead;
    Usage { prompt_tokens, completion_tokens: max_tokens(request, role).into() }
}

pub(super) fn max_tokens(request: &ChatRequest, role: &RoleSettings) -> u32 {
    let limit = role.max_tokens_limit.unwrap_or(role.max_tokens);
    request.max_tokens.map_or(role.max_tokens, |asked| asked.min(limit))
}

/// Two sites must be able to get different replies to the same conversation.
fn site_seed(seed: u64, site: &CallSite) -> u64 {
    let numbers = [site.round, site.step, site.sample].map(|number| number.to_string());
    let [round, step, sample] = &numbers;
    let derived = Seed(seed).derive(&[site.role.as_str(), &site.unit, &site.stage, round, step, sample]);
    derived.0 & ((1 << SEED_BITS) - 1)
}

pub(super) fn write_message(message: &ChatMessage, endpoint: &EndpointSettings) -> Value {
    // The protocol has no place for a signature, nor for a tool's failure. Its text tells of that.
    let ChatMessage { role, content, reasoning, tool_calls, tool_call_id, images, .. } = message;
    let mut out = Map::new();
    out.insert("role".to_owned(), json!(role));
    // Some servers refuse an empty text beside tool calls, but all take a missing one.
    let silent = content.is_empty() && *role == ChatRole::Assistant && !tool_calls.is_empty();
    let content = match (silent, images.is_empty()) {
        (true, true) => Value::Null,
        (false, true) => json!(content),
        (_, false) => parts(message).map(chat_part).collect(),
    };
    out.insert("content".to_owned(), content);
    if let Some(reasoning) = reasoning.as_ref().filter(|_| endpoint.return_reasoning) {
        out.insert("reasoning_content".to_owned(), json!(reasoning));
    }
    if !tool_calls.is_empty() {
        let calls = tool_calls.iter().map(|call| {
            let function =
                json!({ "name": sent_name(&call.name), "arguments": sent_arguments(&call.arguments) });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        out.insert("tool_calls".to_owned(), calls.collect());
    }
    if let Some(id) = tool_call_id {
        out.insert("tool_call_id".to_owned(), json!(id));
    }
    Value::Object(out)
}

fn chat_part(part: ContentPart<'_>) -> Value {
    match part {
        ContentPart::Text(text) => json!({ "type": "text", "text": text }),
        ContentPart::Image(url) => json!({ "type": "image_url", "image_url": { "url": url } }),
    }
}

/// Maximum number of characters in a function's name that servers accept.
const MAX_NAME: usize = 64;

/// The arguments of an earlier call, as they are sent back. If they are no JSON object, it is `{}`
/// instead: servers parse them, and refuse the whole history (vLLM: status 400 or 500). E.g.
/// `max_tokens` can cut arguments off.
pub fn sent_arguments(arguments: &str) -> &str {
    if serde_json::from_str::<Map<String, Value>>(arguments).is_ok() { arguments } else { "{}" }
}

/// The name of an earlier call, as it is sent back. A model may call a function that does not
/// exist, and OpenAI refuses a history with other characters in a name.
pub fn sent_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    let name: String = name.chars().take(MAX_NAME).map(|c| if is_allowed(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "_".to_owned() } else { name })
}
