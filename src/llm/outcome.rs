//! The outcome of an attempt: a reply, an error after which another attempt may succeed, or a final
//! refusal.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::Usage;
use super::response::{ParsedReply, read_reply, usage_of};
use super::retry::retry_after;
use super::server_error::ServerError;
use super::transport::{Exchange, TransportError};
use crate::model::squeeze;

/// Maximum number of characters of a server's message in an error.
const MAX_MESSAGE: usize = 300;

/// Why an attempt got no reply. Another attempt may get one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptError {
    /// There was no connection.
    Connect(String),
    /// No complete response came within this time.
    TimedOut(Duration),
    /// The connection ended before the response did.
    Disconnected(String),
    /// A status after which another attempt may succeed.
    Status { status: u16, message: String },
    /// The body is no JSON, or is cut off. The text is its start.
    NotJson(String),
    /// The body is JSON, but no reply in a known protocol.
    WrongShape(String),
    /// A chat completion without a reply.
    NoChoices,
}

impl AttemptError {
    /// The kind in a word, for logs. It has no text of the server.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::TimedOut(_) => "timed_out",
            Self::Disconnected(_) => "disconnected",
            Self::Status { .. } => "status",
            Self::NotJson(_) => "not_json",
            Self::WrongShape(_) => "wrong_shape",
            Self::NoChoices => "no_choices",
        }
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(why) => write!(f, "no connection: {why}"),
            Self::TimedOut(after) => write!(f, "no complete response within {} s", after.as_secs_f64()),
            Self::Disconnected(why) => write!(f, "the connection ended early: {why}"),
            Self::Status { status, message } => write!(f, "status {status}: {message}"),
            Self::NotJson(start) => write!(f, "the response is not JSON: {start}"),
            Self::WrongShape(why) => write!(f, "the response is not a chat completion: {why}"),
            Self::NoChoices => f.write_str("the response has no choices"),
        }
    }
}

/// The usage that is charged for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsageCharge {
    /// None: the server did not accept the request.
    None,
    /// The server reported it.
    Reported(Usage),
    /// Unknown. The server may have done all the work, so the upper bound is charged.
    Unknown,
}

/// Why a server refuses a request. It would refuse another attempt too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    ContextLength,
    ContentFilter,
    Auth,
    Other,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    Reply(Box<ParsedReply>),
    Retryable { error: AttemptError, wait: Option<Duration>, charge: UsageCharge },
    Final { refusal: Refusal, status: u16, message: String, charge: UsageCharge },
}

impl AttemptOutcome {
    pub(super) fn charge(&self) -> UsageCharge {
        match self {
            Self::Reply(reply) => reply.usage.map_or(UsageCharge::Unknown, UsageCharge::Reported),
            Self::Retryable { charge, .. } | Self::Final { charge, .. } => *charge,
        }
    }

    /// The failure in words. `None` for a reply.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Reply(_) => None,
            Self::Retryable { error, .. } => Some(error.to_string()),
            Self::Final { status, message, .. } => Some(format!("status {status}: {message}")),
        }
    }
}

/// Classifies a response.
pub(super) fn outcome(exchange: &Exchange, now: SystemTime) -> AttemptOutcome {
    let Exchange { status, body, .. } = exchange;
    let charge = match usage_of(body) {
        Some(usage) => UsageCharge::Reported(usage),
        None if is_never_billed(*status) => UsageCharge::None,
        None => UsageCharge::Unknown,
    };
    if !(200..300).contains(status) {
        return refused(exchange, *status, charge, now);
    }
    let json: Value = match serde_json::from_str(body) {
        Ok(json) => json,
        Err(_) => {
            return AttemptOutcome::Retryable {
                error: AttemptError::NotJson(clip(&exchange.redact(body))),
                wait: None,
                charge,
            };
        }
    };
    // Routers answer 200, and have the error of their upstream in the body.
    if let Some(error) = json.get("error").filter(|error| !error.is_null() && json.get("choices").is_none()) {
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        // An error without a status counts as a failure of the upstream.
        return refused(exchange, code.filter(|code| *code >= 400).unwrap_or(502), charge, now);
    }
    let error = match read_reply(body) {
        Ok(Some(reply)) => return AttemptOutcome::Reply(Box::new(reply)),
        Ok(None) => AttemptError::NoChoices,
        Err(error) => AttemptError::WrongShape(clip(&exchange.redact(&error.to_string()))),
    };
    AttemptOutcome::Retryable { error, wait: None, charge }
}

/// The outcome of an attempt without a complete response.
pub(super) fn no_response(error: TransportError) -> AttemptOutcome {
    let (error, charge) = match error {
        TransportError::Connect(why) => (AttemptError::Connect(clip(&why)), UsageCharge::None),
        TransportError::TimedOut(after) => (AttemptError::TimedOut(after), UsageCharge::Unknown),
        TransportError::Disconnected(why) => (AttemptError::Disconnected(clip(&why)), UsageCharge::Unknown),
        TransportError::NotText(start) => (AttemptError::NotJson(clip(&start)), UsageCharge::Unknown),
    };
    AttemptOutcome::Retryable { error, wait: None, charge }
}

fn refused(exchange: &Exchange, status: u16, charge: UsageCharge, now: SystemTime) -> AttemptOutcome {
    let error = ServerError::read(&exchange.body);
    let message = clip(&exchange.redact(&error.message));
    let refusal = if error.is_context_length() {
        Refusal::ContextLength
    } else if error.is_content_filter() {
        Refusal::ContentFilter
    } else if matches!(status, 401 | 403) {
        Refusal::Auth
    } else if is_retryable(status) && !error.is_quota() {
        let asked = exchange.retry_after.as_deref();
        let wait = asked.and_then(|asked| retry_after(asked, exchange.date.as_deref(), now));
        return AttemptOutcome::Retryable { error: AttemptError::Status { status, message }, wait, charge };
    } else {
        Refusal::Other
    };
    AttemptOutcome::Final { refusal, status, message, charge }
}

/// Statuses after which another attempt may succeed.
fn is_retryable(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// Statuses of refusals before any work. No server bills them. 408, 409 and 5xx are not among them.
/// Nor is 499: gateways also send it if the model behind them was too slow.
fn is_never_billed(status: u16) -> bool {
    matches!(status, 300..=499) && !matches!(status, 408 | 409 | 499)
}

/// The start of a text, on one line.
fn clip(text: &str) -> String {
    let mut words = squeeze(text);
    if let Some((end, _)) = words.char_indices().nth(MAX_MESSAGE) {
        words.truncate(end);
        words.push('…');
    }
    if words.is_empty() { "(empty)".to_owned() } else { words }
}

#[cfg(test)]
mod tests;
