//! Replies of models.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ChatMessage, Drift};
use crate::model::Key;

/// A model's reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Key of the committed reply.
    pub key: Key,
    /// The model's message, byte for byte.
    pub message: ChatMessage,
    pub finish: Finish,
    /// `None` if the server reports no usage.
    pub usage: Option<Usage>,
    /// Token ids of the prompt, if the server returns them.
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Token ids of the reply, if the server returns them.
    pub completion_token_ids: Option<Vec<u32>>,
    /// An entry for each token of the reply, if the server returns them.
    pub logprobs: Option<Vec<TokenLogprob>>,
    /// The server's name for the model.
    pub model: String,
    /// The reply is from the journal, so no request was sent.
    pub committed: bool,
    /// Number of requests that this process sent for the reply.
    pub attempts: u32,
    /// Time from the first attempt to the reply, with all waits. `None` if no request was sent.
    pub latency: Option<Duration>,
    /// Time of the request that was answered, up to the last byte. Queues, pauses and failed
    /// requests do not count. Zero if the reply is from a cassette.
    pub served: Duration,
    /// How the request differs from the recorded one, if the reply is from a cassette.
    pub drift: Option<Drift>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The reply is complete, or ended at a stop sequence.
    Stop,
    /// The reply reached `max_tokens` or the end of the context.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// The server withheld the rest of the reply.
    ContentFilter,
    /// Any other reason, in the server's word. Empty if it gives none.
    Other(String),
}

impl Finish {
    /// Reads the words of common servers.
    pub(super) fn of(word: Option<&str>) -> Self {
        match word.unwrap_or_default() {
            "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => Self::Stop,
            "length" | "max_tokens" | "model_context_window_exceeded" => Self::Length,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            "content_filter" | "refusal" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Tokens of the prompt and of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// With the tokens of reasoning.
    pub completion_tokens: u64,
}

/// A token of a reply and its log-probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    pub token: String,
    /// Natural logarithm.
    pub logprob: f64,
    /// The bytes of the token. They need not be UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<Vec<u8>>,
}
