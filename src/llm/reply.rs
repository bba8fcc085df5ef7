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
    /// `None` where the server does not count.
    pub usage: Option<Usage>,
    /// Token ids of the rendered prompt, where the server returns them.
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Token ids of the reply, where the server returns them.
    pub completion_token_ids: Option<Vec<u32>>,
    /// One entry a token of the reply, where the server returns them.
    pub logprobs: Option<Vec<TokenLogprob>>,
    /// The model that answered, as the server calls it.
    pub model: String,
    /// The reply came from the journal: nothing was sent.
    pub committed: bool,
    /// Requests that were sent for this reply; 0 where none was.
    pub attempts: u32,
    /// From the first attempt to the reply, waiting included; `None` where nothing was sent.
    pub latency: Option<Duration>,
    /// How the request differs from the recorded one, when a cassette answered.
    pub drift: Option<Drift>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done, or came to a stop text.
    Stop,
    /// It came to `max_tokens` or to the end of the context.
    Length,
    /// It calls tools.
    ToolCalls,
    /// The server withheld the rest.
    ContentFilter,
    /// The server's own word; empty where it gave none.
    Other(String),
}

impl Finish {
    /// Reads the words of the servers in use.
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

/// Tokens that were read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// Reasoning included.
    pub completion_tokens: u64,
}

/// A token of a reply and how likely it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    pub token: String,
    /// Natural logarithm.
    pub logprob: f64,
    /// The token's bytes, which need not be UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<Vec<u8>>,
}
