//! Parses asciicasts (docs.asciinema.org/manual/asciicast) and plain transcripts.

use serde::Deserialize;
use serde_json::{Deserializer, Value};

use crate::folder::replace_lone_surrogates;

/// From this version on, each event is a line.
const FIRST_OF_LINES: u64 = 2;

/// A parsed file.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) title: String,
    pub(super) columns: Option<u64>,
    pub(super) output: String,
    /// Offsets in the output at which an event ends, in ascending order.
    pub(super) pauses: Vec<usize>,
    /// The input, if it was recorded.
    pub(super) input: String,
}

/// The fields of a header that are used, of all versions.
#[derive(Deserialize)]
struct Header {
    version: u64,
    #[serde(default)]
    title: Option<String>,
    /// In versions 1 and 2.
    #[serde(default)]
    width: Option<u64>,
    /// In version 3.
    #[serde(default)]
    term: Option<Term>,
    /// In version 1: pairs of a delay and an output.
    #[serde(default)]
    stdout: Option<Vec<(f64, String)>>,
}

#[derive(Deserialize)]
struct Term {
    #[serde(default)]
    cols: Option<u64>,
}

impl Session {
    fn show(&mut self, data: &str) {
        self.output.push_str(data);
        self.pauses.push(self.output.len());
    }
}

/// Parses a file. An error has its line, counted from 1.
pub(super) fn parse(text: &str) -> Result<Session, (usize, String)> {
    let text = text.trim_start_matches('\u{feff}');
    let Some(begin) = header_at(text) else {
        // A transcript has bare line feeds. On a terminal they would not return to the first
        // column.
        let output = text.replace("\r\n", "\n").replace('\n', "\r\n");
        return Ok(Session { output, ..Session::default() });
    };
    // A recorder can cut a character between two events.
    let text = replace_lone_surrogates(text);
    let line_of = |offset: usize| text[..offset].bytes().filter(|byte| *byte == b'\n').count();
    // A header can have several lines. In version 1 it is the whole recording.
    let mut values = Deserializer::from_str(&text[begin..]).into_iter::<Header>();
    let header = match values.next() {
        Some(Ok(header)) => header,
        Some(Err(error)) => return Err((line_of(begin) + error.line(), error.to_string())),
        None => return Err((1, "it has no header".to_owned())),
    };
    let end = begin + values.byte_offset();
    // A recorder without a terminal writes 0.
    let columns = header.width.or(header.term.and_then(|term| term.cols)).filter(|columns| *columns > 0);
    let mut session = Session { title: header.title.unwrap_or_default(), columns, ..Session::default() };
    match (header.version, header.stdout) {
        (1, Some(stdout)) => stdout.iter().for_each(|(_, data)| session.show(data)),
        (1, None) => return Err((1, "an asciicast of version 1 has `stdout`".to_owned())),
        (FIRST_OF_LINES..=3, _) => events(&text[end..], line_of(end), &mut session)?,
        (version, _) => return Err((1, format!("version {version} of asciicast is not known"))),
    }
    Ok(session)
}

/// Where the header of an asciicast begins, after blank lines and comments. `None` if the file is a
/// transcript.
fn header_at(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_comment = line.starts_with('#');
        if !is_comment && !line.trim().is_empty() {
            // In a transcript `#` can be a prompt, and any output can follow it.
            let begins = line.trim_start().starts_with('{')
                && (!text[..at].contains('#') || line.contains("\"version\""));
            return begins.then_some(at);
        }
        at += line.len();
    }
    None
}

