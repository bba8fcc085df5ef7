//! Model endpoints: a client for every server that speaks chat completions, OpenAI's Responses API
//! or Anthropic's Messages API. No reply is paid for twice, and no budget is exceeded.
//!
//! [`Settings`] (`termsmith.toml`) name the endpoint and the model of each [`ModelRole`].
//! [`Models::call`] sends a [`ChatRequest`] for a [`CallSite`]. A reply is committed before it is
//! returned, so a resumed run takes it from the store. This module does not know what a prompt
//! means.

mod ask;
mod budget;
mod cassette;
mod client;
mod clock;
mod drift;
mod endpoint;
mod error;
mod journal;
mod limiter;
mod message;
mod outcome;
mod prepared_call;
pub(crate) mod protocol;
mod reply;
mod request;
mod request_forms;
mod response;
mod retry;
mod secret;
mod server_error;
mod settings;
mod settings_check;
mod site;
#[cfg(test)]
mod tests;
mod transport;

pub use ask::{AskError, ask, ask_checked};
pub use budget::{Budget, BudgetExceeded, Cost};
pub use cassette::{Cassette, CassetteError, Recorder};
pub use client::{Models, Options, Tally};
pub use clock::{Clock, SystemClock};
pub use drift::Drift;
pub use error::CallError;
pub use journal::{AttemptSeen, CALL, CallRecord, CallSeen, CallUse, call_detail, call_uses};
pub use message::{ChatMessage, ChatRequest, ChatRole, Image, ResponseFormat, Tool, ToolCall};
pub use outcome::AttemptError;
pub use reply::{Finish, Reply, TokenLogprob, Usage};
pub use request::{sent_arguments, sent_name};
pub use retry::RetryPolicy;
pub use settings::{
    Api, EndpointSettings, JsonMode, MaxTokensKey, RoleSettings, SYSTEM_PLACE, Sampling, Settings,
};
pub use settings_check::SettingsError;
pub use site::{CallSite, ModelRole};

/// The JSON Schema of `termsmith.toml`.
pub fn settings_schema() -> schemars::Schema {
    schemars::schema_for!(Settings)
}
