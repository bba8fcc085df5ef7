//! `termsmith.toml`: which endpoints there are, and which model plays which role.

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
    /// Servers, by a name of your own.
    #[serde(default)]
    pub endpoints: BTreeMap<String, EndpointSettings>,
    /// Models, by what they are used for.
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
    /// Where `/chat/completions` lies below, usually ending in `/v1`.
    pub base_url: String,
    /// Name of the environment variable that holds the key. Absent: the server wants none.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Requests in any minute, at most.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Tokens in any minute, at most: read and written.
    #[serde(default)]
    pub tokens_per_minute: Option<u64>,
    /// Requests at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: u32,
    /// Seconds that one request may take, from connecting to the last byte.
    #[serde(default = "default_timeout_sec")]
    pub timeout_sec: f64,
    /// How the server can be held to JSON.
    #[serde(default)]
    pub json: JsonMode,
    /// US dollars a million tokens read.
    #[serde(default)]
    pub usd_per_million_input: Option<f64>,
    /// US dollars a million tokens written.
    #[serde(default)]
    pub usd_per_million_output: Option<f64>,
    /// Tokens of the context window, prompt and reply.
    #[serde(default)]
    pub max_context: Option<u64>,
    /// What the server calls the bound on a reply's tokens.
    #[serde(default)]
    pub max_tokens_key: MaxTokensKey,
    /// Send the reasoning of earlier turns back, as `reasoning_content`. Some models need it between tool calls, others refuse it.
    #[serde(default)]
    pub return_reasoning: bool,
}

/// How a server can be held to JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JsonMode {
    /// `response_format` of type `json_schema`.
    Schema,
    /// `response_format` of type `json_object`.
    Object,
    /// Not at all: the reply is searched for JSON.
    #[default]
    None,
}

/// The two names of one parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensKey {
    /// What nearly every server takes.
    #[default]
    MaxTokens,
    /// What OpenAI's reasoning models insist on.
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
    /// Name of an endpoint of this file.
    pub endpoint: String,
    /// The model, as the server calls it.
    pub model: String,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Tokens of one reply, reasoning included. The budget reserves as many for each call.
    pub max_tokens: u32,
    /// Makes the server's sampling repeatable, if it can: each call site gets a seed of its own from this one.
    #[serde(default)]
    pub seed: Option<u64>,
    /// US dollars a million tokens read, where this model's price is not the endpoint's.
    #[serde(default)]
    pub usd_per_million_input: Option<f64>,
    /// US dollars a million tokens written, likewise.
    #[serde(default)]
    pub usd_per_million_output: Option<f64>,
    /// Passed through verbatim, for what only this server knows.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl RoleSettings {
    /// The price of this model at `endpoint`. `None` where the file has none.
    pub(super) fn price(&self, endpoint: &EndpointSettings) -> Option<Price> {
        let input = self.usd_per_million_input.or(endpoint.usd_per_million_input)?;
        let output = self.usd_per_million_output.or(endpoint.usd_per_million_output)?;
        Some(Price::per_million(input, output))
    }
}

/// Model servers batch; eight at once keep a small one busy and are below every provider's limit.
fn default_concurrency() -> u32 {
    8
}

/// Ten minutes: a long reasoned reply of a slow model takes several.
fn default_timeout_sec() -> f64 {
    600.0
}
