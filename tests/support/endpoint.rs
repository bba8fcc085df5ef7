//! A chat endpoint for tests. It counts requests, bills tokens, and fails as a test wants.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::watch;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    TooManyWithWait,
    TooManyWithDate,
    TooMany,
    TooManyInHtml,
    ServerError,
    HtmlGateway,
    HtmlOk,
    Truncated,
    Reset,
    Stalled,
    Malformed,
    WrongSchema,
    NoChoices,
    Reply,
}

impl Kind {
    pub(crate) const FAULTS: [Self; 13] = [
        Self::TooManyWithWait,
        Self::TooManyWithDate,
        Self::TooMany,
        Self::TooManyInHtml,
        Self::ServerError,
        Self::HtmlGateway,
        Self::HtmlOk,
        Self::Truncated,
        Self::Reset,
        Self::Stalled,
        Self::Malformed,
        Self::WrongSchema,
        Self::NoChoices,
    ];

    /// Whether the provider bills the request, because the model did its work.
    fn is_billed(self) -> bool {
        !matches!(
            self,
            Self::TooManyWithWait
                | Self::TooManyWithDate
                | Self::TooMany
                | Self::TooManyInHtml
                | Self::ServerError
        )
    }
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) body: Value,
    pub(crate) authorization: Option<String>,
    pub(crate) kind: Kind,
}

/// Decides the answer to a request. It gets the request's body and the number of the attempt, from
/// 0.
type Plan = dyn Fn(&Value, u32) -> Answer + Send + Sync;

/// The answer of a plan.
pub(crate) enum Answer {
    Do(Kind),
    /// A reply with this text.
    Text(String),
    /// Any other response.
    Raw {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// The ordinary reply with this text, but the last byte is not UTF-8.
    NotUtf8(String),
}

pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    plan: Box<Plan>,
    /// No request is answered before so many have arrived.
    gate: usize,
    log: Mutex<Log>,
    arrived: watch::Sender<usize>,
}

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    counts: HashMap<blake3::Hash, u32>,
    billed: u64,
    now: usize,
    most_at_once: usize,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(plan: impl Fn(&Value, u32) -> Answer + Send + Sync + 'static) -> Self {
        Self::gated(0, plan).await
    }

    /// Like [`start`](Self::start), but no request is answered before `gate` of them have arrived.
    pub(crate) async fn gated(
        gate: usize,
        plan: impl Fn(&Value, u32) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let (log, arrived) = (Mutex::default(), watch::Sender::new(0));
        let state = Arc::new(Shared { plan: Box::new(plan), gate, log, arrived });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new()
            .route("/v1/chat/completions", axum::routing::post(answer))
            .route("/v1/completions", axum::routing::post(answer))
            .with_state(Arc::clone(&state));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, state, task }
    }

    /// A server that never fails.
    pub(crate) async fn faultless() -> Self {
        Self::start(|_, _| Answer::Do(Kind::Reply)).await
    }

    /// A server that fails one to three times in a row for 30 % of calls, and then answers.
    pub(crate) async fn faulty(seed: u64) -> Self {
        Self::start(move |body, attempt| Answer::Do(fault(seed, body, attempt))).await
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.log.lock().unwrap().seen.clone()
    }

    /// Number of requests.
    pub(crate) fn requests(&self) -> usize {
        self.state.log.lock().unwrap().seen.len()
    }

    /// Tokens of all work, whether or not the reply arrived.
    pub(crate) fn billed(&self) -> u64 {
        self.state.log.lock().unwrap().billed
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.state.log.lock().unwrap().most_at_once
    }

    /// Number of requests, by the text of their last message.
    pub(crate) fn by_text(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for seen in self.seen() {
            *counts.entry(last_text(&seen.body)).or_default() += 1;
        }
        counts
    }

    /// Waits until `count` requests have arrived.
    pub(crate) async fn until(&self, count: usize) {
        until(self.arrivals(), count).await;
    }

    /// The number of requests that have arrived.
    pub(crate) fn arrivals(&self) -> watch::Receiver<usize> {
        self.state.arrived.subscribe()
    }
}

/// Waits until `count` requests have arrived.
pub(crate) async fn until(mut arrivals: watch::Receiver<usize>, count: usize) {
    arrivals.wait_for(|arrived| *arrived >= count).await.unwrap();
}

/// The answer to attempt `attempt` of a request. 30 % of calls meet one to three faults first.
pub(crate) fn fault(seed: u64, body: &Value, attempt: u32) -> Kind {
    faults(seed, body).nth(attempt)
}

/// The faults that a request meets before its reply.
struct Faults(Vec<Kind>);

impl Faults {
    fn nth(&self, attempt: u32) -> Kind {
        self.0.get(attempt as usize).copied().unwrap_or(Kind::Reply)
    }
}

fn faults(seed: u64, body: &Value) -> Faults {
    let mut rng = rng(seed, body);
    let count = if rng.random_range(0..10_u32) < 3 { rng.random_range(1..=3_u32) } else { 0 };
    let kind = |rng: &mut ChaCha20Rng| Kind::FAULTS[rng.random_range(0..Kind::FAULTS.len() as u32) as usize];
    Faults((0..count).map(|_| kind(&mut rng)).collect())
}

fn rng(seed: u64, body: &Value) -> ChaCha20Rng {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(body.to_string().as_bytes());
    ChaCha20Rng::from_seed(*hasher.finalize().as_bytes())
}

