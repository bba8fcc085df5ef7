//! Recordings of terminal sessions as seeds of tasks (TerminalWorld, §3): asciicasts of versions 1 to 3, and transcripts.
//!
//! A recording is untrusted: it is parsed within bounds, shown to a model as material, and never executed.

mod asciicast;
mod commands;
mod filters;

use std::path::{Path, PathBuf};

use crate::agent::terminal::Screen;

pub use filters::{FilterError, Filters, Refusal};

/// Bytes of a file. The recordings of TerminalWorld have a median of 20 KB; an hour of compiler output has a few megabytes.
const MAX_FILE: u64 = 32 << 20;
/// Bytes of a transcript that a prompt shows. A prompt of 8,000 tokens leaves room for the reply in every model of use.
const EXCERPT_BYTES: usize = 24_000;
/// Rows of the emulated terminal of a recording that names none.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;
/// Erases the screen: what was there before belongs to the session all the same.
const CLEAR: &str = "\x1b[2J";
/// Columns beyond which no terminal is emulated.
const MAX_COLUMNS: u16 = 1000;

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file's name without its extension.
    pub name: String,
    /// BLAKE3 of the file.
    pub digest: String,
    /// Of the header; empty if it has none.
    pub title: String,
    /// What the terminal showed, line by line, without control sequences.
    pub transcript: String,
    /// The command lines, in order.
    pub commands: Vec<String>,
    /// The output, with its control sequences.
    output: String,
}

/// A file that is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("failed to read `{}`: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}` has {bytes} bytes, and {MAX_FILE} are the most", path.display())]
    TooLong { path: PathBuf, bytes: u64 },
    #[error("`{}` is not UTF-8", path.display())]
    NotText { path: PathBuf },
    #[error("`{}`:{line}: {message}\nhint: asciicasts of versions 1, 2 and 3 are understood, and plain transcripts", path.display())]
    Malformed { path: PathBuf, line: usize, message: String },
    #[error("`{}` shows no command: no line begins with a prompt, and no input was recorded", path.display())]
    NoCommand { path: PathBuf },
}

/// A parsed file.
#[derive(Debug, Default)]
struct Session {
    title: String,
    columns: Option<u16>,
    output: String,
    /// What was typed, if it was recorded.
    input: String,
}

impl Recording {
    /// Reads the recording in `path`.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(io)?.len();
        if bytes > MAX_FILE {
            return Err(RecordingError::TooLong { path: path.to_owned(), bytes });
        }
        let bytes = std::fs::read(path).map_err(io)?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        let text = String::from_utf8(bytes).map_err(|_| RecordingError::NotText { path: path.to_owned() })?;
        let session = asciicast::parse(&text).map_err(|(line, message)| RecordingError::Malformed {
            path: path.to_owned(),
            line,
            message,
        })?;
        let transcript = rendered(&session);
        let commands = match commands::typed(&session.input) {
            typed if typed.is_empty() => commands::prompted(&transcript),
            typed => typed,
        };
        if commands.is_empty() {
            return Err(RecordingError::NoCommand { path: path.to_owned() });
        }
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, digest, title: session.title, transcript, commands, output: session.output })
    }
}

impl Recording {
    /// The transcript for a prompt: a long one without its middle, and the last lines that fit without their ends.
    pub fn excerpt(&self) -> String {
        let lines: Vec<_> = self.transcript.lines().collect();
        let mut kept = (Vec::new(), Vec::new());
        let (mut first, mut last, mut left) = (0, lines.len(), EXCERPT_BYTES);
        // From both ends, so that the beginning and the end are shown.
        while first < last && left > 0 {
            kept.0.push(take(lines[first], &mut left));
            first += 1;
            if first < last && left > 0 {
                last -= 1;
                kept.1.push(take(lines[last], &mut left));
            }
        }
        let left_out = (first < last).then(|| format!("[… {} lines …]", last - first));
        let lines = kept.0.into_iter().chain(left_out);
        lines.chain(kept.1.into_iter().rev()).collect::<Vec<_>>().join("\n")
    }
}

/// `line` and its line feed out of the bytes that are `left`; the beginning of a longer one.
fn take(line: &str, left: &mut usize) -> String {
    let end = (0..=line.len().min(*left)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    let (shown, rest) = line.split_at(end);
    *left = left.saturating_sub(line.len() + 1);
    if rest.is_empty() { shown.to_owned() } else { format!("{shown}[… {} bytes …]", rest.len()) }
}

/// The output as a terminal shows it, with all that has left the screen, or was cleared.
fn rendered(session: &Session) -> String {
    let columns = session.columns.unwrap_or(COLUMNS).clamp(1, MAX_COLUMNS);
    let mut text = String::new();
    for part in session.output.split(CLEAR) {
        let mut screen = Screen::with_whole_history(ROWS, columns);
        screen.feed(part.as_bytes());
        // Long commands are wrapped.
        let shown = screen.joined_pane();
        let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
        let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        for line in &lines[..end] {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of a text, each as often as its number says.
    type Parts<'a> = [(&'a str, usize)];

    #[test]
    fn wrapped_lines_are_joined() {
        let check = |output: &str, expect: &str| {
            let session = Session { columns: Some(10), output: output.to_owned(), ..Session::default() };
            assert_eq!(rendered(&session), expect, "{output:?}");
        };
        check("$ cat a\r\nb\r\n", "$ cat a\nb\n");
        check("$ ls | head -1\r\na\r\n", "$ ls | head -1\na\n");
        // A line editor goes to the next line before it goes on, here behind a blank in the last column.
        check("$ ls  a |  \rwc -l\r\n3\r\n", "$ ls  a | wc -l\n3\n");
        check("0123456789\r\nb\r\n", "0123456789\nb\n");
        check(
            &format!("$ ls | head -1\r\n{}", "a\r\n".repeat(30)),
            &format!("$ ls | head -1\n{}", "a\n".repeat(30)),
        );
        check("$ a\r\n\u{1b}[2J\u{1b}[H$ b\r\n", "$ a\n$ b\n");
    }

    #[test]
    fn an_excerpt_has_a_bound() {
        let text =
            |parts: &Parts<'_>| parts.iter().map(|(part, times)| part.repeat(*times)).collect::<String>();
        let check = |transcript: &Parts<'_>, expect: &Parts<'_>| {
            let recording = Recording {
                name: String::new(),
                digest: String::new(),
                title: String::new(),
                transcript: text(transcript),
                commands: Vec::new(),
                output: String::new(),
            };
            let (found, expect) = (recording.excerpt(), text(expect));
            assert!(found == expect, "{} bytes, and {} were expected", found.len(), expect.len());
        };
        check(&[("$ ls\na\n", 1)], &[("$ ls\na", 1)]);
        check(&[("x", 300_000)], &[("x", EXCERPT_BYTES), ("[… 276000 bytes …]", 1)]);
        // Not within a character.
        check(&[("a", 1), ("é", 20_000)], &[("a", 1), ("é", 11_999), ("[… 16002 bytes …]", 1)]);
        check(
            &[("$ cat a\n", 1), ("x", 300_000), ("\n$ end\n", 1)],
            &[("$ cat a\n", 1), ("x", EXCERPT_BYTES - 14), ("[… 276014 bytes …]", 1), ("\n$ end", 1)],
        );
        let line = "0123456789012345678\n";
        check(&[(line, 2000)], &[(line, 600), ("[… 800 lines …]\n", 1), (line, 599), (line.trim_end(), 1)]);
    }
}
