//! A server, with the state that all of its roles share: key, limits and connections.

use std::sync::OnceLock;
use std::time::Duration;

use super::limiter::Limiter;
use super::secret::Secret;
use super::transport::{Transport, http_client};
use super::{CallError, EndpointSettings};

#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) settings: EndpointSettings,
    key: Result<Option<Secret>, &'static str>,
    pub(super) limiter: Limiter,
    /// Made at its first use: a cassette needs none.
    transport: OnceLock<Result<Transport, String>>,
}

impl Endpoint {
    /// The endpoint. `env` has its key.
    pub(super) fn new(settings: EndpointSettings, env: impl Fn(&str) -> Option<String>) -> Self {
        let key = match &settings.api_key_env {
            None => Ok(None),
            Some(variable) => match env(variable) {
                None => Err("is not set"),
                Some(value) => {
                    Secret::new(&value).map(Some).ok_or("holds no key: it is empty or has blanks inside")
                }
            },
        };
        let limiter =
            Limiter::new(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute);
        Self { settings, key, limiter, transport: OnceLock::new() }
    }

    /// Time limit of a request.
    pub(super) fn time_limit(&self) -> Duration {
        Duration::try_from_secs_f64(self.settings.timeout_sec).unwrap_or(Duration::MAX)
    }

    /// The HTTP transport of the endpoint with the name `name`.
    pub(super) fn transport(&self, name: &str) -> Result<&Transport, CallError> {
        let key = match &self.key {
            Ok(key) => key,
            Err(fault) => {
                let variable = self.settings.api_key_env.clone().unwrap_or_default();
                return Err(CallError::Key { endpoint: name.to_owned(), variable, fault });
            }
        };
        let base = &self.settings.base_url;
        let made = self.transport.get_or_init(|| {
            http_client(base).map(|client| Transport::new(client, &self.settings, key.clone()))
        });
        made.as_ref().map_err(|error| CallError::Client(error.clone()))
    }
}
