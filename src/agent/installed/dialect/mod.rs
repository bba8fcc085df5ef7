//! The protocols that agents speak. Each has a file, and a row in [`DIALECTS`].

mod chat;
mod gemini;
mod gemini_schema;
mod local;
mod messages;
mod response_tools;
mod responses;
#[cfg(test)]
mod tests;

use std::fmt;

use super::http::{self, Again, Request, Unreadable};
use crate::llm::{ChatRequest, Reply};

/// All dialects. The first one answers what belongs to none.
static DIALECTS: [&Dialect; 4] = [&chat::DIALECT, &responses::DIALECT, &messages::DIALECT, &gemini::DIALECT];

/// A protocol.
pub(super) struct Dialect {
    /// The name in messages.
    name: &'static str,
    /// What a POST to this path asks for, if the path is of the dialect.
    operation: fn(&str) -> Option<Operation>,
    /// Reads a request to a model.
    read: fn(&Request) -> Result<Parsed, String>,
    /// The number of tokens, in the form of the dialect.
    counted: fn(u64) -> String,
    /// The status and the body of a refusal.
    refusal: fn(&Refusal) -> (u16, String),
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A reply of the model.
    Generate,
    /// The number of tokens of a request.
    CountTokens,
}

/// A request to a model, as a dialect reads it.
struct Parsed {
    request: ChatRequest,
    form: Form,
    voice: Box<dyn Voice>,
}

/// How a client wants its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Stream,
}

impl Form {
    fn of(stream: Option<bool>) -> Self {
        if stream == Some(true) { Self::Stream } else { Self::Whole }
    }
}

/// Writes the reply to one request.
trait Voice: fmt::Debug + Send {
    /// The body of a whole reply.
    fn whole(&mut self, reply: &Reply) -> String;
    /// The events of a reply.
    fn events(&mut self, reply: &Reply) -> String;
    /// Events that a client gets while the model works. It counts them as a sign of life.
    fn alive(&mut self) -> String;
    /// Events that end a stream with a refusal.
    fn refused(&mut self, refusal: &Refusal) -> String;
    /// Whether a client that wants a stream expects this refusal in it, and not as a status.
    fn streams(&self, _refusal: RefusalKind) -> bool {
        false
    }
}

/// A refusal. Each dialect has its own form of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: RefusalKind,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalKind {
    /// It cannot be read, or the endpoint refuses it.
    Malformed,
    /// It is longer than the model's context. Agents then shorten their history.
    ContextLength,
    /// A limit of the rollout was reached. No client may try again.
    Limit,
    /// It is too long to be read.
    TooLarge,
    /// Its body is in an encoding that is not supported.
    Encoding,
    /// There is nothing at its path.
    Unsupported,
    /// The client wants a WebSocket.
    Upgrade,
    /// Too many requests are under way. The client may try again.
    Busy,
}

impl RefusalKind {
    /// The HTTP status. Most clients try again after [`RefusalKind::Busy`] only.
    fn status(self) -> u16 {
        match self {
            Self::Malformed | Self::ContextLength => 400,
            Self::Limit => 403,
            Self::Unsupported => 404,
            Self::TooLarge => 413,
            Self::Encoding => 415,
            Self::Upgrade => 426,
            Self::Busy => 503,
        }
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Inquiry {
    /// The model is asked.
    Asked(Asked),
    /// It is answered without the model.
    Answered(Vec<u8>),
    /// It is refused, for its own fault.
    Refused { refusal: Refusal, response: Vec<u8> },
}

/// A request to the model.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: ChatRequest,
    pub(super) responder: Responder,
}

/// Reads a request to an endpoint that has the model `model`.
pub(super) fn inquire(request: &Request, model: &str) -> Inquiry {
    let found = DIALECTS.into_iter().find_map(|dialect| {
        let operation = (dialect.operation)(&request.path)?;
        Some((dialect, operation))
    });
    match (request.method.as_str(), found) {
        ("HEAD", _) => Inquiry::Answered(http::no_content()),
        _ if request.wants_web_socket() => {
            refuse(request, Refusal::new(RefusalKind::Upgrade, "WebSockets are not supported: use HTTP"))
        }
        ("POST", Some((dialect, Operation::Generate))) => match (dialect.read)(request) {
            Ok(Parsed { request, form, voice }) => {
                Inquiry::Asked(Asked { request, responder: Responder { dialect, form, voice, began: false } })
            }
            Err(message) => refuse(request, Refusal::new(RefusalKind::Malformed, message)),
        },
        ("POST", Some((dialect, Operation::CountTokens))) => {
            Inquiry::Answered(http::json(&(dialect.counted)(local::tokens(&request.body))))
        }
        ("GET", _) if let Some(models) = local::models(request, model) => {
            Inquiry::Answered(http::json(&models))
        }
        (method, _) => {
            let message = format!("{method} {} is not supported", request.path);
            refuse(request, Refusal::new(RefusalKind::Unsupported, message))
        }
    }
}

/// The refusal of a request that cannot be read.
pub(super) fn unreadable(unreadable: Unreadable) -> Inquiry {
    refuse(&unreadable.head, unreadable.refusal)
}

fn refuse(request: &Request, refusal: Refusal) -> Inquiry {
    let [first, ..] = DIALECTS;
    let of_path = DIALECTS.into_iter().find(|dialect| (dialect.operation)(&request.path).is_some());
    Inquiry::Refused { response: of_path.unwrap_or(first).refused(&refusal), refusal }
}

impl Dialect {
    fn refused(&self, refusal: &Refusal) -> Vec<u8> {
        let (status, body) = (self.refusal)(refusal);
        let again = if refusal.kind == RefusalKind::Busy { Again::Soon } else { Again::Never };
        http::refusal(status, again, &body)
    }
}

/// Answers one request, in the form that the client wants.
#[derive(Debug)]
pub(super) struct Responder {
    dialect: &'static Dialect,
    form: Form,
    voice: Box<dyn Voice>,
    /// The head of a stream was sent.
    began: bool,
}

impl Responder {
    /// Bytes for a client that waits. `None` if it can only be sent a whole reply.
    pub(super) fn alive(&mut self) -> Option<Vec<u8>> {
        (self.form == Form::Stream).then(|| {
            let events = self.voice.alive();
            self.streamed(&events, "")
        })
    }

    /// The reply, or the rest of it.
    pub(super) fn reply(&mut self, reply: &Reply) -> Vec<u8> {
        match self.form {
            Form::Whole => http::json(&self.voice.whole(reply)),
            Form::Stream => {
                let events = self.voice.events(reply);
                self.streamed(&events, http::STREAM_END)
            }
        }
    }

    /// A refusal. Once a stream has begun, it is an event.
    pub(super) fn refuse(&mut self, refusal: &Refusal) -> Vec<u8> {
        let in_stream = self.began || (self.form == Form::Stream && self.voice.streams(refusal.kind));
        if !in_stream {
            return self.dialect.refused(refusal);
        }
        let events = self.voice.refused(refusal);
        self.streamed(&events, http::STREAM_END)
    }

    fn streamed(&mut self, events: &str, end: &str) -> Vec<u8> {
        let head = if std::mem::replace(&mut self.began, true) { "" } else { http::STREAM_HEAD };
        [head, &http::chunk(events), end].concat().into_bytes()
    }
}
