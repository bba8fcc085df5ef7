//! One edit of a text. It may become a mutant.

use std::ops::Range;

use tree_sitter::Node;

use super::language::Language;
use super::operator::Operator;

/// Maximum number of characters of code that a description quotes.
const QUOTED: usize = 40;

/// Returns the edits of a program inside of another one.
pub(super) type EditsOf<'a> = &'a dyn Fn(Language, &str) -> Vec<Edit>;

/// A range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) with: String,
    pub(super) operator: Operator,
    /// Description of the change, for people.
    pub(super) what: String,
    /// Start offset of the enclosing function or embedded program. Samples are spread over regions.
    pub(super) region: usize,
    /// Why a trial of the mutant would probably tell nothing, e.g. "affects messages, hardly the
    /// result".
    pub(super) uninformative: Option<&'static str>,
    /// The embedded programs that it edits: here-documents, and arguments of interpreters. They
    /// must still parse.
    pub(super) programs: Vec<(Language, Range<usize>)>,
}

impl Edit {
    /// Replaces `range` of `text` by `with`.
    pub(super) fn replace(
        text: &str,
        range: Range<usize>,
        with: impl Into<String>,
        operator: Operator,
    ) -> Self {
        let with = with.into();
        let what =
            format!("`{}` became `{}`", quoted(text.get(range.clone()).unwrap_or_default()), quoted(&with));
        Self { range, with, operator, what, region: 0, uninformative: None, programs: Vec::new() }
    }

    /// Removes `range` of `text`, or replaces it by a placeholder without effect.
    pub(super) fn drop(text: &str, range: Range<usize>, placeholder: &str, operator: Operator) -> Self {
        let what = format!("`{}` dropped", quoted(text.get(range.clone()).unwrap_or_default()));
        Self { what, ..Self::replace(text, range, placeholder, operator) }
    }

    #[must_use]
    pub(super) fn what(self, what: impl Into<String>) -> Self {
        Self { what: what.into(), ..self }
    }

    #[must_use]
    pub(super) fn region(self, region: usize) -> Self {
        Self { region, ..self }
    }

    /// The same edit, marked as uninformative for `reason`.
    #[must_use]
    pub(super) fn uninformative(self, reason: &'static str) -> Self {
        Self { uninformative: Some(reason), ..self }
    }

    #[must_use]
    pub(super) fn uninformative_if(self, is: bool, reason: &'static str) -> Self {
        if is { self.uninformative(reason) } else { self }
    }

    /// The same edit in an enclosing text, where this edit's text begins at `offset`.
    #[must_use]
    pub(super) fn shifted(self, offset: usize) -> Self {
        let moved = |range: Range<usize>| range.start + offset..range.end + offset;
        let programs = self.programs.into_iter().map(|(language, at)| (language, moved(at))).collect();
        Self { range: moved(self.range), region: self.region + offset, programs, ..self }
    }

    /// The same edit in an enclosing text, where this edit's text is an embedded program at `at`.
    #[must_use]
    pub(super) fn embedded(self, language: Language, at: Range<usize>) -> Self {
        let mut edit = self.shifted(at.start);
        edit.programs.push((language, at));
        edit
    }

    /// The cost of checking the edit in a text of `length` bytes in this language.
    pub(super) fn cost(&self, language: Language, length: usize) -> usize {
        let programs = self.programs.iter().map(|(language, at)| (*language, at.len()));
        programs.chain([(language, length)]).map(|(language, length)| language.cost(length)).sum()
    }

    /// The part `whole` of `text` after the edit. `None` if the edited range is outside of it.
    pub(super) fn apply(&self, text: &str, whole: Range<usize>) -> Option<String> {
        let before = text.get(whole.start..self.range.start)?;
        let after = text.get(self.range.end..whole.end)?;
        Some(format!("{before}{}{after}", self.with))
    }
}

/// The nearest ancestor of one of these `kinds`.
pub(super) fn above<'a>(node: Node<'a>, kinds: &[&str]) -> Option<Node<'a>> {
    let mut at = node.parent();
    while let Some(parent) = at {
        if kinds.contains(&parent.kind()) {
            return Some(parent);
        }
        at = parent.parent();
    }
    None
}

/// The line number of `offset`, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

/// A piece of code on one line, cut if it is long.
pub(super) fn quoted(code: &str) -> String {
    let line = code.trim().lines().next().unwrap_or_default();
    let mut out: String = line.chars().take(QUOTED).collect();
    if out.len() < code.trim().len() {
        out.push('…');
    }
    out
}
