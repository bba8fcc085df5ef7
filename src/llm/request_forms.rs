//! The body of a request to a server that has no chat completions.

use serde_json::{Map, Value, json};

use super::protocol::{messages, responses};
use super::request::max_tokens;
use super::settings::{Api, RoleSettings};
use super::{ChatRequest, ResponseFormat};

/// What `request` needs and `api` does not have. A request without it would be another request.
pub(super) fn missing(api: Api, request: &ChatRequest) -> Option<&'static str> {
    match api {
        Api::Responses | Api::Messages if request.prompt.is_some() => Some("continues no text"),
        Api::Responses if !request.stop.is_empty() => Some("has no stop sequences"),
        Api::Messages if request.response_format.is_some() => Some("has no `json` modes"),
        Api::Messages if request.logprobs => Some("has no log-probabilities"),
        Api::Chat | Api::Responses | Api::Messages => None,
    }
}

/// The body for OpenAI's Responses API. Nothing is stored at the server, so encrypted reasoning is
/// asked for and sent back.
pub(super) fn responses_body(request: &ChatRequest, role: &RoleSettings) -> Value {
    let mut body = sampling(role);
    let mut include = vec!["reasoning.encrypted_content"];
    if request.logprobs {
        include.push("message.output_text.logprobs");
    }
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("input", json!(responses::write_items(&request.messages)));
    set("max_output_tokens", json!(max_tokens(request, role)));
    set("store", json!(false));
    set("include", json!(include));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false,
            })
        });
        set("tools", tools.collect());
        if request.no_tool_calls {
            set("tool_choice", json!("none"));
        }
    }
    match &request.response_format {
        None => {}
        Some(ResponseFormat::JsonObject) => {
            set("text", json!({ "format": { "type": "json_object" } }));
        }
        Some(ResponseFormat::JsonSchema { name, schema }) => {
            set("text", json!({ "format": { "type": "json_schema", "name": name, "schema": schema } }));
        }
    }
    Value::Object(body)
}

/// The body for Anthropic's Messages API.
pub(super) fn messages_body(request: &ChatRequest, role: &RoleSettings) -> Value {
    let mut body = sampling(role);
    let (system, messages) = messages::write_messages(&request.messages);
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    if let Some(system) = system.filter(|system| !system.is_empty()) {
        set("system", json!(system));
    }
    set("messages", json!(messages));
    set("max_tokens", json!(max_tokens(request, role)));
    if !request.stop.is_empty() {
        set("stop_sequences", json!(request.stop));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "description": tool.description, "input_schema": tool.parameters,
            })
        });
        set("tools", tools.collect());
        if request.no_tool_calls {
            set("tool_choice", json!({ "type": "none" }));
        }
    }
    Value::Object(body)
}

/// What both protocols call by the same names. Neither has a seed.
fn sampling(role: &RoleSettings) -> Map<String, Value> {
    let mut body = role.extra.clone();
    body.insert("model".to_owned(), json!(role.model));
    for (key, value) in [("temperature", role.temperature), ("top_p", role.top_p)] {
        if let Some(value) = value {
            body.insert(key.to_owned(), json!(value));
        }
    }
    body
}
