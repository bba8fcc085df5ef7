//! Requests that need no model: lists of models, and counts of tokens.

use serde_json::json;

use crate::agent::installed::http::Request;

/// Bytes of a token, as a rule of thumb. Agents only decide by it when they shorten their history.
const BYTES_PER_TOKEN: u64 = 4;

/// An estimate of the tokens of a request.
pub(super) fn tokens(body: &[u8]) -> u64 {
    (body.len() as u64).div_ceil(BYTES_PER_TOKEN)
}

/// The response to `GET …/models` or `GET …/models/NAME`, if the request is one.
pub(super) fn models(request: &Request, model: &str) -> Option<String> {
    let (before, name) = request.path.rsplit_once("/models")?;
    let one = match name.strip_prefix('/') {
        Some(_) => true,
        None if name.is_empty() => false,
        None => return None,
    };
    let form = if request.header("anthropic-version").is_some() {
        Form::Anthropic
    } else if before.ends_with("/v1beta") {
        Form::Gemini
    } else {
        Form::OpenAi
    };
    let entry = match form {
        Form::OpenAi => json!({ "id": model, "object": "model", "created": 0, "owned_by": "termsmith" }),
        Form::Anthropic => json!({
            "type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z",
        }),
        Form::Gemini => json!({
            "name": format!("models/{model}"), "displayName": model,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }),
    };
    let body = match (one, form) {
        (true, _) => entry,
        // Codex wants a list of its own form. An empty one makes it use what it knows.
        (false, Form::OpenAi) => json!({ "object": "list", "data": [entry], "models": [] }),
        (false, Form::Anthropic) => {
            json!({ "data": [entry], "has_more": false, "first_id": model, "last_id": model })
        }
        (false, Form::Gemini) => json!({ "models": [entry] }),
    };
    Some(body.to_string())
}

/// Whose list of models is asked for.
#[derive(Clone, Copy)]
enum Form {
    OpenAi,
    Anthropic,
    Gemini,
}
