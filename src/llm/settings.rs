//! `termsmith.toml`: endpoints, and the model of each role.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ModelRole;
use super::budget::Price;

/// The whole file.
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
    /// The version that this build reads.
    pub const VERSION: u32 = 1;
}

/// An OpenAI-compatible server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointSettings {
    /// The URL to which `/chat/completions` is appended, usually ending in `/v1`.
    pub base_url: String,
    /// Name of the environment variable that holds the key. Absent: the server needs no key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Maximum requests in any minute.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Maximum tokens in any minute, input and output.
    #[serde(default)]
    pub tokens_per_minute: Option<u64>,
    /// Maximum concurrent requests.
    #[serde(default = "default_concurrency")]
    pub concurrency: u32,
    /// Seconds that one request may take, from connecting to the last byte.
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
    /// Size of the context window in tokens, prompt and reply.
    #[serde(default)]
    pub max_context: Option<u64>,
    /// The server's name for the limit on a reply's tokens.
    #[serde(default)]
    pub max_tokens_key: MaxTokensKey,
    /// Send the reasoning of earlier turns back, as `reasoning_content`. Some models need it between tool calls, others reject it.
    #[serde(default)]
    pub return_reasoning: bool,
}

/// How a server is made to reply in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JsonMode {
    /// `response_format` of type `json_schema`.
    Schema,
    /// `response_format` of type `json_object`.
    Object,
    /// Not constrained: JSON is searched for in the reply.
    #[default]
    None,
}

/// The two names of one parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensKey {
    /// Accepted by nearly every server.
    #[default]
    MaxTokens,
    /// Required by OpenAI's reasoning models.
    MaxCompletionTokens,
}

impl MaxTokensKey {
    /// The key in a request.
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
    /// The server's name of the model.
    pub model: String,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Tokens of one reply, reasoning included. The budget reserves that many for each call.
    pub max_tokens: u32,
    /// Makes sampling repeatable where the server supports it: the seed of each call is derived from this one.
    #[serde(default)]
    pub seed: Option<u64>,
    /// US dollars per 1M input tokens, if this model's price differs from the endpoint's.
    #[serde(default)]
    pub usd_per_1m_input_tokens: Option<f64>,
    /// US dollars per 1M output tokens, likewise.
    #[serde(default)]
    pub usd_per_1m_output_tokens: Option<f64>,
    /// For the role `sampler`: how the model is made to write a user's request.
    #[serde(default)]
    pub sampling: Sampling,
    /// Parameters that are passed through verbatim, for extensions of this server.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// How a model is made to write what a user asks for (Magpie, arXiv:2406.08464; LiteCoder-Terminal, §3.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "lowercase", deny_unknown_fields)]
pub enum Sampling {
    /// A chat whose prompt asks for the request. Every endpoint has it.
    #[default]
    Chat,
    /// The same chat, with the first words of the assistant's reply given. The endpoint must continue a last message of the assistant; some
    /// need parameters for that, such as vLLM's `continue_final_message`, in `extra`.
    Prefill {
        /// The first words.
        begin: String,
    },
    /// The model's own chat template up to the user's turn, continued by `/completions`: the model writes the user's turn itself.
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

/// The place of the system prompt in a chat template.
pub const SYSTEM_PLACE: &str = "{system}";

impl RoleSettings {
    /// US dollars per 1M input and per 1M output tokens at `endpoint`; `None` if the file states no price.
    pub fn usd_per_1m_tokens(&self, endpoint: &EndpointSettings) -> Option<(f64, f64)> {
        let input = self.usd_per_1m_input_tokens.or(endpoint.usd_per_1m_input_tokens)?;
        let output = self.usd_per_1m_output_tokens.or(endpoint.usd_per_1m_output_tokens)?;
        Some((input, output))
    }

    pub(super) fn price(&self, endpoint: &EndpointSettings) -> Option<Price> {
        self.usd_per_1m_tokens(endpoint).map(|(input, output)| Price::per_1m(input, output))
    }
}

/// Model servers batch; eight concurrent requests keep a small one busy and are below every provider's limit.
fn default_concurrency() -> u32 {
    8
}

/// Ten minutes: a long reasoned reply of a slow model takes several.
fn default_timeout_sec() -> f64 {
    600.0
}
