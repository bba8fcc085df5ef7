//! One request on the wire.
//!
//! `async-openai` knows URL, headers and encoding. Its transport is replaced by one that sends once: its own would retry some
//! failures without budget and journal knowing, and shows neither headers nor the body of a failure.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde_json::Value;

use super::request::PROMPT;
use super::secret::Secret;

/// Longest response that is read, in bytes. A long reply with log-probabilities of every token is a tenth of this.
const MAX_BODY: usize = 64 << 20;
/// A reachable server accepts a connection within a few round trips.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Response header with the id of a request.
const REQUEST_ID: &str = "x-request-id";

/// A response of any status.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) status: u16,
    /// Byte for byte, except that the key is replaced. Texts of errors go through
    /// [`Exchange::redact`] too.
    pub(super) body: String,
    /// The server repeated the key in the body.
    pub(super) repeated_key: bool,
    pub(super) retry_after: Option<String>,
    pub(super) date: Option<String>,
    pub(super) request_id: Option<String>,
    /// The key, which no error's text may contain.
    pub(super) key: Option<Secret>,
}

impl Exchange {
    /// A response that was stored.
    pub(super) fn of_body(body: String) -> Self {
        let (retry_after, date, request_id, key) = (None, None, None, None);
        Self { status: 200, body, repeated_key: false, retry_after, date, request_id, key }
    }

    /// `text` without the key, for errors and logs.
    pub(super) fn redact(&self, text: &str) -> String {
        redact(self.key.as_ref(), text)
    }
}

/// Why there is no complete response.
#[derive(Debug)]
pub(super) enum TransportError {
    Connect(String),
    TimedOut(Duration),
    Disconnected(String),
    /// The response is complete and is no text; its beginning.
    NotText(String),
}

/// An HTTP client with the URL and key of one endpoint.
#[derive(Debug)]
pub(super) struct Transport {
    client: reqwest::Client,
    config: OpenAIConfig,
    key: Option<Secret>,
}

impl Transport {
    pub(super) fn new(client: reqwest::Client, base_url: &str, key: Option<Secret>) -> Self {
        // All four: async-openai takes an unset one from the environment's OPENAI_* variables and sends it to any server.
        let config = OpenAIConfig::default()
            .with_api_base(base_url.trim_end_matches('/'))
            .with_api_key(key.as_ref().map(Secret::expose).unwrap_or_default())
            .with_org_id("")
            .with_project_id("");
        Self { client, config, key }
    }

    /// Sends `body` once and waits at most `limit` for the last byte of the response.
    pub(super) async fn send(&self, body: &Value, limit: Duration) -> Result<Exchange, TransportError> {
        let seen = Arc::default();
        let once = SendOnce { client: self.client.clone(), key: self.key.clone(), seen: Arc::clone(&seen) };
        let client = Client::build(self.client.clone(), self.config.clone()).with_http_service(once);
        let sent = async move {
            match body.get(PROMPT) {
                Some(_) => client.completions().create_byot::<_, Value>(body).await,
                None => client.chat().create_byot::<_, Value>(body).await,
            }
        };
        let Ok(result) = tokio::time::timeout(limit, sent).await else {
            return Err(TransportError::TimedOut(limit));
        };
        // The stored response decides, not async-openai's interpretation of it.
        if let Some(answer) = seen.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return answer;
        }
        let redact = |text: String| redact(self.key.as_ref(), &text);
        Err(match result {
            Err(OpenAIError::Reqwest(error)) if error.is_connect() => {
                TransportError::Connect(redact(causes(error)))
            }
            Err(OpenAIError::Reqwest(error)) => TransportError::Disconnected(redact(causes(error))),
            Err(error) => TransportError::Disconnected(redact(error.to_string())),
            Ok(_) => TransportError::Disconnected("the response was lost".to_owned()),
        })
    }
}

/// An HTTP client for endpoints at `base_url`.
pub(super) fn http_client(base_url: &str) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(base_url).map_err(|error| error.to_string())?;
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirected POST becomes a GET, and a key must not be sent to another host.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("termsmith/", env!("CARGO_PKG_VERSION")));
    if is_loopback(&url) {
        // A proxy cannot reach our own loopback.
        builder = builder.no_proxy();
    }
    // Fails only where a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if url.scheme() == "http" {
        // Otherwise the system's certificates would be required, and read, without being used.
        let tls = rustls::ClientConfig::builder()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(tls);
    }
    builder.build().map_err(causes)
}

fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// An error and its sources, without the URL.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn redact(key: Option<&Secret>, text: &str) -> String {
    key.map_or_else(|| text.to_owned(), |key| key.redact(text).into_owned())
}

/// Removes the key from a response's body. Returns whether it was there.
fn replace_key(body: &mut String, key: Option<&Secret>) -> bool {
    match key.map(|key| key.redact_body(body)) {
        Some(Cow::Owned(without)) => {
            *body = without;
            true
        }
        Some(Cow::Borrowed(_)) | None => false,
    }
}

/// Sends a request once, and keeps the response.
#[derive(Clone)]
struct SendOnce {
    client: reqwest::Client,
    key: Option<Secret>,
    seen: Arc<Mutex<Option<Result<Exchange, TransportError>>>>,
}

impl tower_service::Service<HttpRequestFactory> for SendOnce {
    type Response = reqwest::Response;
    type Error = OpenAIError;
    type Future = BoxFuture<'static, Result<reqwest::Response, OpenAIError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let Self { client, key, seen } = self.clone();
        async move {
            let mut request = factory.build().await?;
            match request.headers_mut().get_mut(AUTHORIZATION) {
                // Keeps it out of every debug output below.
                Some(value) if key.is_some() => value.set_sensitive(true),
                // async-openai sends an empty one.
                _ => drop(request.headers_mut().remove(AUTHORIZATION)),
            }
            let mut response = client.execute(request).await?;
            let status = response.status().as_u16();
            let headers = response.headers().clone();
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if bytes.len() + chunk.len() > MAX_BODY {
                    let message = format!("a response of more than {MAX_BODY} bytes");
                    return Err(OpenAIError::InvalidArgument(message));
                }
                bytes.extend_from_slice(&chunk);
            }
            let answer = match text(status, bytes) {
                Ok(mut body) => Ok(Exchange {
                    status,
                    repeated_key: replace_key(&mut body, key.as_ref()),
                    body,
                    retry_after: header(&headers, &RETRY_AFTER),
                    date: header(&headers, &DATE),
                    request_id: header(&headers, &HeaderName::from_static(REQUEST_ID))
                        .map(|id| redact(key.as_ref(), &id)),
                    key,
                }),
                Err(start) => Err(TransportError::NotText(redact(key.as_ref(), &start))),
            };
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            // The body is read: async-openai would drop unknown fields, and its parsed value is not needed.
            Err(OpenAIError::InvalidArgument("kept by the transport".to_owned()))
        }
        .boxed()
    }
}

/// The body of a response as text; an error holds what can be read of it.
///
/// A reply is taken as the server sent it or not at all: replaced bytes inside a JSON string would parse, and the altered message would be
/// committed. The text of a failure is only read by people.
fn text(status: u16, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).or_else(|error| {
        let readable = String::from_utf8_lossy(error.as_bytes()).into_owned();
        if (200..300).contains(&status) { Err(readable) } else { Ok(readable) }
    })
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
