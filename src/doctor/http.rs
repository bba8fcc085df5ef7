//! Just enough HTTP/1.1 to talk to an engine's socket: one request a connection, plain bytes, everything bounded.
//!
//! The doctor runs before anything else works, so it depends on no engine client; what it needs are five calls.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use thiserror::Error;

/// Longest reply that is kept, in bytes; the largest real one (progress of a pull) is well below 1 MiB.
const MAX_BODY: usize = 16 << 20;
/// Longest line of a reply's head, in bytes.
const MAX_LINE: u64 = 16 << 10;
/// Most header lines of a reply.
const MAX_HEADERS: usize = 128;
/// Bytes of an upload that travel as one chunk.
const UPLOAD_CHUNK: usize = 256 << 10;

/// Where an engine listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// `host:port`, without TLS.
    Tcp(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

/// A call to an engine that brought no reply.
#[derive(Debug, Error)]
pub(super) enum HttpError {
    #[error("cannot connect to {endpoint}")]
    Connect { endpoint: Endpoint, source: io::Error },
    #[error("no reply from {endpoint} to {request}")]
    Exchange { endpoint: Endpoint, request: String, source: io::Error },
}

impl HttpError {
    /// What the operating system said.
    pub(super) fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Connect { source, .. } | Self::Exchange { source, .. } => source.kind(),
        }
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// Longest silence of the other side.
    pub(super) idle: Duration,
    /// Longest whole call.
    pub(super) total: Duration,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// `GET path`.
pub(super) fn get(endpoint: &Endpoint, path: &str, timeouts: Timeouts) -> Result<Response, HttpError> {
    exchange(endpoint, &format!("GET {path}"), timeouts, Body::None)
}

/// `POST path` without a body.
pub(super) fn post(endpoint: &Endpoint, path: &str, timeouts: Timeouts) -> Result<Response, HttpError> {
    exchange(endpoint, &format!("POST {path}"), timeouts, Body::None)
}

/// `POST path` whose body is what `feed` writes. If `feed` fails the upload is cut off, which the engine sees as an
/// error; the reply is then whatever it still says.
pub(super) fn upload(
    endpoint: &Endpoint,
    path: &str,
    timeouts: Timeouts,
    feed: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<Response, HttpError> {
    exchange(endpoint, &format!("POST {path}"), timeouts, Body::Stream(feed))
}

/// Percent-encodes a value for a query.
pub(super) fn encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

enum Body<'a> {
    None,
    Stream(&'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>),
}

fn exchange(
    endpoint: &Endpoint,
    request: &str,
    timeouts: Timeouts,
    body: Body<'_>,
) -> Result<Response, HttpError> {
    let deadline = Instant::now() + timeouts.total;
    let stream = Stream::connect(endpoint, timeouts.idle.min(timeouts.total))
        .map_err(|source| HttpError::Connect { endpoint: endpoint.clone(), source })?;
    let timed = Timed { stream, idle: timeouts.idle, deadline };
    conversation(timed, request, body).map_err(|source| HttpError::Exchange {
        endpoint: endpoint.clone(),
        // Queries carry nothing that a reader of the message needs.
        request: request.split('?').next().unwrap_or(request).to_owned(),
        source,
    })
}

fn conversation(mut stream: Timed, request: &str, body: Body<'_>) -> io::Result<Response> {
    // The engine ignores the host's name, but HTTP/1.1 wants one.
    let head = format!("{request} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n");
    let mut sent = Ok(());
    match body {
        Body::None => stream.write_all(format!("{head}Content-Length: 0\r\n\r\n").as_bytes())?,
        Body::Stream(feed) => {
            let head = format!("{head}Content-Type: application/x-tar\r\nTransfer-Encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            let mut chunks = io::BufWriter::with_capacity(UPLOAD_CHUNK, Chunked(&mut stream));
            sent = feed(&mut chunks).and_then(|()| chunks.flush());
            // A buffered rest must not follow on drop after a failure.
            let _ = chunks.into_parts();
            match &sent {
                Ok(()) => stream.write_all(b"0\r\n\r\n")?,
                Err(_) => stream.stream.end_writing(),
            }
        }
    }
    let reply = read_response(&mut BufReader::new(stream));
    match (sent, reply) {
        (Ok(()), reply) => reply,
        // An engine that refuses an upload half-way says why before it closes; that beats "broken pipe".
        (Err(error), Ok(reply)) if !reply.body.is_empty() => {
            let said = String::from_utf8_lossy(&reply.body);
            Err(io::Error::new(error.kind(), format!("{error}; the engine said: {}", said.trim())))
        }
        (Err(error), _) => Err(error),
    }
}

/// Reads one reply: a body by chunks, by length, or up to the end of the stream.
fn read_response(stream: &mut impl BufRead) -> io::Result<Response> {
    let status_line = read_line(stream)?;
    let status = status_line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.parse::<u16>().ok())
        .ok_or_else(|| malformed("the status line is not HTTP/1"))?;
    let mut length = None;
    let mut chunked = false;
    for seen in 0.. {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        if seen == MAX_HEADERS {
            return Err(malformed("too many header lines"));
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(malformed("a header has no colon"));
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.parse::<u64>().map_err(|_| malformed("the content length is no number"))?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.eq_ignore_ascii_case("chunked");
        }
    }
    let mut body = Vec::new();
    if chunked {
        read_chunks(stream, &mut body)?;
    } else if let Some(length) = length {
        read_exactly(stream, length, &mut body)?;
    } else {
        stream.take(MAX_BODY as u64 + 1).read_to_end(&mut body)?;
        if body.len() > MAX_BODY {
            return Err(malformed("the reply is too long"));
        }
    }
    Ok(Response { status, body })
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let line = read_line(stream)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| malformed("a chunk has no size"))?;
        if size == 0 {
            // Trailers, if any, up to the empty line; the stream may also just end.
            while !read_line(stream).unwrap_or_default().is_empty() {}
            return Ok(());
        }
        read_exactly(stream, size, body)?;
        if !read_line(stream)?.is_empty() {
            return Err(malformed("a chunk is longer than its size"));
        }
    }
}