fn last_text(body: &Value) -> String {
    if let Some(prompt) = body["prompt"].as_str() {
        return prompt.to_owned();
    }
    let messages = body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// The reply to a request. It depends only on the request. One in twelve is cut off by
/// `max_tokens`.
pub(crate) fn reply(body: &Value, text: Option<String>) -> Value {
    let mut rng = rng(0, body);
    let completion = rng.random_range(1..=body["max_tokens"].as_u64().unwrap());
    let finish = if rng.random_range(0..12_u32) == 0 { "length" } else { "stop" };
    let content = text.unwrap_or_else(|| format!("\u{1}reply\r\n to {} ", last_text(body)));
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{
            "index": 0, "finish_reason": finish,
            "message": {"role": "assistant", "content": content, "reasoning_content": "because"},
        }],
        "usage": usage(body, completion),
        "served_by": {"rack": 7},
    })
}

fn usage(body: &Value, completion: u64) -> Value {
    let prompt = body["messages"].to_string().len() as u64;
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

async fn answer(State(state): State<Arc<Shared>>, headers: HeaderMap, bytes: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    let attempt = {
        let mut log = state.log.lock().unwrap();
        let count = log.counts.entry(blake3::hash(&bytes)).or_default();
        let attempt = *count;
        *count += 1;
        log.now += 1;
        log.most_at_once = log.most_at_once.max(log.now);
        attempt
    };
    let answer = (state.plan)(&body, attempt);
    let kind = match &answer {
        Answer::Do(kind) => *kind,
        Answer::Text(_) | Answer::NotUtf8(_) => Kind::Reply,
        Answer::Raw { .. } => Kind::ServerError,
    };
    let authorization = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    let text = match &answer {
        Answer::Text(text) | Answer::NotUtf8(text) => Some(text.clone()),
        Answer::Do(_) | Answer::Raw { .. } => None,
    };
    let good = reply(&body, text);
    let arrived = {
        let mut log = state.log.lock().unwrap();
        log.seen.push(Seen { body, authorization, kind });
        if kind.is_billed() {
            log.billed += good["usage"]["total_tokens"].as_u64().unwrap();
        }
        log.seen.len()
    };
    // Handlers may reach this in another order than their requests arrived.
    state.arrived.send_modify(|most| *most = arrived.max(*most));
    until(state.arrived.subscribe(), state.gate).await;
    let response = match answer {
        Answer::Raw { status, headers, body } => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(body.into()).unwrap()
        }
        Answer::Do(Kind::Stalled) => {
            state.log.lock().unwrap().now -= 1;
            std::future::pending().await
        }
        Answer::NotUtf8(text) => {
            let mut bytes = good.to_string().into_bytes();
            let end =
                bytes.windows(text.len()).position(|piece| piece == text.as_bytes()).unwrap() + text.len();
            bytes[end - 1] = 0xff;
            Response::builder().header(header::CONTENT_TYPE, "application/json").body(bytes.into()).unwrap()
        }
        Answer::Do(_) | Answer::Text(_) => respond(kind, &good),
    };
    state.log.lock().unwrap().now -= 1;
    response
}

fn respond(kind: Kind, good: &Value) -> Response {
    let plain = |status: u16, kind: &str, body: String| {
        Response::builder().status(status).header(header::CONTENT_TYPE, kind).body(Body::from(body)).unwrap()
    };
    let json_error =
        json!({"error": {"message": "slow down", "type": "rate_limit", "code": null}}).to_string();
    let html = "<html><body><h1>Sorry</h1></body></html>".to_owned();
    let with_wait = |wait: &str| {
        let mut response = plain(429, "application/json", json_error.clone());
        response.headers_mut().insert(header::RETRY_AFTER, wait.parse().unwrap());
        // The client compares this date with the server's own clock, which is far behind this
        // machine's.
        response.headers_mut().insert(header::DATE, "Thu, 01 Jan 1970 00:00:00 GMT".parse().unwrap());
        response
    };
    let text = good.to_string();
    let half = text.as_bytes()[..text.len() / 2].to_vec();
    match kind {
        Kind::TooManyWithWait => with_wait("2"),
        Kind::TooManyWithDate => with_wait("Thu, 01 Jan 1970 00:00:09 GMT"),
        Kind::TooMany => plain(429, "application/json", json_error),
        Kind::TooManyInHtml => plain(429, "text/html", html),
        Kind::ServerError => plain(500, "application/json", json_error),
        Kind::HtmlGateway => plain(502, "text/html", html),
        Kind::HtmlOk => plain(200, "text/html", html),
        Kind::Truncated => {
            let chunks = stream::iter([Ok::<_, Infallible>(half)]);
            Response::builder()
                .header(header::CONTENT_LENGTH, text.len())
                .body(Body::from_stream(chunks))
                .unwrap()
        }
        Kind::Reset => {
            let chunks = stream::iter([Ok(half), Err(io::Error::from(io::ErrorKind::ConnectionReset))]);
            Response::builder().status(StatusCode::OK).body(Body::from_stream(chunks)).unwrap()
        }
        Kind::Malformed => plain(200, "application/json", text.replacen("\"choices\":", "\"choices\"", 1)),
        Kind::WrongSchema => {
            plain(200, "application/json", json!({"output": "hi", "usage": good["usage"]}).to_string())
        }
        Kind::NoChoices => {
            let mut empty = good.clone();
            empty["choices"] = json!([]);
            plain(200, "application/json", empty.to_string())
        }
        Kind::Stalled | Kind::Reply => plain(200, "application/json", text),
    }
}
