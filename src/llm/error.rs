//! Why a call got no reply.

use super::cassette::CassetteError;
use super::{Api, AttemptError, BudgetExceeded, CallSite, ModelRole};
use crate::model::Key;
use crate::store::StoreError;

/// A call without a reply. Nothing is stored, so the same call can be made again.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The next request could exceed the budget, so it was not sent.
    #[error("the budget is reached: {0}")]
    Budget(BudgetExceeded),
    /// The conversation is longer than the model's context. Each further turn would be refused too.
    #[error(
        "endpoint `{endpoint}` refused a request that is longer than the model's context: {message}\nhint: give the role a model with a longer context, or lower its `max_tokens`"
    )]
    ContextLength { endpoint: String, message: String },
    /// The server does not answer this prompt.
    #[error(
        "endpoint `{endpoint}` refused a prompt by its content filter: {message}\nhint: it would refuse the same prompt again; change the prompt or the model"
    )]
    ContentFilter { endpoint: String, message: String },
    /// The server refuses the key.
    #[error("endpoint `{endpoint}` answered {status}: {message}\nhint: {}", key_hint(variable.as_deref()))]
    Auth { endpoint: String, status: u16, message: String, variable: Option<String> },
    /// The key is missing or malformed.
    #[error(
        "endpoint `{endpoint}` needs a key, and the environment variable `{variable}` {fault}\nhint: export {variable}=…, or remove `api_key_env` where the server wants no key"
    )]
    Key { endpoint: String, variable: String, fault: &'static str },
    /// Any other refusal. Another attempt would be refused too.
    #[error("endpoint `{endpoint}` answered {status}: {message}{}", status_hint(*status))]
    Refused { endpoint: String, status: u16, message: String },
    /// All attempts failed.
    #[error(
        "endpoint `{endpoint}` gave no reply in {attempts} attempts; the last: {last}\nhint: see whether the server is up; the same command continues where it stopped"
    )]
    Exhausted { endpoint: String, attempts: u32, last: AttemptError },
    /// The settings have no model for the role.
    #[error("no model is set for the role `{role}`\nhint: add [roles.{role}] to termsmith.toml")]
    NoRole { role: ModelRole },
    /// The endpoint's protocol cannot express the request.
    #[error(
        "the API `{}` of endpoint `{endpoint}` {what}, which this request needs\nhint: give the role an endpoint with `api = \"chat\"`",
        api.as_str()
    )]
    Unsupported { endpoint: String, api: Api, what: &'static str },
    /// A budget in US dollars needs prices.
    #[error(
        "the role `{role}` has no price, so --max-usd cannot be enforced\nhint: set usd_per_1m_input_tokens and usd_per_1m_output_tokens of endpoint `{endpoint}`; 0 where it costs nothing"
    )]
    NoPrice { role: ModelRole, endpoint: String },
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal has a record that this version cannot read.
    #[error(
        "the committed call {key} holds no reply that this termsmith can read\nhint: delete its file below `store/call` to have the call made, and paid, again"
    )]
    Record { key: Key },
    /// The run is stopping, so no further request is sent.
    #[error(
        "the call at {0} was not made, because the run is stopping\nhint: the same command continues where it stopped"
    )]
    Cancelled(Box<CallSite>),
    /// The program ended while the reply was being committed.
    #[error("a reply came while the program was ending\nhint: the same command continues where it stopped")]
    ShuttingDown,
    /// This machine cannot make an HTTP client.
    #[error(
        "failed to set up TLS for model endpoints: {0}\nhint: install the system's CA certificates (package ca-certificates)"
    )]
    Client(String),
}

fn key_hint(variable: Option<&str>) -> String {
    match variable {
        Some(variable) => format!("check the key in `{variable}`, and that it may use this model"),
        None => "set `api_key_env` of the endpoint to the variable that holds a key".to_owned(),
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        402 | 429 => "\nhint: the account's quota is used up; waiting does not help",
        404 => "\nhint: check the role's `model` and the endpoint's `base_url`, which usually ends in `/v1`",
        300..=399 => "\nhint: redirects are not followed; set `base_url` to the server's final address",
        _ => "",
    }
}
