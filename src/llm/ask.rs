//! Structured replies: parsed, checked, and requested once more if they are invalid.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    CallError, CallSite, ChatMessage, ChatRequest, Finish, JsonMode, ModelRole, Models, Reply, ResponseFormat,
};

/// Maximum number of places at which JSON is searched for. A text with more is prose with braces.
const MAX_STARTS: usize = 64;

/// A request that got no valid structured reply.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Call(#[from] CallError),
    /// Neither the first reply nor the second one was valid.
    #[error(
        "the model of role `{role}` gave no usable `{wanted}`, even when asked again: {message}\nhint: set `json` of its endpoint if the server can be held to a schema, or raise the role's `max_tokens`"
    )]
    Unusable {
        role: ModelRole,
        /// Name of the type.
        wanted: String,
        message: String,
        /// The second reply.
        reply: Box<Reply>,
    },
}

/// The reply to `request` as a `T`.
pub async fn ask<T: DeserializeOwned + JsonSchema>(
    models: &Models,
    site: &CallSite,
    request: &ChatRequest,
) -> Result<T, AskError> {
    ask_checked(models, site, request, |_: &T| Ok(())).await
}

/// The reply to `request` as a `T` that `check` accepts.
///
/// Servers that support it are sent the type's schema. For others `request` must describe the form.
/// An invalid reply is sent back once with its problem, at the stage `<stage>/corrected` of the
/// site.
pub async fn ask_checked<T: DeserializeOwned + JsonSchema>(
    models: &Models,
    site: &CallSite,
    request: &ChatRequest,
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<T, AskError> {
    let schema = schemars::schema_for!(T).to_value();
    let (_, endpoint) = models.settings(site.role)?;
    let mut request = request.clone();
    request.response_format = match endpoint.json {
        JsonMode::Schema => {
            let name = T::schema_name().chars().filter(char::is_ascii_alphanumeric).collect();
            Some(ResponseFormat::JsonSchema { name, schema: schema.clone() })
        }
        JsonMode::Object => Some(ResponseFormat::JsonObject),
        JsonMode::None => None,
    };
    let reply = models.call(site, &request).await?;
    let message = match read(&reply, &check) {
        Ok(value) => return Ok(value),
        Err(message) => message,
    };
    // Without the reasoning and tool calls of the first reply: they could mislead the model, or be
    // refused.
    request.messages.push(ChatMessage::assistant(reply.message.content));
    request.messages.push(ChatMessage::user(correction(&message, &schema)));
    let site = CallSite { stage: format!("{}/corrected", site.stage), ..site.clone() };
    let reply = models.call(&site, &request).await?;
    read(&reply, &check).map_err(|message| AskError::Unusable {
        role: site.role,
        wanted: T::schema_name().into_owned(),
        message,
        reply: Box::new(reply),
    })
}

fn correction(message: &str, schema: &Value) -> String {
    format!(
        "Your reply could not be used: {message}.\nReply again with nothing but JSON that fits this schema:\n{schema}"
    )
}

fn read<T: DeserializeOwned>(reply: &Reply, check: impl Fn(&T) -> Result<(), String>) -> Result<T, String> {
    let cut = match reply.finish {
        Finish::Length => " (it was cut off: be shorter)",
        Finish::Stop | Finish::ToolCalls | Finish::ContentFilter | Finish::Other(_) => "",
    };
    let value = json_in(&reply.message.content).map_err(|error| format!("{error}{cut}"))?;
    let value = serde_json::from_value(value).map_err(|error| error.to_string())?;
    check(&value)?;
    Ok(value)
}

/// The JSON in a model's text: the whole text, the content of a fence, or the first object or list
/// that can be read.
fn json_in(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let whole = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let fenced = text.split("```").skip(1).step_by(2).find_map(|block| {
        let block = block.strip_prefix("json").or_else(|| block.strip_prefix("JSON")).unwrap_or(block);
        serde_json::from_str(block.trim()).ok()
    });
    if let Some(value) = fenced {
        return Ok(value);
    }
    let starts = text.match_indices(['{', '[']).take(MAX_STARTS);
    let found = starts
        .map(|(at, _)| &text[at..])
        .find_map(|rest| serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok());
    found.ok_or_else(|| match text {
        "" => "it is empty".to_owned(),
        _ => format!("it holds no JSON ({whole})"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found() {
        for (text, expected) in [
            ("{\"a\":1}", Some(json!({"a": 1}))),
            ("  [1, 2]\n", Some(json!([1, 2]))),
            ("Here you are:\n```json\n{\"a\": 2}\n```\nDone.", Some(json!({"a": 2}))),
            ("```\n{\"a\": 3}\n```", Some(json!({"a": 3}))),
            ("```bash\nls\n```\nthen ```json\n{\"a\":4}```", Some(json!({"a": 4}))),
            ("I think {this} is it: {\"a\": {\"b\": []}} as asked", Some(json!({"a": {"b": []}}))),
            ("{\"a\": \"}{\"} trailing", Some(json!({"a": "}{"}))),
            ("{\"a\": 1", None),
            ("no JSON at all", None),
            ("", None),
        ] {
            assert_eq!(json_in(text).ok(), expected, "{text}");
        }
    }
}