fn read_exactly(stream: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if length > (MAX_BODY - body.len()) as u64 {
        return Err(malformed("the reply is too long"));
    }
    let read = stream.take(length).read_to_end(body)?;
    if (read as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| malformed("a header is not UTF-8"))
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Connects to a Unix socket, giving up after `patience`.
///
/// The standard library has no time-out here, and a daemon that hangs with a full backlog blocks `connect` for ever; the
/// thread that waits for it then ends with the process.
pub(super) fn connect_unix(path: &Path, timeouts: Duration) -> io::Result<UnixStream> {
    let (sender, receiver) = mpsc::channel();
    let path = path.to_owned();
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(move || sender.send(UnixStream::connect(path)))?;
    receiver.recv_timeout(timeouts).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(endpoint: &Endpoint, timeouts: Duration) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => connect_unix(path, timeouts).map(Self::Unix),
            Endpoint::Tcp(address) => {
                let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeouts) {
                        Ok(stream) => return Ok(Self::Tcp(stream)),
                        Err(failed) => error = failed,
                    }
                }
                Err(error)
            }
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)))
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)))
            }
        }
    }

    /// Says that no more will come; best effort, since the other side may be gone already.
    fn end_writing(&self) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Write),
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write),
        };
    }
}

/// A stream on which neither a silence nor the whole call can last too long.
struct Timed {
    stream: Stream,
    idle: Duration,
    deadline: Instant,
}

impl Timed {
    fn arm(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeout(left.min(self.idle))
    }
}

/// An expired socket time-out reads as "would block"; say what it means.
fn name_timeout(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.arm()?;
        match &mut self.stream {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
        .map_err(name_timeout)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.arm()?;
        match &mut self.stream {
            Stream::Unix(stream) => stream.write(buffer),
            Stream::Tcp(stream) => stream.write(buffer),
        }
        .map_err(name_timeout)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames every write as one chunk.
struct Chunked<'a>(&'a mut Timed);

impl Write for Chunked<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        // An empty chunk would end the body.
        if !buffer.is_empty() {
            write!(self.0, "{:x}\r\n", buffer.len())?;
            self.0.write_all(buffer)?;
            self.0.write_all(b"\r\n")?;
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, expected: Result<(u16, &str), &str>) {
        let read = read_response(&mut reply.as_bytes());
        let read = read.map(|r| (r.status, String::from_utf8(r.body).unwrap())).map_err(|e| e.to_string());
        assert_eq!(read, expected.map(|(s, b)| (s, b.to_owned())).map_err(str::to_owned), "{reply:?}");
    }

    #[test]
    fn replies_are_read_by_chunks_by_length_and_to_the_end() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOKtrailing", Ok((200, "OK")));
        check("HTTP/1.0 200 OK\r\n\r\nall of it", Ok((200, "all of it")));
        check("HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", Ok((404, "")));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            Ok((200, "abc0123456789")),
        );
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", Ok((200, "")));
    }

    #[test]
    fn broken_replies_are_refused() {
        check("", Err("unexpected end of file"));
        check("SSH-2.0-OpenSSH_9\r\n", Err("the status line is not HTTP/1"));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Err("unexpected end of file"));
        check("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Err("the content length is no number"));
        check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", Err("the reply is too long"));
        check("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", Err("a header has no colon"));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Err("a chunk has no size"));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            Err("a chunk is longer than its size"),
        );
        check(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(200)), Err("too many header lines"));
        check(&format!("HTTP/1.1 200 {}", "x".repeat(20_000)), Err("unexpected end of file"));
    }

    #[test]
    fn query_values_are_encoded() {
        for (value, expected) in [
            ("bookworm-slim", "bookworm-slim"),
            ("CMD [\"bash\"]", "CMD%20%5B%22bash%22%5D"),
            ("a=b&c", "a%3Db%26c"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(encode(value), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_reply_makes_the_reader_panic(bytes: Vec<u8>) {
            let _ = read_response(&mut bytes.as_slice());
            let _ = read_response(&mut [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice(), &bytes].concat().as_slice());
        }
    }
}
