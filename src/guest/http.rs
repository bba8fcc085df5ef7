//! Finds the end of an HTTP/1.1 request (RFC 9112 §6). The guest understands nothing else of HTTP.

/// A client that asked for it sends its body after this response.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Maximum length of a request's head, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// Maximum length of a chunk-size line or a trailer line, in bytes.
const MAX_CHUNK_LINE: usize = 4096;

/// How much of a request has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Partial {
        /// The client sends its body only after [`CONTINUE`].
        expects_continue: bool,
    },
    Complete,
    Malformed,
}

/// Finds the end of a request while its bytes arrive. Each byte is scanned once.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// Number of scanned bytes.
    scanned: usize,
    body: Body,
    expects_continue: bool,
}

/// How the body ends.
#[derive(Clone, Copy, Debug, Default)]
enum Body {
    /// The head is not complete yet.
    #[default]
    Unknown,
    /// The body ends at this offset of the request.
    EndsAt(usize),
    /// With a chunk of length zero. The next chunk-size line begins at `scanned`.
    ChunkSize,
    /// The last chunk has arrived. The next trailer line begins at `scanned`.
    Trailers,
}

/// The request cannot be relayed.
struct Malformed;

impl Scanner {
    /// Scans the request. `bytes` are all bytes so far.
    pub(super) fn look(&mut self, bytes: &[u8]) -> Message {
        match self.is_complete(bytes) {
            Ok(true) => Message::Complete,
            Ok(false) => Message::Partial { expects_continue: self.expects_continue },
            Err(Malformed) => Message::Malformed,
        }
    }

    fn is_complete(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        loop {
            match self.body {
                Body::Unknown => {
                    let Some(length) = find(&bytes[self.scanned..], b"\r\n\r\n") else {
                        // The last three bytes may begin the empty line.
                        self.scanned = bytes.len().saturating_sub(3);
                        return if bytes.len() > MAX_HEAD { Err(Malformed) } else { Ok(false) };
                    };
                    let end = self.scanned + length;
                    self.scanned = end + 4;
                    self.read_head(&bytes[..end])?;
                }
                Body::EndsAt(end) => return Ok(bytes.len() >= end),
                Body::ChunkSize => {
                    let Some(line) = next_line(&bytes[self.scanned.min(bytes.len())..])? else {
                        return Ok(false);
                    };
                    let size = chunk_size(line)?;
                    let after = self.scanned + line.len() + CRLF;
                    (self.scanned, self.body) = match size {
                        0 => (after, Body::Trailers),
                        size => {
                            let end = after.checked_add(size).ok_or(Malformed)?;
                            (end.checked_add(CRLF).ok_or(Malformed)?, Body::ChunkSize)
                        }
                    };
                }
                Body::Trailers => {
                    let Some(line) = next_line(&bytes[self.scanned.min(bytes.len())..])? else {
                        return Ok(false);
                    };
                    if line.is_empty() {
                        return Ok(true);
                    }
                    self.scanned += line.len() + CRLF;
                }
            }
        }
    }

    fn read_head(&mut self, head: &[u8]) -> Result<(), Malformed> {
        let header = |name: &str| {
            let lines = head.split(|&byte| byte == b'\n').skip(1);
            let mut values = lines.filter_map(|line| {
                let line = std::str::from_utf8(line).ok()?;
                let (key, value) = line.split_once(':')?;
                key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_ascii_lowercase())
            });
            values.next()
        };
        self.expects_continue = header("expect").is_some_and(|value| value == "100-continue");
        self.body = if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            Body::ChunkSize
        } else {
            let length = header("content-length").map_or(Ok(0), |length| length.parse::<usize>());
            let end = length.ok().and_then(|length| self.scanned.checked_add(length));
            Body::EndsAt(end.ok_or(Malformed)?)
        };
        Ok(())
    }
}

/// Length of a line end.
const CRLF: usize = 2;

/// The first line of `bytes` without its end. `None` if it is not complete.
fn next_line(bytes: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let window = &bytes[..bytes.len().min(MAX_CHUNK_LINE)];
    match find(window, b"\r\n") {
        Some(end) => Ok(Some(&window[..end])),
        None if window.len() == MAX_CHUNK_LINE => Err(Malformed),
        None => Ok(None),
    }
}

/// Parses a hexadecimal size. Extensions after a semicolon are ignored.
fn chunk_size(line: &[u8]) -> Result<usize, Malformed> {
    let text = std::str::from_utf8(line).map_err(|_| Malformed)?;
    let digits = text.split(';').next().unwrap_or_default().trim();
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { usize::from_str_radix(digits, 16).map_err(|_| Malformed) } else { Err(Malformed) }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result must not depend on how the bytes are split.
    fn check(text: &str, expect: Message) {
        assert_eq!(Scanner::default().look(text.as_bytes()), expect, "{text:?}");
        let mut scanner = Scanner::default();
        let stepwise: Vec<Message> =
            (0..=text.len()).map(|end| scanner.look(&text.as_bytes()[..end])).collect();
        assert_eq!(stepwise.last(), Some(&expect), "{text:?} byte by byte");
        let early = stepwise[..text.len()].iter().position(|message| *message == Message::Complete);
        assert_eq!(early, None, "{text:?} is complete too early");
    }

    #[test]
    fn requests_end() {
        let partial = Message::Partial { expects_continue: false };
        check("", partial);
        check("GET / HTTP/1.1\r\nHost: x\r\n", partial);
        check("GET / HTTP/1.1\r\nHost: x\r\n\r\n", Message::Complete);
        check("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", partial);
        check("POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nabc", Message::Complete);
        check(
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n",
            Message::Partial { expects_continue: true },
        );
        check("POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", Message::Malformed);
        check(&format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", usize::MAX), Message::Malformed);
        assert_eq!(Scanner::default().look(&[b'x'; 70_000]), Message::Malformed);
    }

    #[test]
    fn chunked_requests_end_at_the_last_chunk_and_nowhere_before() {
        let check = |body: &str, expect: Message| {
            check(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), expect);
        };
        let partial = Message::Partial { expects_continue: false };
        check("", partial);
        check("3\r\nabc\r\n", partial);
        check("3\r\nabc\r\n0\r\n", partial);
        check("3\r\nabc\r\n0\r\n\r\n", Message::Complete);
        check("0\r\n\r\n", Message::Complete);
        check("0\r\nTrailer: 1\r\n\r\n", Message::Complete);
        check("A;name=value\r\n0123456789\r\n0\r\n\r\n", Message::Complete);
        // A line end within a chunk is content.
        check("7\r\n\r\n0\r\n\r\n\r\n", partial);
        check("7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", Message::Complete);
        check("x\r\nabc\r\n", Message::Malformed);
        check("-1\r\nabc\r\n", Message::Malformed);
        check("\r\n", Message::Malformed);
        check("ffffffffffffffff\r\nabc\r\n", Message::Malformed);
        check(&"1".repeat(5000), Message::Malformed);
    }
}
