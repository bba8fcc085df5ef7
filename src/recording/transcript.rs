//! The lines that the terminal showed in a session.

use std::collections::BTreeMap;

use super::asciicast::Session;
use crate::agent::terminal::Screen;

/// Size of the terminal, if the recording does not say.
const ROWS: u16 = 24;
const COLUMNS: u64 = 80;
/// Maximum columns of an emulated terminal.
const MAX_COLUMNS: u64 = 500;
/// Erases the screen. The text on it is part of the session all the same.
const CLEAR: &str = "\x1b[2J";
/// Maximum number of lines of a transcript. An hour of a compiler's output has tens of thousands.
pub(super) const MAX_LINES: usize = 200_000;
/// After this many bytes, the lines are counted.
const STEP: usize = 64 << 10;

/// A line of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// The texts before the cursor whenever the output paused on this line. A shell pauses after
    /// its prompt, since it waits for input.
    pub(super) waited: Vec<String>,
}

/// The output as a terminal shows it, with all text that left the screen or was erased. `None` if
/// it has too many lines.
pub(super) fn rendered(session: &Session) -> Option<Vec<Line>> {
    let columns = session.columns.unwrap_or(COLUMNS).clamp(1, MAX_COLUMNS);
    let columns = u16::try_from(columns).unwrap_or(u16::MAX);
    let mut lines = Vec::new();
    let mut pauses = session.pauses.iter().copied().peekable();
    let mut begin = 0;
    for part in session.output.split(CLEAR) {
        let end = begin + part.len();
        let mut screen = Screen::with_whole_history(ROWS, columns);
        let mut waited: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut at = begin;
        while at < end {
            while pauses.next_if(|pause| *pause <= at).is_some() {}
            let pause = pauses.peek().copied().unwrap_or(end);
            let next = pause.min(end).min(at + STEP);
            screen.feed(&session.output.as_bytes()[at..next]);
            if next == pause {
                let (row, before) = screen.before_cursor();
                let before = before.trim_end();
                if !before.is_empty() {
                    waited.entry(row).or_default().push(before.to_owned());
                }
            }
            if lines.len() + screen.lines() > MAX_LINES + usize::from(ROWS) {
                return None;
            }
            at = next;
        }
        begin = end + CLEAR.len();
        // Long commands are wrapped.
        let shown = screen.joined_lines().into_iter().map(|(row, text)| Line {
            text: text.trim_end().to_owned(),
            waited: waited.remove(&row).unwrap_or_default(),
        });
        let shown: Vec<_> = shown.collect();
        let last = shown.iter().rposition(|line| !line.text.is_empty()).map_or(0, |last| last + 1);
        lines.extend(shown.into_iter().take(last));
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(output: &str) -> Session {
        Session { columns: Some(10), output: output.to_owned(), ..Session::default() }
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let check = |output: &str, expect: &str| {
            let lines = rendered(&session(output)).unwrap();
            let text: String = lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
            assert_eq!(text, expect, "{output:?}");
        };
        check("$ cat a\r\nb\r\n", "$ cat a\nb\n");
        check("$ ls | head -1\r\na\r\n", "$ ls | head -1\na\n");
        // A line editor goes to the next line before it continues. Here it does so after a blank in
        // the last column.
        check("$ ls  a |  \rwc -l\r\n3\r\n", "$ ls  a | wc -l\n3\n");
        check("0123456789\r\nb\r\n", "0123456789\nb\n");
        check(
            &format!("$ ls | head -1\r\n{}", "a\r\n".repeat(30)),
            &format!("$ ls | head -1\n{}", "a\n".repeat(30)),
        );
        check("$ a\r\n\u{1b}[2J\u{1b}[H$ b\r\n", "$ a\n$ b\n");
    }

    #[test]
    fn pauses_belong_to_their_lines() {
        // A pause follows each part.
        let check = |parts: &[&str], expect: &[(&str, &[&str])]| {
            let mut session = session("");
            for part in parts {
                session.output.push_str(part);
                session.pauses.push(session.output.len());
            }
            let lines = rendered(&session).unwrap();
            let found = lines
                .iter()
                .map(|line| (line.text.as_str(), line.waited.iter().map(String::as_str).collect::<Vec<_>>()));
            let expect = expect.iter().map(|(text, waited)| (*text, waited.to_vec()));
            assert_eq!(found.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
        };
        check(&["$ ", "l", "s\r\nb\r\n$ "], &[("$ ls", &["$", "$ l"]), ("b", &[]), ("$", &["$"])]);
        check(&["$ ", "a\u{1b}[2J\u{1b}[H$ ", "b\r\n"], &[("$ a", &["$"]), ("$ b", &["$"])]);
        let many = "a\r\n".repeat(30);
        let lines: Vec<(&str, &[&str])> = std::iter::repeat_n(("a", &[] as &[&str]), 30).collect();
        check(&[&many, "$ ", "ls"], &[lines.as_slice(), &[("$ ls", &["$", "$ ls"])]].concat());
    }

    #[test]
    fn transcripts_have_a_bound() {
        let check = |output: &str, columns: u64, expect: bool| {
            let session = Session { columns: Some(columns), output: output.to_owned(), ..Session::default() };
            assert_eq!(rendered(&session).is_some(), expect, "{} bytes", output.len());
        };
        check(&"a\r\n".repeat(MAX_LINES), 80, true);
        check(&"\n".repeat(MAX_LINES + 100), 80, false);
        check(&"a".repeat(MAX_LINES + 100), 1, false);
        check(&format!("a{CLEAR}").repeat(MAX_LINES + 100), 80, false);
        check(&"\u{1b}[20S".repeat(MAX_LINES / 10), 80, false);
    }
}
