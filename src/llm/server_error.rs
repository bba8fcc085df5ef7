//! The error in the body of a response.
//!
//! Servers quote the request in their messages, and the request has text of the solver. So the
//! cause is read only from the fields `code` and `type`. A context overflow is an exception: vLLM
//! and others name it only in the message. That message must begin with the server's own words.

use serde_json::Value;

/// Codes and types of a request that is longer than the context.
const CONTEXT_LENGTH: &[&str] = &[
    "context_length_exceeded",   // OpenAI, Groq, llama-cpp-python
    "exceed_context_size_error", // llama.cpp
    "context_window_exceeded",   // LiteLLM
];

/// The starts of servers' messages about it. `#` is a number. Case does not matter.
const CONTEXT_LENGTH_MESSAGES: &[&str] = &[
    "this model's maximum context length is #",    // OpenAI, vLLM
    "this model's maximum prompt length is #",     // xAI
    "this endpoint's maximum context length is #", // OpenRouter
    "'max_tokens' or 'max_completion_tokens' is too large: #. this model's", // vLLM
    "max_tokens or max_completion_tokens is too large: #. this model's", // vLLM
    "you passed # input tokens and requested # output tokens.", // vLLM
    "the decoder prompt (length #) is longer than the maximum model length", // vLLM
    "the input (# tokens) is longer than the model's context length", // SGLang
    "requested token count exceeds the model's maximum context length", // SGLang
    "request (# tokens) exceeds the available context size", // llama.cpp
    "the request exceeds the available context size", // llama.cpp
    "context size has been exceeded",              // llama.cpp
    "prompt is too long: # tokens > # maximum",    // Anthropic
    "input length and `max_tokens` exceed context limit: #", // Anthropic
    "your input exceeds the context window of this model", // OpenAI
    "the input token count (#) exceeds the maximum number of tokens", // Gemini
    "input is too long for requested model",       // Bedrock
    "input validation error: `inputs` tokens + `max_new_tokens` must be", // TGI
    "trying to keep the first # tokens when context", // LM Studio
    "litellm.contextwindowexceedederror:",         // LiteLLM
];

/// Codes and types of a content filter's refusal.
const CONTENT_FILTER: &[&str] = &[
    "content_filter",               // Azure
    "responsibleaipolicyviolation", // Azure, in `innererror`
    "content_policy_violation",     // OpenAI
    "invalid_prompt",               // OpenAI's reasoning models
    "data_inspection_failed",       // Alibaba
    "datainspectionfailed",         // Alibaba
];

/// Codes and types of an account without credit. It is a 429 that does not go away.
const QUOTA: &[&str] = &["insufficient_quota", "billing_hard_limit_reached"];

#[derive(Debug)]
pub(super) struct ServerError {
    pub(super) message: String,
    /// `code`, `type` and the `code` of the inner error, in lower case.
    kinds: [String; 3],
}

impl ServerError {
    /// Reads the forms in use: `{"error": {"message", "type", "code"}}`, `{"error": "…"}`,
    /// `{"message"}`, `{"detail"}`. Anything else is text.
    pub(super) fn read(body: &str) -> Self {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(&json);
        let field = |key: &str| error.get(key).map(plain).unwrap_or_default();
        let message = [error.as_str().unwrap_or_default().to_owned(), field("message"), field("detail")]
            .into_iter()
            .find(|message| !message.is_empty())
            .unwrap_or_else(|| body.to_owned());
        let inner = error.pointer("/innererror/code").map(plain).unwrap_or_default();
        let kinds = [field("code"), field("type"), inner].map(|kind| kind.to_lowercase());
        Self { message, kinds }
    }

    pub(super) fn is_context_length(&self) -> bool {
        self.is_one_of(CONTEXT_LENGTH)
            || CONTEXT_LENGTH_MESSAGES.iter().any(|form| begins_as(&self.message, form))
    }

    pub(super) fn is_content_filter(&self) -> bool {
        self.is_one_of(CONTENT_FILTER)
    }

    pub(super) fn is_quota(&self) -> bool {
        self.is_one_of(QUOTA)
    }

    fn is_one_of(&self, kinds: &[&str]) -> bool {
        self.kinds.iter().any(|kind| kinds.contains(&kind.as_str()))
    }
}

/// Whether `message` begins with `form`. `#` is a number.
fn begins_as(message: &str, form: &str) -> bool {
    let mut rest = message.trim_start();
    for (index, part) in form.split('#').enumerate() {
        if index > 0 {
            let text = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            if text.len() == rest.len() {
                return false;
            }
            rest = text;
        }
        match rest.split_at_checked(part.len()) {
            Some((begin, text)) if begin.eq_ignore_ascii_case(part) => rest = text,
            Some(_) | None => return false,
        }
    }
    true
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_begin_as_their_servers_write_them() {
        let check = |message: &str, form: &str, expect: bool| {
            assert_eq!(begins_as(message, form), expect, "{message} {form}");
        };
        check("The input (9 tokens) is longer", "the input (# tokens) is longer", true);
        check(" the input (123 tokens) is longer than", "the input (# tokens) is longer", true);
        check("the input ( tokens) is longer", "the input (# tokens) is longer", false);
        check("'the input (9 tokens) is longer'", "the input (# tokens) is longer", false);
        check("a 1 b 2", "a # b #", true);
        check("a 1 b", "a # b #", false);
        check("é", "a", false);
        check("", "a", false);
    }
}
