//! HTTP/1.1: the requests of agents' clients, and the responses to them.

use std::io::Read as _;

use super::dialect::{Refusal, RefusalKind};
use crate::sandbox::Received;

/// Most header lines of a request. The clients in use send about thirty.
const MAX_HEADERS: usize = 100;
/// Longest body after decompression. A small compressed body could have any length.
const MAX_BODY: u64 = crate::sandbox::MAX_REQUEST as u64;

/// A request, as an agent's client sent it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query, and without a slash at its end.
    pub(super) path: String,
    /// The text after the `?`.
    pub(super) query: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// A request that cannot be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// The head, as far as it can be read. Its path decides the form of the refusal, e.g. that of
    /// Anthropic's API.
    pub(super) head: Box<Request>,
    pub(super) refusal: Refusal,
}

impl Request {
    /// Reads a request.
    pub(super) fn read(received: &Received) -> Result<Self, Unreadable> {
        let (bytes, cut) = match received {
            Received::Whole(bytes) => (bytes, None),
            Received::TooLarge { start } => (start, Some(RefusalKind::TooLarge)),
            Received::NoRoom { start } => (start, Some(RefusalKind::Busy)),
        };
        let malformed = || Unreadable {
            head: Box::default(),
            refusal: Refusal::new(RefusalKind::Malformed, "this is no HTTP/1.1 request"),
        };
        let (head, body) = Self::head(bytes).ok_or_else(malformed)?;
        let refusal = match cut {
            Some(RefusalKind::Busy) => Refusal::new(RefusalKind::Busy, "too many requests at once"),
            Some(kind) => Refusal::new(kind, format!("a request of more than {MAX_BODY} bytes")),
            None => match head.decoded(body) {
                Ok(body) => return Ok(Self { body, ..head }),
                Err(refusal) => refusal,
            },
        };
        Err(Unreadable { head: Box::new(head), refusal })
    }

    /// A POST with a body.
    #[cfg(test)]
    pub(super) fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        Self { method: "POST".to_owned(), path, query, headers: Vec::new(), body: body.into() }
    }

    /// The value of a header. Upper and lower case are equal.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the client wants a WebSocket. Other upgrades are offers that a server may ignore.
    pub(super) fn wants_web_socket(&self) -> bool {
        self.header("upgrade").is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
    }

    /// Reads a head. The rest of the bytes is the body.
    fn head(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(end) = head.parse(bytes).ok()? else { return None };
        let (method, target) = (head.method?, head.path?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        // A client that takes the endpoint for a proxy sends a whole address.
        let path = match path.strip_prefix("http://") {
            Some(address) => address.find('/').map_or("/", |slash| &address[slash..]),
            None => path,
        };
        let headers = head
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).trim().to_owned()));
        let request = Self {
            method: method.to_owned(),
            path: path.trim_end_matches('/').to_owned(),
            query: query.to_owned(),
            headers: headers.collect(),
            body: Vec::new(),
        };
        Some((request, bytes.get(end..)?))
    }

    /// The body without its encodings.
    fn decoded(&self, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let transfer = self.header("transfer-encoding").unwrap_or_default().to_ascii_lowercase();
        let body = if transfer.ends_with("chunked") {
            unchunked(body).ok_or_else(|| Refusal::new(RefusalKind::Malformed, "a chunk is malformed"))?
        } else {
            body.to_vec()
        };
        match self.header("content-encoding").unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(body),
            "zstd" => unpacked(&body),
            other => Err(Refusal::new(
                RefusalKind::Encoding,
                format!("content-encoding `{other}` is not supported: send zstd, or the body as it is"),
            )),
        }
    }
}

fn unpacked(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let malformed = |error: std::io::Error| {
        Refusal::new(RefusalKind::Malformed, format!("the body cannot be decompressed: {error}"))
    };
    let mut whole = Vec::new();
    let decoder = zstd::Decoder::new(body).map_err(malformed)?;
    decoder.take(MAX_BODY + 1).read_to_end(&mut whole).map_err(malformed)?;
    if whole.len() as u64 > MAX_BODY {
        let message = format!("a body of more than {MAX_BODY} bytes");
        return Err(Refusal::new(RefusalKind::TooLarge, message));
    }
    Ok(whole)
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let httparse::Status::Complete((start, size)) = httparse::parse_chunk_size(rest).ok()? else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        rest = rest.get(start..)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size.checked_add(2)?..)?;
    }
}

/// The media type of JSON.
const JSON: &str = "application/json";

/// A successful response with JSON.
pub(super) fn json(body: &str) -> Vec<u8> {
    response(200, JSON, "", body)
}

/// A refusal with JSON. `again` is whether the client may send the request again.
pub(super) fn refusal(status: u16, again: Again, body: &str) -> Vec<u8> {
    // The clients of OpenAI and Anthropic obey this header. Without it, the status decides.
    let fields = match again {
        Again::Never => "x-should-retry: false\r\n",
        Again::Soon => "x-should-retry: true\r\nretry-after: 1\r\n",
    };
    response(status, JSON, fields, body)
}

/// Whether a client may send a refused request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    Soon,
}

