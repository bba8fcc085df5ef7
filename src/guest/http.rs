//! Where an HTTP/1.1 request ends (RFC 9112 §6): all that the guest knows of HTTP.

/// What tells a caller to go on with its body.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Longer heads are no request to a model.
const MAX_HEAD: usize = 64 << 10;

/// How much of a request is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Partial {
        /// The caller waits for [`CONTINUE`] before it sends its body.
        expects_continue: bool,
    },
    Complete,
    Malformed,
}

/// Looks at what has arrived.
pub(super) fn look(bytes: &[u8]) -> Message {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > MAX_HEAD {
            Message::Malformed
        } else {
            Message::Partial { expects_continue: false }
        };
    };
    let (head, body) = (&bytes[..end], &bytes[end + 4..]);
    let header = |name: &str| {
        let lines = head.split(|&byte| byte == b'\n').skip(1);
        let mut values = lines.filter_map(|line| {
            let line = std::str::from_utf8(line).ok()?;
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_ascii_lowercase())
        });
        values.next()
    };
    let expects_continue = header("expect").is_some_and(|value| value == "100-continue");
    let complete = if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        body.starts_with(b"0\r\n\r\n") || find(body, b"\r\n0\r\n\r\n").is_some()
    } else {
        match header("content-length").map(|length| length.parse::<usize>()) {
            None => true,
            Some(Ok(length)) => body.len() >= length,
            Some(Err(_)) => return Message::Malformed,
        }
    };
    if complete { Message::Complete } else { Message::Partial { expects_continue } }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_end() {
        let check = |text: &str, expect: Message| assert_eq!(look(text.as_bytes()), expect, "{text:?}");
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
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", partial);
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            Message::Complete,
        );
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Message::Complete);
        check("POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", Message::Malformed);
        check(&"x".repeat(70_000), Message::Malformed);
    }
}
