//! The process table, read from `/proc`.

use std::fs;

/// A process. Its number can be used again later, but not with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// Clock ticks since boot.
    pub(super) started: u64,
}

/// All visible processes. Some that end during the scan may be missing.
pub(super) fn processes() -> Vec<Entry> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// The members of a session.
pub(super) fn session(session: i32) -> Vec<Entry> {
    let mut members = processes();
    members.retain(|entry| entry.session == session);
    members
}

/// The members of a session, and all descendants of `roots` and of the members.
pub(super) fn family(session: i32, roots: &[i32]) -> Vec<Entry> {
    let mut rest = processes();
    let mut found: Vec<Entry> = Vec::new();
    loop {
        let belongs = |entry: &Entry| {
            entry.session == session
                || roots.contains(&entry.parent)
                || found.iter().any(|member| member.pid == entry.parent)
        };
        let (more, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(belongs);
        if more.is_empty() {
            return found;
        }
        found.extend(more);
        rest = others;
    }
}

/// Whether a process sleeps and has nothing to do. (The state changes, so it is no field of
/// [`Entry`].)
pub(super) fn sleeps(pid: i32) -> bool {
    state(pid) == Some(b'S')
}

/// Whether a process is stopped (e.g. by `SIGSTOP`), and does nothing until it is continued.
pub(super) fn is_stopped(pid: i32) -> bool {
    state(pid) == Some(b'T')
}

/// The letter of a process's state, as in proc(5).
fn state(pid: i32) -> Option<u8> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

/// Parses `/proc/<pid>/stat`: `pid (name) state ppid pgrp session …`. The name can have any
/// characters, even `)`.
fn parse_stat(line: &[u8]) -> Option<Entry> {
    let line = String::from_utf8_lossy(line);
    let (pid, rest) = line.split_once(' ')?;
    let (_, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Numbers of fields as in proc(5): the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Entry {
        pid: pid.parse().ok()?,
        parent: field(4)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        started: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_with_any_process_name_are_parsed() {
        let check = |name: &str| {
            let line = format!("42 ({name}) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20");
            let expected = Entry { pid: 42, parent: 7, session: 41, started: 98765 };
            assert_eq!(parse_stat(line.as_bytes()), Some(expected), "{name}");
        };
        check("bash");
        check("a b");
        check(":) S 1 1 1");
        check("\n");
    }

    #[test]
    fn incomplete_lines_are_no_process() {
        for line in ["", "42", "42 (bash", "42 (bash) S 7", "x (bash) S 7 42 41 0"] {
            assert_eq!(parse_stat(line.as_bytes()), None, "{line}");
        }
    }
}
