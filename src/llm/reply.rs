//! Replies of models.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ChatMessage, Drift};
use crate::model::Key;

/// A model's reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Where the reply is committed.
    pub key: Key,
    /// The model's message, byte for byte.
    pub message: ChatMessage,
    pub finish: Finish,
    /// `None` if the server does not report it.
    pub usage: Option<Usage>,
    /// Token ids of the rendered prompt, if the server returns them.
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Token ids of the reply, if the server returns them.
    pub completion_token_ids: Option<Vec<u32>>,
    /// One entry per token of the reply, if the server returns them.
    pub logprobs: Option<Vec<TokenLogprob>>,
    /// The server's name of the model.
    pub model: String,
    /// The reply came from the journal: nothing was sent.
    pub committed: bool,
    /// Number of requests that were sent for this reply.
    pub attempts: u32,
    /// From the first attempt to the reply, waiting included; `None` if no request was sent.
    pub latency: Option<Duration>,
    /// From sending the request that was answered to the last byte of its answer. Queues, pauses and requests that failed are not
    /// included; zero if a cassette answered.
    pub served: Duration,
    /// How the request differs from the recorded one, when a cassette answered.
    pub drift: Option<Drift>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The reply is complete, or a stop sequence was reached.
    Stop,
    /// `max_tokens` or the end of the context was reached.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// The server withheld the rest of the reply.
    ContentFilter,
    /// Any other reason, as the server spells it; empty if it gives none.
    Other(String),
}

impl Finish {
    /// Parses the spellings of common servers.
    pub(super) fn of(word: Option<&str>) -> Self {
        match word.unwrap_or_default() {
            "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => Self::Stop,
            "length" | "max_tokens" => Self::Length,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Number of prompt and reply tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// Reasoning included.
    pub completion_tokens: u64,
}

/// A token of a reply and its log-probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    pub token: String,
    /// Natural logarithm.
    pub logprob: f64,
    /// The token's bytes, which need not be UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<Vec<u8>>,
}
