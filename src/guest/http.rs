//! Finds the end of an HTTP/1.1 request (RFC 9112 §6). The guest understands nothing else of HTTP.

use super::frame::MAX_HEAD;

/// A client that asked for it sends its body after this response.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Maximum length of a chunk-size line or a trailer line, in bytes.
const MAX_CHUNK_LINE: usize = 4096;

/// How much of a request has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Partial {
        /// The client sends its body only after [`CONTINUE`].
        expects_continue: bool,
    },
    /// The last piece has this many bytes of the request.
    Complete(usize),
    Malformed,
}

/// Finds the end of a request while its bytes arrive. It keeps only the head and single lines.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    stage: Stage,
    /// The start of a head or a line whose end has not arrived.
    kept: Vec<u8>,
    expects_continue: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Head,
    /// This many bytes of the body, and nothing after them.
    Body(usize),
    ChunkSize,
    /// This many bytes of a chunk, with the line end after it.
    Chunk(usize),
    /// A trailer line, or the empty line at the end.
    Trailer,
}

/// The request cannot be relayed.
struct Malformed;

impl Scanner {
    /// Scans the next piece of the request.
    pub(super) fn take(&mut self, piece: &[u8]) -> Message {
        match self.end_in(piece) {
            Ok(Some(end)) => Message::Complete(end),
            Ok(None) => Message::Partial { expects_continue: self.expects_continue },
            Err(Malformed) => Message::Malformed,
        }
    }

    fn end_in(&mut self, piece: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut rest = piece;
        loop {
            self.stage = match self.stage {
                Stage::Head => match self.until(b"\r\n\r\n", MAX_HEAD, &mut rest)? {
                    Some(head) => self.read_head(&head)?,
                    None => return Ok(None),
                },
                Stage::ChunkSize => match self.until(CRLF, MAX_CHUNK_LINE, &mut rest)? {
                    Some(line) => match chunk_size(&line)? {
                        0 => Stage::Trailer,
                        size => Stage::Chunk(size.checked_add(CRLF.len()).ok_or(Malformed)?),
                    },
                    None => return Ok(None),
                },
                Stage::Trailer => match self.until(CRLF, MAX_CHUNK_LINE, &mut rest)? {
                    Some(line) if line.is_empty() => return Ok(Some(piece.len() - rest.len())),
                    Some(_) => Stage::Trailer,
                    None => return Ok(None),
                },
                Stage::Body(left) => {
                    let left = skip(left, &mut rest);
                    if left == 0 {
                        return Ok(Some(piece.len() - rest.len()));
                    }
                    self.stage = Stage::Body(left);
                    return Ok(None);
                }
                Stage::Chunk(left) => match skip(left, &mut rest) {
                    0 => Stage::ChunkSize,
                    left => {
                        self.stage = Stage::Chunk(left);
                        return Ok(None);
                    }
                },
            };
        }
    }

    /// Takes everything before `end`, and `end` itself, from `rest`. `None` if it has not arrived.
    fn until(&mut self, end: &[u8], max: usize, rest: &mut &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
        // The last bytes that were kept may begin the end.
        let from = self.kept.len().saturating_sub(end.len() - 1);
        let before = self.kept.len();
        let room = (max + end.len()).saturating_sub(before).min(rest.len());
        self.kept.extend_from_slice(&rest[..room]);
        match find(&self.kept[from..], end) {
            Some(at) => {
                let length = from + at;
                *rest = &rest[length + end.len() - before..];
                let mut text = std::mem::take(&mut self.kept);
                text.truncate(length);
                Ok(Some(text))
            }
            None if self.kept.len() >= max + end.len() => Err(Malformed),
            None => {
                *rest = &[];
                Ok(None)
            }
        }
    }

    fn read_head(&mut self, head: &[u8]) -> Result<Stage, Malformed> {
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
        if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            return Ok(Stage::ChunkSize);
        }
        let length = header("content-length").map_or(Ok(0), |length| length.parse::<usize>());
        length.map(Stage::Body).map_err(|_| Malformed)
    }
}

/// The end of a line.
const CRLF: &[u8] = b"\r\n";

/// Skips up to `count` bytes. Returns how many have not arrived.
fn skip(count: usize, rest: &mut &[u8]) -> usize {
    let here = count.min(rest.len());
    *rest = &rest[here..];
    count - here
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

    const DONE: Expect = Expect::Complete;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Expect {
        Partial { expects_continue: bool },
        Complete,
        Malformed,
    }

    /// Scans `text` in pieces of `size` bytes, and returns the result with the bytes of the
    /// request.
    fn scan(text: &[u8], size: usize) -> (Expect, usize) {
        let mut scanner = Scanner::default();
        let mut last = Expect::Partial { expects_continue: false };
        for (index, piece) in text.chunks(size).enumerate() {
            last = match scanner.take(piece) {
                Message::Complete(end) => return (Expect::Complete, index * size + end),
                Message::Malformed => return (Expect::Malformed, 0),
                Message::Partial { expects_continue } => Expect::Partial { expects_continue },
            };
        }
        (last, 0)
    }

    /// The result must not depend on how the bytes are split. Bytes of a next request do not count.
    fn check(text: &str, expect: Expect) {
        for size in [1, 2, 3, 7, text.len().max(1)] {
            let length = if expect == Expect::Complete { text.len() } else { 0 };
            assert_eq!(scan(text.as_bytes(), size), (expect, length), "{text:?} by {size}");
            if expect == Expect::Complete {
                let more = format!("{text}GET / HTTP/1.1\r\n");
                assert_eq!(scan(more.as_bytes(), size), (expect, length), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn requests_end() {
        let partial = Expect::Partial { expects_continue: false };
        check("", partial);
        check("GET / HTTP/1.1\r\nHost: x\r\n", partial);
        check("GET / HTTP/1.1\r\nHost: x\r\n\r\n", DONE);
        check("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", partial);
        check("POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nabc", DONE);
        check(
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n",
            Expect::Partial { expects_continue: true },
        );
        check("POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", Expect::Malformed);
        check(&format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", usize::MAX), partial);
        check(&format!("POST / HTTP/1.1\r\nContent-Length: {}0\r\n\r\n", usize::MAX), Expect::Malformed);
        assert_eq!(scan(&[b'x'; 70_000], 1000), (Expect::Malformed, 0));
    }

    #[test]
    fn chunked_requests_end_at_the_last_chunk_and_nowhere_before() {
        let check = |body: &str, expect: Expect| {
            check(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), expect);
        };
        let partial = Expect::Partial { expects_continue: false };
        check("", partial);
        check("3\r\nabc\r\n", partial);
        check("3\r\nabc\r\n0\r\n", partial);
        check("3\r\nabc\r\n0\r\n\r\n", DONE);
        check("0\r\n\r\n", DONE);
        check("0\r\nTrailer: 1\r\n\r\n", DONE);
        check("A;name=value\r\n0123456789\r\n0\r\n\r\n", DONE);
        // A line end within a chunk is content.
        check("7\r\n\r\n0\r\n\r\n\r\n", partial);
        check("7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", DONE);
        check("x\r\nabc\r\n", Expect::Malformed);
        check("-1\r\nabc\r\n", Expect::Malformed);
        check("\r\n", Expect::Malformed);
        check("ffffffffffffffff\r\nabc\r\n", Expect::Malformed);
        check(&"1".repeat(5000), Expect::Malformed);
    }
}
