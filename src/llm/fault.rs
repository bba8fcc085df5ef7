//! What a request came to: a reply, a fault that may pass, or a refusal that will not.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::Usage;
use super::response::{Replied, Response, usage_of};
use super::retry::retry_after;
use super::transport::{Exchange, Lost};

/// Characters of a server's message that are repeated.
const MAX_MESSAGE: usize = 300;

/// Why an attempt brought no reply, though another may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection.
    Connect(String),
    /// No whole response within this time.
    TimedOut(Duration),
    /// The connection ended in the middle.
    Broken(String),
    /// A status that may pass.
    Status { status: u16, message: String },
    /// Not JSON, or cut off; how the body begins.
    NotJson(String),
    /// JSON, but no chat completion.
    Shape(String),
    /// A chat completion without a reply.
    NoChoices,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(why) => write!(f, "no connection: {why}"),
            Self::TimedOut(after) => write!(f, "no whole response within {} s", after.as_secs_f64()),
            Self::Broken(why) => write!(f, "the connection broke off: {why}"),
            Self::Status { status, message } => write!(f, "status {status}: {message}"),
            Self::NotJson(start) => write!(f, "the response is not JSON: {start}"),
            Self::Shape(why) => write!(f, "the response is no chat completion: {why}"),
            Self::NoChoices => f.write_str("the response has no choices"),
        }
    }
}

/// What is to be paid for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bill {
    /// The server did not take the request.
    Nothing,
    /// What it says.
    Counted(Usage),
    /// The server may have done all the work, and nobody saw the bill.
    Unseen,
}

/// A refusal that another attempt would meet again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    ContextLength,
    ContentFilter,
    Auth,
    Other,
}

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Replied(Box<Replied>),
    Retryable { fault: Fault, wait: Option<Duration>, bill: Bill },
    Final { refusal: Refusal, status: u16, message: String, bill: Bill },
}

impl Outcome {
    pub(super) fn bill(&self) -> Bill {
        match self {
            Self::Replied(said) => said.usage.map_or(Bill::Unseen, Bill::Counted),
            Self::Retryable { bill, .. } | Self::Final { bill, .. } => *bill,
        }
    }

    /// In words; `None` for a reply.
    pub(super) fn complaint(&self) -> Option<String> {
        match self {
            Self::Replied(_) => None,
            Self::Retryable { fault, .. } => Some(fault.to_string()),
            Self::Final { status, message, .. } => Some(format!("status {status}: {message}")),
        }
    }
}

/// Reads an exchange.
pub(super) fn outcome(exchange: &Exchange, now: SystemTime) -> Outcome {
    let Exchange { status, body, .. } = exchange;
    let bill = match usage_of(body) {
        Some(usage) => Bill::Counted(usage),
        None if is_unpaid(*status) => Bill::Nothing,
        None => Bill::Unseen,
    };
    if !(200..300).contains(status) {
        return refused(exchange, *status, bill, now);
    }
    let json: Value = match serde_json::from_str(body) {
        Ok(json) => json,
        Err(_) => return Outcome::Retryable { fault: Fault::NotJson(clip(body)), wait: None, bill },
    };
    // Routers answer 200 and put their upstream's error inside.
    if let Some(error) = json.get("error").filter(|error| !error.is_null() && json.get("choices").is_none()) {
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        // Without a status of its own such an error is the upstream's failure.
        return refused(exchange, code.filter(|code| *code >= 400).unwrap_or(502), bill, now);
    }
    let response: Response = match serde_json::from_value(json) {
        Ok(response) => response,
        Err(error) => {
            return Outcome::Retryable { fault: Fault::Shape(clip(&error.to_string())), wait: None, bill };
        }
    };
    match response.said() {
        Some(said) => Outcome::Replied(Box::new(said)),
        None => Outcome::Retryable { fault: Fault::NoChoices, wait: None, bill },
    }
}

/// An attempt that brought no response.
pub(super) fn lost(lost: Lost) -> Outcome {
    let (fault, bill) = match lost {
        Lost::Connect(why) => (Fault::Connect(clip(&why)), Bill::Nothing),
        Lost::TimedOut(after) => (Fault::TimedOut(after), Bill::Unseen),
        Lost::Broken(why) => (Fault::Broken(clip(&why)), Bill::Unseen),
    };
    Outcome::Retryable { fault, wait: None, bill }
}

fn refused(exchange: &Exchange, status: u16, bill: Bill, now: SystemTime) -> Outcome {
    let error = Complaint::read(&exchange.body);
    let message = error.message.clone();
    let refusal = if error.is_context_length() {
        Refusal::ContextLength
    } else if error.is_content_filter() {
        Refusal::ContentFilter
    } else if matches!(status, 401 | 403) {
        Refusal::Auth
    } else if is_passing(status) && !error.is_quota() {
        let asked = exchange.retry_after.as_deref();
        let wait = asked.and_then(|asked| retry_after(asked, exchange.date.as_deref(), now));
        return Outcome::Retryable { fault: Fault::Status { status, message }, wait, bill };
    } else {
        Refusal::Other
    };
    Outcome::Final { refusal, status, message, bill }
}

/// Statuses that another attempt may not meet.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// Statuses that no server bills: it refused before it did anything. Not 408 and 409, nor 5xx, nor 499, by which gateways
/// also mean that the model behind them was too slow.
fn is_unpaid(status: u16) -> bool {
    matches!(status, 300..=499) && !matches!(status, 408 | 409 | 499)
}

/// A server's error.
#[derive(Debug)]
struct Complaint {
    message: String,
    /// `code`, `type` and message in one, lower case.
    words: String,
}

impl Complaint {
    /// Reads the shapes in use: `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, `{"message"}`, `{"detail"}`, or
    /// anything else as text.
    fn read(body: &str) -> Self {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(&json);
        let field = |key: &str| error.get(key).map(plain).unwrap_or_default();
        let message = [error.as_str().unwrap_or_default().to_owned(), field("message"), field("detail")]
            .into_iter()
            .find(|message| !message.is_empty())
            .unwrap_or_else(|| body.to_owned());
        let inner = error.pointer("/innererror/code").map(plain).unwrap_or_default();
        let words =
            [&field("code"), &field("type"), &inner, &message].map(|word| word.to_lowercase()).join("\n");
        Self { message: clip(&message), words }
    }

    fn has(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.words.contains(phrase))
    }

    fn is_context_length(&self) -> bool {
        self.has(&[
            "context_length_exceeded",           // OpenAI
            "maximum context length",            // OpenAI, vLLM
            "model's context length",            // SGLang
            "exceed_context_size",               // llama.cpp
            "exceeds the available context",     // llama.cpp
            "context window",                    // Anthropic, Ollama, LM Studio
            "prompt is too long",                // Anthropic
            "longer than the maximum model len", // vLLM
            "input is too long",                 // Bedrock
        ])
    }

    fn is_content_filter(&self) -> bool {
        self.has(&[
            "content_filter",               // Azure
            "responsibleaipolicyviolation", // Azure
            "content management policy",    // Azure
            "content_policy_violation",     // OpenAI
            "data_inspection_failed",       // Alibaba
            "invalid_prompt",               // OpenAI's reasoning models
        ])
    }

    /// Money, not speed: a 429 that no waiting ends.
    fn is_quota(&self) -> bool {
        self.has(&["insufficient_quota", "billing_hard_limit", "credit balance is too low"])
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The beginning of a text, on one line.
fn clip(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(MAX_MESSAGE) {
        words.truncate(end);
        words.push('…');
    }
    if words.is_empty() { "(empty)".to_owned() } else { words }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
