//! A call: the request, and the meaning of its reply or refusal for the caller.

use std::time::Duration;

use serde_json::Value;

use super::budget::Price;
use super::endpoint::Endpoint;
use super::outcome::Refusal;
use super::response::ParsedReply;
use super::{CallError, CallSite, Drift, Reply, Usage};
use crate::model::Key;

/// A call that is ready to be sent.
pub(super) struct PreparedCall<'m> {
    pub(super) site: &'m CallSite,
    pub(super) endpoint_name: &'m str,
    pub(super) endpoint: &'m Endpoint,
    pub(super) body: Value,
    pub(super) bound: Usage,
    pub(super) price: Price,
    pub(super) key: Key,
}

/// How a reply was obtained.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) committed: bool,
    pub(super) attempts: u32,
    pub(super) latency: Option<Duration>,
    /// Time of the request that was answered.
    pub(super) served: Duration,
    pub(super) drift: Option<Drift>,
}

impl PreparedCall<'_> {
    pub(super) fn reply(&self, reply: ParsedReply, origin: Origin) -> Reply {
        let requested = || self.body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        Reply {
            key: self.key.clone(),
            message: reply.message,
            finish: reply.finish,
            usage: reply.usage,
            prompt_token_ids: reply.prompt_token_ids,
            completion_token_ids: reply.completion_token_ids,
            logprobs: reply.logprobs,
            model: reply.model.filter(|model| !model.is_empty()).unwrap_or_else(requested),
            committed: origin.committed,
            attempts: origin.attempts,
            latency: origin.latency,
            served: origin.served,
            drift: origin.drift,
        }
    }

    pub(super) fn cancelled(&self) -> CallError {
        CallError::Cancelled(Box::new(self.site.clone()))
    }

    pub(super) fn refused(&self, refusal: Refusal, status: u16, message: String) -> CallError {
        let endpoint = self.endpoint_name.to_owned();
        match refusal {
            Refusal::ContextLength => CallError::ContextLength { endpoint, message },
            Refusal::ContentFilter => CallError::ContentFilter { endpoint, message },
            Refusal::Auth => {
                let variable = self.endpoint.settings.api_key_env.clone();
                CallError::Auth { endpoint, status, message, variable }
            }
            Refusal::Other => CallError::Refused { endpoint, status, message },
        }
    }
}