fn response(status: u16, kind: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        426 => "Upgrade Required",
        503 => "Service Unavailable",
        _ => "Error",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\n{fields}content-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The response to a HEAD request.
pub(super) fn no_content() -> Vec<u8> {
    response(200, JSON, "", "")
}

/// The head of a stream of events. The body is sent in chunks: a client notices a broken stream,
/// since the last chunk is missing.
pub(super) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
/// The end of a stream.
pub(super) const STREAM_END: &str = "0\r\n\r\n";

/// A piece of a stream.
pub(super) fn chunk(events: &str) -> String {
    // An empty chunk would be the end.
    if events.is_empty() { String::new() } else { format!("{:x}\r\n{events}\r\n", events.len()) }
}

/// A server-sent event. Line ends in `data` may only be white space of JSON: they would end the
/// event.
pub(super) fn event(name: Option<&str>, data: &str) -> String {
    let data = data.replace(['\r', '\n'], " ");
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// A comment, which all readers of event streams skip.
pub(super) const COMMENT: &str = ": still working\n\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Request, Unreadable> {
        Request::read(&Received::Whole(text.into()))
    }

    #[test]
    fn requests_are_read() {
        let check = |text: &str, expect: Option<(&str, &str, &str, &str)>| {
            let found = read(text).ok();
            let found = found.as_ref().map(|found| {
                let Request { method, path, query, body, .. } = found;
                (method.as_str(), path.as_str(), query.as_str(), std::str::from_utf8(body).unwrap())
            });
            assert_eq!(found, expect, "{text:?}");
        };
        check("GET /v1/models?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", Some(("GET", "/v1/models", "x=1", "")));
        check("HEAD / HTTP/1.1\r\n\r\n", Some(("HEAD", "", "", "")));
        check("POST http://x:1/v1/c/ HTTP/1.1\r\n\r\n", Some(("POST", "/v1/c", "", "")));
        check("POST http://x HTTP/1.1\r\n\r\n", Some(("POST", "", "", "")));
        check("POST /v1/c HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", Some(("POST", "/v1/c", "", "{}")));
        check(
            "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
            Some(("POST", "/c", "", "abc")),
        );
        check("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab", None);
        check(
            "POST /c HTTP/1.1\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            Some(("POST", "/c", "", "a")),
        );
        // A header value that contains `chunked`, and a body that looks like the end of a chunk.
        check(
            "POST /c HTTP/1.1\r\nX-Note: transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            Some(("POST", "/c", "", "0\r\n\r\n")),
        );
        check("POST /c HTTP/1.1\r\nHost: x\r\n", None);
        check("POST /c", None);
        check("nonsense", None);
        check("\r\n\r\n", None);
    }

    #[test]
    fn headers_are_found_in_any_case() {
        let request = read("GET / HTTP/1.1\r\nX-Session-Id:  a b \r\nUpgrade: websocket\r\n\r\n").unwrap();
        assert_eq!(request.header("x-session-ID"), Some("a b"));
        assert_eq!(request.header("x"), None);
        assert!(request.wants_web_socket());
        assert!(!read("POST / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n").unwrap().wants_web_socket());
    }

    #[test]
    fn bodies_are_decompressed() {
        let send = |encoding: &str, body: &[u8]| {
            let head = format!("POST /v1/responses HTTP/1.1\r\nContent-Encoding: {encoding}\r\n\r\n");
            Request::read(&Received::Whole([head.as_bytes(), body].concat()))
        };
        let packed = |size: usize| zstd::encode_all(&vec![b' '; size][..], 1).unwrap();
        assert_eq!(send("zstd", &packed(3)).unwrap().body, b"   ");
        assert_eq!(send("Identity", b"{}").unwrap().body, b"{}");
        let check = |encoding: &str, body: &[u8], kind: RefusalKind| {
            let Unreadable { head, refusal } = send(encoding, body).unwrap_err();
            assert_eq!((head.path.as_str(), refusal.kind), ("/v1/responses", kind), "{encoding}");
        };
        check("gzip", b"", RefusalKind::Encoding);
        check("zstd, zstd", b"", RefusalKind::Encoding);
        check("zstd", b"{}", RefusalKind::Malformed);
        check("zstd", &packed(MAX_BODY as usize + 1), RefusalKind::TooLarge);
    }

    #[test]
    fn parts_of_requests_are_refused_by_their_head() {
        let start = || b"POST /v1/messages HTTP/1.1\r\nContent-Length: 99\r\n\r\nabc".to_vec();
        let check = |received: Received, kind: RefusalKind, path: &str| {
            let Unreadable { head, refusal } = Request::read(&received).unwrap_err();
            assert_eq!((refusal.kind, head.path.as_str()), (kind, path));
        };
        check(Received::TooLarge { start: start() }, RefusalKind::TooLarge, "/v1/messages");
        check(Received::NoRoom { start: start() }, RefusalKind::Busy, "/v1/messages");
        check(Received::TooLarge { start: b"POST".to_vec() }, RefusalKind::Malformed, "");
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::read(&Received::Whole(bytes));
        }
    }
}
