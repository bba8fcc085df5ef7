//! A request on the wire.
//!
//! `async-openai` knows the URL, headers and encoding of chat completions. Its transport is
//! replaced by one that sends once. Its own would retry some failures without asking budget and
//! journal, and it shows neither headers nor the body of a failure.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::Value;

use super::request::PROMPT;
use super::secret::Secret;
use super::{Api, EndpointSettings};

/// Longest response that is read, in bytes. A long reply with log-probabilities has a tenth of it.
const MAX_BODY: usize = 64 << 20;
/// A server that can be reached accepts a connection within a few round trips.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Response headers with the id of the request: OpenAI's and Anthropic's.
const REQUEST_IDS: [&str; 2] = ["x-request-id", "request-id"];

/// A response with any status.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) status: u16,
    /// Byte for byte, with the key replaced. Texts of errors also pass [`Exchange::redact`].
    pub(super) body: String,
    /// The server repeated the key in the body.
    pub(super) repeated_key: bool,
    pub(super) retry_after: Option<String>,
    pub(super) date: Option<String>,
    pub(super) request_id: Option<String>,
    /// The key. No text of an error may have it.
    pub(super) key: Option<Secret>,
}

impl Exchange {
    /// A response from the store.
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
    /// The response is complete, but no text. The text is its start.
    NotText(String),
}

/// An HTTP client with the URL and key of one endpoint.
#[derive(Debug)]
pub(super) struct Transport {
    client: reqwest::Client,
    config: OpenAIConfig,
    api: Api,
    /// Without a slash at its end.
    base_url: String,
    key: Option<Secret>,
}

impl Transport {
    pub(super) fn new(client: reqwest::Client, settings: &EndpointSettings, key: Option<Secret>) -> Self {
        let base_url = settings.base_url.trim_end_matches('/').to_owned();
        // All four are set: async-openai takes an unset one from the environment's OPENAI_*
        // variables, and would send it to any server.
        let config = OpenAIConfig::default()
            .with_api_base(&base_url)
            .with_api_key(key.as_ref().map(Secret::expose).unwrap_or_default())
            .with_org_id("")
            .with_project_id("");
        Self { client, config, api: settings.api, base_url, key }
    }

    /// Sends `body` once, and waits for the last byte of the response, at most for `limit`.
    pub(super) async fn send(&self, body: &Value, limit: Duration) -> Result<Exchange, TransportError> {
        let sent = async {
            match self.api {
                Api::Chat => self.send_chat(body).await,
                Api::Responses => self.send_to("responses", body).await,
                Api::Messages => self.send_to("messages", body).await,
            }
        };
        // Boxed: callers nest this deep in futures of their own.
        tokio::time::timeout(limit, sent.boxed()).await.unwrap_or(Err(TransportError::TimedOut(limit)))
    }

    async fn send_chat(&self, body: &Value) -> Result<Exchange, TransportError> {
        let seen = Arc::default();
        let once = SendOnce { client: self.client.clone(), key: self.key.clone(), seen: Arc::clone(&seen) };
        let client = Client::build(self.client.clone(), self.config.clone()).with_http_service(once);
        let result = match body.get(PROMPT) {
            Some(_) => client.completions().create_byot::<_, Value>(body).await,
            None => client.chat().create_byot::<_, Value>(body).await,
        };
        // The kept response counts. async-openai's reading of it is ignored.
        if let Some(answer) = seen.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return answer;
        }
        let lost = result.map_or_else(|error| error.to_string(), |_| "the response was lost".to_owned());
        Err(TransportError::Disconnected(redact(self.key.as_ref(), &lost)))
    }

    async fn send_to(&self, path: &str, body: &Value) -> Result<Exchange, TransportError> {
        let mut request = self
            .client
            .post(format!("{}/{path}", self.base_url))
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        if self.api == Api::Messages {
            request = request.header(ANTHROPIC_VERSION.0, ANTHROPIC_VERSION.1);
        }
        if let Some(key) = &self.key {
            let (name, value) = match self.api {
                Api::Messages => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
                Api::Chat | Api::Responses => (AUTHORIZATION, format!("Bearer {}", key.expose())),
            };
            let value = HeaderValue::from_str(&value);
            let mut value = value.map_err(|_| TransportError::Connect("the key is no header".to_owned()))?;
            // Keeps it out of all debug output.
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let request = request.build().map_err(|error| failed(error, self.key.as_ref()))?;
        exchange(&self.client, request, self.key.clone()).await
    }
}

/// The version of Anthropic's API that is used. There is no later one.
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// An HTTP client for an endpoint at `base_url`.
pub(super) fn http_client(base_url: &str) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(base_url).map_err(|error| error.to_string())?;
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirected POST becomes a GET, and the key must not reach another host.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("termsmith/", env!("CARGO_PKG_VERSION")));
    if is_loopback(&url) {
        // A proxy cannot reach the loopback of this machine.
        builder = builder.no_proxy();
    }
    // Fails only if there is a provider already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if url.scheme() == "http" {
        // Without this, the system's certificates would be read, although nothing uses them.
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

/// An error with its causes, without the URL.
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

/// Removes the key from the body of a response. True if it was there.
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
                // Keeps it out of all debug output.
                Some(value) if key.is_some() => value.set_sensitive(true),
                // async-openai sends an empty one.
                _ => drop(request.headers_mut().remove(AUTHORIZATION)),
            }
            let answer = exchange(&client, request, key).await;
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            // The body was read here, and is all that is needed: async-openai would drop unknown
            // fields.
            Err(OpenAIError::InvalidArgument("kept by the transport".to_owned()))
        }
        .boxed()
    }
}

/// Sends a request once, and reads its response.
async fn exchange(
    client: &reqwest::Client,
    request: reqwest::Request,
    key: Option<Secret>,
) -> Result<Exchange, TransportError> {
    let failed = |error| failed(error, key.as_ref());
    let mut response = client.execute(request).await.map_err(failed)?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > MAX_BODY {
            return Err(TransportError::Disconnected(format!("a response of more than {MAX_BODY} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    let mut body =
        text(status, bytes).map_err(|start| TransportError::NotText(redact(key.as_ref(), &start)))?;
    let request_id = REQUEST_IDS.iter().find_map(|name| header(&headers, &HeaderName::from_static(name)));
    Ok(Exchange {
        status,
        repeated_key: replace_key(&mut body, key.as_ref()),
        body,
        retry_after: header(&headers, &RETRY_AFTER),
        date: header(&headers, &DATE),
        request_id: request_id.map(|id| redact(key.as_ref(), &id)),
        key,
    })
}

fn failed(error: reqwest::Error, key: Option<&Secret>) -> TransportError {
    let is_connect = error.is_connect();
    let why = redact(key, &causes(error));
    if is_connect { TransportError::Connect(why) } else { TransportError::Disconnected(why) }
}

/// The body of a response as text. The error has the readable part of it.
///
/// A reply is taken byte for byte or not at all. With invalid bytes replaced, the JSON would still
/// parse, and an altered message would be committed. The text of a failure is only for people.
fn text(status: u16, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).or_else(|error| {
        let readable = String::from_utf8_lossy(error.as_bytes()).into_owned();
        if (200..300).contains(&status) { Err(readable) } else { Ok(readable) }
    })
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
