//! An output in bounded memory: its head and its tail.

use std::collections::VecDeque;

/// Keeps the first and the last bytes of an output, and counts all.
#[derive(Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps at most `limit` bytes: one half from the start, one from the end.
    pub fn new(limit: usize) -> Self {
        let head_limit = limit / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit: limit - head_limit, total: 0 }
    }

    /// Adds bytes at the end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Number of bytes of the output, retained or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The retained bytes. A line with the exact number of omitted bytes stands in the middle. No
    /// UTF-8 character is cut in two.
    pub fn into_bytes(self) -> Vec<u8> {
        let Self { mut head, tail, total, .. } = self;
        let tail = Vec::from(tail);
        if head.len() as u64 + tail.len() as u64 == total {
            head.extend_from_slice(&tail);
            return head;
        }
        head.truncate(last_boundary(&head));
        let tail = &tail[first_boundary(&tail)..];
        let omitted = total - head.len() as u64 - tail.len() as u64;
        head.extend_from_slice(marker(omitted).as_bytes());
        head.extend_from_slice(tail);
        head
    }
}

/// The line in place of omitted bytes.
pub fn marker(omitted: u64) -> String {
    format!("\n… {omitted} bytes omitted …\n")
}

/// Maximum bytes of a UTF-8 character.
const MAX_CHAR: usize = 4;

/// Length of `bytes` without an incomplete character at the end.
fn last_boundary(bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(MAX_CHAR - 1);
    let Some(start) = bytes[window..].iter().rposition(|byte| byte & 0b1100_0000 != 0b1000_0000) else {
        // Only continuation bytes: the text is not UTF-8, so no character can be cut.
        return bytes.len();
    };
    let start = window + start;
    let needed = match bytes[start] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if start + needed > bytes.len() { start } else { bytes.len() }
}

/// Number of leading bytes that belong to an earlier character.
fn first_boundary(bytes: &[u8]) -> usize {
    let continuation =
        bytes.iter().take(MAX_CHAR).take_while(|byte| *byte & 0b1100_0000 == 0b1000_0000).count();
    if continuation == MAX_CHAR { 0 } else { continuation }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn retained(limit: usize, pieces: &[&[u8]]) -> (Vec<u8>, u64) {
        let mut buffer = HeadTail::new(limit);
        pieces.iter().for_each(|piece| buffer.push(piece));
        let total = buffer.total();
        (buffer.into_bytes(), total)
    }

    #[test]
    fn the_middle_is_dropped_and_counted() {
        let check = |limit, input: &str, expected: &str| {
            let (bytes, total) = retained(limit, &[input.as_bytes()]);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{limit} {input}");
            assert_eq!(total, input.len() as u64);
        };
        check(10, "", "");
        check(10, "0123456789", "0123456789");
        check(10, "0123456789x", "01234\n… 1 bytes omitted …\n6789x");
        check(3, "abcdef", "a\n… 3 bytes omitted …\nef");
        check(1, "abc", "\n… 2 bytes omitted …\nc");
        check(0, "abc", "\n… 3 bytes omitted …\n");
        // A character that does not fit is omitted whole, and counted.
        check(8, "abc😀defg", "abc\n… 4 bytes omitted …\ndefg");
        check(8, "abcdef😀", "abcd\n… 2 bytes omitted …\n😀");
        check(6, "abcdef😀", "abc\n… 7 bytes omitted …\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_cut_anywhere() {
        let (bytes, _) = retained(8, &[&[0xff; 20]]);
        assert_eq!(bytes, [&[0xff; 4][..], marker(12).as_bytes(), &[0xff; 4]].concat());
        let (bytes, _) = retained(8, &[&[0x80; 20]]);
        assert_eq!(bytes, [&[0x80; 4][..], marker(12).as_bytes(), &[0x80; 4]].concat());
    }

    proptest! {
        #[test]
        fn counts_are_exact_for_any_split(input in prop::collection::vec(any::<u8>(), 0..200), limit in 0usize..100, size in 1usize..20) {
            let (whole, total) = retained(limit, &[&input]);
            let (pieces, _) = retained(limit, &input.chunks(size).collect::<Vec<_>>());
            prop_assert_eq!(&whole, &pieces);
            prop_assert_eq!(total, input.len() as u64);
            if input.len() <= limit {
                prop_assert_eq!(whole, input);
            } else {
                let found = (0..=input.len()).any(|omitted| {
                    let marker = marker(omitted as u64).into_bytes();
                    whole.windows(marker.len()).enumerate().any(|(place, window)| {
                        let tail = whole.len() - place - marker.len();
                        window == marker
                            && place + omitted + tail == input.len()
                            && input.starts_with(&whole[..place])
                            && input.ends_with(&whole[whole.len() - tail..])
                    })
                });
                prop_assert!(found, "{:?}", String::from_utf8_lossy(&whole));
            }
        }

        #[test]
        fn text_stays_text(input in "\\PC{0,60}", limit in 0usize..60) {
            let (bytes, _) = retained(limit, &[input.as_bytes()]);
            prop_assert!(String::from_utf8(bytes).is_ok());
        }
    }
}
