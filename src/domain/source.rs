//! A TOML document with source positions. Problems of parsed values can so be reported by line.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Position, Problem, suggest};

/// One parsed file.
pub(crate) struct Source<'a> {
    file: String,
    text: &'a str,
    root: DeTable<'a>,
}

/// One step of a path into a document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> From<&'a str> for Step<'a> {
    fn from(key: &'a str) -> Self {
        Self::Key(key)
    }
}

impl<'a> From<&'a String> for Step<'a> {
    fn from(key: &'a String) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Step<'_> {
    fn from(item: usize) -> Self {
        Self::Item(item)
    }
}

/// Makes a path, e.g. `at!["skills", 3, "id"]`.
macro_rules! at {
    ($($step:expr),* $(,)?) => { &[$($crate::domain::Step::from($step)),*] };
}
pub(crate) use at;

impl<'a> Source<'a> {
    /// Parses `text`, the content of `file`.
    pub(crate) fn parse(file: impl Into<String>, text: &'a str) -> Result<Self, Problem> {
        let file = file.into();
        match DeTable::parse(text) {
            Ok(root) => Ok(Self { file, text, root: root.into_inner() }),
            Err(error) => Err(from_toml(&file, text, &error)),
        }
    }

    /// Deserialises the whole document.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        toml::from_str(self.text).map_err(|error| from_toml(&self.file, self.text, &error))
    }

    /// A problem at `path`, or at its nearest existing parent.
    pub(crate) fn problem(&self, path: &[Step<'_>], message: impl Into<String>) -> Problem {
        let at = self.offset(path).map(|offset| Position::of(self.text, offset));
        Problem { file: self.file.clone(), at, message: message.into(), hint: None }
    }

    /// The integer at the top-level key `key`. `None` if there is none.
    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        match self.root.get(key)?.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    fn offset(&self, path: &[Step<'_>]) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let (mut offset, mut value) = match first {
            Step::Key(key) => entry(&self.root, key)?,
            Step::Item(_) => return None,
        };
        for step in rest {
            let inner = match (step, value.get_ref()) {
                (Step::Key(key), DeValue::Table(table)) => entry(table, key),
                (Step::Item(item), DeValue::Array(items)) => {
                    items.get(*item).map(|value| (value.span().start, value))
                }
                _ => None,
            };
            match inner {
                Some(found) => (offset, value) = found,
                None => break,
            }
        }
        Some(offset)
    }
}

/// The position to report for `key` of `table`: the position of its value if that is one word,
/// otherwise of the key.
fn entry<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<(usize, &'t Spanned<DeValue<'a>>)> {
    let (name, value) = table.get_key_value(key)?;
    let offset = match value.get_ref() {
        DeValue::Table(_) | DeValue::Array(_) => name.span().start,
        _ => value.span().start,
    };
    Some((offset, value))
}

fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Problem {
    let at = error.span().map(|span| Position::of(text, span.start));
    let problem =
        |message: &str| Problem { file: file.to_owned(), at, message: message.to_owned(), hint: None };
    // The wording of serde's `Error::unknown_field` and `Error::unknown_variant`.
    match error.message().split_once(", expected ") {
        Some((message, known)) if message.starts_with("unknown ") => {
            let word = backticked(message).next().unwrap_or_default();
            let message =
                message.replace("unknown field", "unknown key").replace("unknown variant", "unknown word");
            problem(&message).hint(suggest(word, backticked(known)))
        }
        _ => problem(&error.message().replace("missing field", "missing key").replace('\n', ", ")),
    }
}

fn backticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a = 1\nlist = [\n  'x',\n  'y',\n]\n[[t]]\nid = 'one'\n[[t]]\nid = 'two'\n[p.q]\nn = 3\n";

    #[test]
    fn paths_are_resolved_to_lines() {
        let source = Source::parse("f", TEXT).unwrap();
        for (path, line, column) in [
            (at!["a"] as &[Step<'_>], 1, 5),
            (at!["list"], 2, 1),
            (at!["list", 1], 4, 3),
            (at!["list", 7], 2, 1),
            (at!["t", 1, "id"], 9, 6),
            (at!["t", 1, "absent"], 8, 1),
            (at!["p", "q"], 10, 4),
            (at!["p", "q", "n"], 11, 5),
        ] {
            assert_eq!(source.problem(path, "").at, Some(Position { line, column }), "{path:?}");
        }
        assert_eq!(source.problem(at!["absent"], "").at, None);
    }
}