/// Reads the events of versions 2 and 3: a time or an interval, a code, and data. The formats
/// demand that comments and unknown codes are skipped.
fn events(text: &str, before: usize, session: &mut Session) -> Result<(), (usize, String)> {
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match serde_json::from_str::<(f64, String, Value)>(line) {
            Ok((_, code, Value::String(data))) if code == "o" => session.show(&data),
            Ok((_, code, Value::String(data))) if code == "i" => session.input.push_str(&data),
            Ok(_) => {}
            // A recorder that was killed leaves a part of a line.
            Err(error) if error.is_eof() && lines.peek().is_none() => {}
            Err(error) => return Err((before + number + 1, error.to_string())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Title, output, input and columns.
    type Found<'a> = (&'a str, &'a str, &'a str, Option<u64>);

    #[track_caller]
    fn check(text: &str, expect: Result<Found<'_>, (usize, &str)>) {
        match (parse(text), expect) {
            (Ok(session), Ok((title, output, input, columns))) => {
                let found = (session.title.as_str(), session.output.as_str(), session.input.as_str());
                assert_eq!((found, session.columns), ((title, output, input), columns), "{text}");
            }
            (Err((line, message)), Err((expected, part))) => {
                assert!(line == expected && message.contains(part), "{line}: {message}");
            }
            (found, expect) => panic!("{found:?} where {expect:?} was expected: {text}"),
        }
    }

    #[test]
    fn versions() {
        check(
            r#"{"version":1,"width":90,"height":24,"title":"t","stdout":[[0.1,"$ ls\r\n"],[2,"a\r\n"]]}"#,
            Ok(("t", "$ ls\r\na\r\n", "", Some(90))),
        );
        check("{\n  \"version\": 1,\n  \"stdout\": [[0.1, \"x\"]]\n}\n", Ok(("", "x", "", None)));
        check(
            "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"$ \"]\n[0.2,\"i\",\"ls\\r\"]\n[0.3,\"o\",\"ls\\r\\n\"]\n[0.4,\"r\",\"90x30\"]\n",
            Ok(("", "$ ls\r\n", "ls\r", Some(80))),
        );
        check(
            "{\"version\":3,\"term\":{\"cols\":100,\"rows\":30}}\n# a comment\n[0.1,\"o\",\"a\"]\n[1.5,\"m\",\"here\"]\n[0.2,\"x\",\"0\"]\n",
            Ok(("", "a", "", Some(100))),
        );
        check("{\"version\":2,\"width\":0,\"height\":0}\n[0.1,\"o\",\"a\"]\n", Ok(("", "a", "", None)));
        check("$ ls\na\n", Ok(("", "$ ls\r\na\r\n", "", None)));
        check("{\"version\":2}\n[0.1,\"o\",\"a\"]\n[0.2,\"o\",\"b", Ok(("", "a", "", None)));
    }

    #[test]
    fn headers_of_other_recorders() {
        check("\n\n{\"version\":2,\"width\":80}\n[0.1,\"o\",\"a\"]\n", Ok(("", "a", "", Some(80))));
        check("\r\n{\"version\":2}\r\n[0.1,\"o\",\"a\"]\r\n", Ok(("", "a", "", None)));
        check("# by hand\n{\"version\":3}\n[0.1,\"o\",\"a\"]\n", Ok(("", "a", "", None)));
        check("{\n \"version\": 2,\n \"width\": 70\n}\n[0.1,\"o\",\"a\"]\n", Ok(("", "a", "", Some(70))));
        check("\n{\"version\":2}\n[0.1,\"o\",\"a\"]\nnonsense\n[0.2,\"o\",\"b\"]\n", Err((4, "expected")));
        check("# cat x.json\n{\n", Ok(("", "# cat x.json\r\n{\r\n", "", None)));
        check("{\"version\":2,\"width\":100000}\n[0.1,\"o\",\"a\"]\n", Ok(("", "a", "", Some(100_000))));
    }

    #[test]
    fn cut_characters() {
        check(
            "{\"version\":2}\n[0.1,\"o\",\"\\ud83d\\ude00 \\ud83d lone\"]\n",
            Ok(("", "😀 \u{fffd} lone", "", None)),
        );
        check("{\"version\":1,\"stdout\":[[0.1,\"\\ude00\"]]}", Ok(("", "\u{fffd}", "", None)));
        check(
            "{\"version\":3,\"title\":\"\\ud83d\"}\n[0.1,\"i\",\"\\ud83d\"]\n",
            Ok(("\u{fffd}", "", "\u{fffd}", None)),
        );
    }

    #[test]
    fn malformed_files_name_the_line() {
        check("{\"version\":4}\n", Err((1, "version 4")));
        check("{\"version\":1}\n", Err((1, "has `stdout`")));
        check("{\"width\":4}\n", Err((1, "missing field `version`")));
        check("{\"version\":2}\n[0.1,\"o\",\"a\"]\nnonsense\n[0.2,\"o\",\"b\"]\n", Err((3, "expected")));
        check("{\"version\":2}\n[0.1,\"o\"]\n[0.1,\"o\",\"a\"]\n", Err((2, "invalid length")));
    }
}
