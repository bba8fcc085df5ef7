//! Problems of a spec, with file, line and hint for its author.

use std::fmt;

/// One problem of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's path as shown to users.
    pub file: String,
    /// Position in the file. `None` if the problem concerns the whole file.
    pub at: Option<Position>,
    /// A fragment that begins in lower case.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The error for specs that cannot be used. It contains every problem that was found, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", listed(.problems))]
pub struct DomainError {
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(Position { line, column }) => write!(f, "{}:{line}:{column}: {}", self.file, self.message)?,
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Problem {
    /// The same problem with a hint.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<Problem> for DomainError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl DomainError {
    /// Returns `value` if there are no problems.
    pub(super) fn unless<T>(problems: Vec<Problem>, value: T) -> Result<T, Self> {
        if problems.is_empty() { Ok(value) } else { Err(Self { problems }) }
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Position {
    /// The position of byte `offset` in `text`.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// A hint for a word that is not in `known`: the most similar known word, or all known words if
/// none is similar.
pub(crate) fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    // A third of the letters may differ. E.g. `bugfix` is similar to `bug-fix`, but `log` is not
    // similar to `lua`.
    let near = (word.chars().count() / 3).max(1);
    let mut begin = known.iter().filter(|candidate| !word.is_empty() && candidate.starts_with(word));
    if let (Some(candidate), None) = (begin.next(), begin.next()) {
        return format!("did you mean `{candidate}`?");
    }
    let distances = known.iter().map(|candidate| (strsim::osa_distance(word, candidate), *candidate));
    match distances.min() {
        Some((distance, candidate)) if distance <= near => format!("did you mean `{candidate}`?"),
        Some(_) => format!("known are {}", quoted(&known)),
        None => "there is nothing to choose from".to_owned(),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions() {
        let known = ["easy", "medium", "hard"];
        for (word, expected) in [
            ("esay", "did you mean `easy`?"),
            ("medum", "did you mean `medium`?"),
            ("med", "did you mean `medium`?"),
            ("mdeium", "did you mean `medium`?"),
            ("impossible", "known are `easy`, `medium`, `hard`"),
        ] {
            assert_eq!(suggest(word, known), expected);
        }
    }

    #[test]
    fn positions_count_characters() {
        for (offset, line, column) in [(0, 1, 1), (3, 1, 3), (4, 2, 1), (99, 2, 3)] {
            assert_eq!(Position::of("äb\ncd", offset), Position { line, column }, "{offset}");
        }
    }
}
