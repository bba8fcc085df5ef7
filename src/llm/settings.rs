//! `termsmith.toml`: endpoints, and the model of each role.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ModelRole;
use super::budget::Price;

/// The settings of all models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Version of this format.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// Servers, by a name of your choice.
    #[serde(default)]
    pub endpoints: BTreeMap<String, EndpointSettings>,
    /// Models, by role.
    #[serde(default)]
    pub roles: BTreeMap<ModelRole, RoleSettings>,
}

impl Settings {
    /// The version of the format that this build reads.
    pub const VERSION: u32 = 1;
}

/// A server of models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointSettings {
    /// URL of the server, usually ending in `/v1`. The path of the protocol is appended to it, e.g.
    /// `/chat/completions`.
    pub base_url: String,
    /// The protocol of the server.
    #[serde(default)]
    pub api: Api,
    /// Name of the environment variable with the key. Without it, no key is sent.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Maximum requests per minute.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Maximum tokens per minute, of input and output together.
    #[serde(default)]
    pub tokens_per_minute: Option<u64>,
    /// Maximum concurrent requests.
    #[serde(default = "default_concurrency")]
    pub concurrency: u32,
    /// Maximum seconds of a request, from connecting to the last byte.
    #[serde(default = "default_timeout_sec")]
    pub timeout_sec: f64,
    /// How the server is made to reply in JSON.
    #[serde(default)]
    pub json: JsonMode,
    /// US dollars per 1M input tokens.
    #[serde(default)]
    pub usd_per_1m_input_tokens: Option<f64>,
    /// US dollars per 1M output tokens.
    #[serde(default)]
    pub usd_per_1m_output_tokens: Option<f64>,
    /// Tokens of the context window, for prompt and reply together.
    #[serde(default)]
    pub max_context: Option<u64>,
    /// The server's name for the limit on a reply's tokens.
    #[serde(default)]
    pub max_tokens_key: MaxTokensKey,
    /// Send the reasoning of earlier turns back, as `reasoning_content`. Some models need it
    /// between tool calls, and others refuse it.
    #[serde(default)]
    pub return_reasoning: bool,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI's chat completions. Nearly every server has them.
    #[default]
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Messages,
}

impl Api {
    /// The name in `termsmith.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }
}

/// How a server is made to reply in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JsonMode {
    /// `response_format` of type `json_schema`.
    Schema,
    /// `response_format` of type `json_object`.
    Object,
    /// Not at all. The JSON is searched for in the reply.
    #[default]
    None,
}

/// The two names of the limit on a reply's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensKey {
    /// Nearly every server accepts it.
    #[default]
    MaxTokens,
    /// OpenAI's reasoning models need it.
    MaxCompletionTokens,
}

impl MaxTokensKey {
    /// The key in a request's body.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// A model and how it samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleSettings {
    /// Name of an endpoint in this file.
    pub endpoint: String,
    /// The server's name for the model.
    pub model: String,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Maximum tokens of a reply, with its reasoning. The budget reserves them for each call.
    pub max_tokens: u32,
    /// Maximum tokens of a reply for which an agent with a loop of its own asks, if more than
    /// `max_tokens`.
    #[serde(default)]
    pub max_tokens_limit: Option<u32>,
    /// Makes sampling repeatable, if the server supports it. The seed of each call is derived from
    /// this one.
    #[serde(default)]
    pub seed: Option<u64>,
    /// US dollars per 1M input tokens, if the model's price is not the endpoint's.
    #[serde(default)]
    pub usd_per_1m_input_tokens: Option<f64>,
    /// US dollars per 1M output tokens, if the model's price is not the endpoint's.
    #[serde(default)]
    pub usd_per_1m_output_tokens: Option<f64>,
    /// For the role `sampler`: how the model is made to write a user's request.
    #[serde(default)]
    pub sampling: Sampling,
    /// Further parameters for this server. They are sent as they are.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// How a model is made to write a user's request (Magpie, arXiv:2406.08464; LiteCoder-Terminal,
/// §3.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "lowercase", deny_unknown_fields)]
pub enum Sampling {
    /// A chat. Its prompt asks for the request. Every endpoint supports it.
    #[default]
    Chat,
    /// The same chat, with the first words of the reply given. The endpoint must continue a last
    /// message of the assistant. Some need a parameter in `extra` for that, e.g. vLLM's
    /// `continue_final_message`.
    Prefill {
        /// The first words of the reply.
        begin: String,
    },
    /// `/completions` continues the model's own chat template after the start of the user's turn.
    /// So the model writes the user's turn.
    Prefix {
        /// The template, with `{system}` in the place of the system prompt.
        template: String,
        /// Texts that end a turn.
        stop: Vec<String>,
    },
}

impl Sampling {
    /// The method's name in `termsmith.toml`.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Prefill { .. } => "prefill",
            Self::Prefix { .. } => "prefix",
        }
    }
}

/// A chat template has this in the place of the system prompt.
pub const SYSTEM_PLACE: &str = "{system}";

impl RoleSettings {
    /// US dollars per 1M input tokens and per 1M output tokens at `endpoint`. `None` if the file
    /// has no price.
    pub fn usd_per_1m_tokens(&self, endpoint: &EndpointSettings) -> Option<(f64, f64)> {
        let input = self.usd_per_1m_input_tokens.or(endpoint.usd_per_1m_input_tokens)?;
        let output = self.usd_per_1m_output_tokens.or(endpoint.usd_per_1m_output_tokens)?;
        Some((input, output))
    }

    pub(super) fn price(&self, endpoint: &EndpointSettings) -> Option<Price> {
        self.usd_per_1m_tokens(endpoint).map(|(input, output)| Price::per_1m(input, output))
    }
}

/// Servers batch requests. Eight keep a small one busy, and no provider's limit is below that.
fn default_concurrency() -> u32 {
    8
}

/// Ten minutes: a slow model takes several for a long reply.
fn default_timeout_sec() -> f64 {
    600.0
}
