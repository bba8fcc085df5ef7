//! The two ends of an output whose middle nobody will read.

use std::collections::VecDeque;

/// Keeps the first and the last bytes of what is pushed, and counts all of them.
#[derive(Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps at most `limit` bytes: half of them from the start, half from the end.
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

    /// Everything that was pushed, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What was kept. Where bytes are missing stands a line with their exact number; no UTF-8 character is cut in two.
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

/// The line that stands for missing bytes.
pub fn marker(omitted: u64) -> String {
    format!("\n… {omitted} bytes omitted …\n")
}

/// Longest UTF-8 character.
const MAX_CHAR: usize = 4;

/// Length without a character that has only just begun.
fn last_boundary(bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(MAX_CHAR - 1);
    let Some(start) = bytes[window..].iter().rposition(|byte| byte & 0b1100_0000 != 0b1000_0000) else {
        return bytes.len(); // Continuation bytes only: not UTF-8, so there is no character to spare.
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

/// Number of bytes that belong to a character begun before.
fn first_boundary(bytes: &[u8]) -> usize {
    let continuation =
        bytes.iter().take(MAX_CHAR).take_while(|byte| *byte & 0b1100_0000 == 0b1000_0000).count();
    if continuation == MAX_CHAR { 0 } else { continuation }
}
