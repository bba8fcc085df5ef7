//! Every edit of a text, by its language. Programs inside of scripts are edited in their own.

use super::edit::Edit;
use super::language::Language;
use super::{bash, make, python, tokens};

/// Maximum number of nested programs that are edited as programs. Deeper ones count as plain text.
/// Each level is parsed again.
const MOST_EMBEDDED: usize = 3;

/// Every edit of `text`, in text order. Nothing checks whether the result still parses.
pub(super) fn edits(language: Language, text: &str) -> Vec<Edit> {
    edits_within(language, text, 0)
}

/// The edits of a program that is inside of `level` others.
fn edits_within(language: Language, text: &str, level: usize) -> Vec<Edit> {
    if level > MOST_EMBEDDED {
        return Vec::new();
    }
    let embedded = |language: Language, text: &str| edits_within(language, text, level + 1);
    let mut edits = match language {
        Language::Bash => bash::edits(text, &embedded),
        Language::Python => python::edits(text),
        Language::Make => make::edits(text, &embedded),
        Language::Other => tokens::program(text),
        Language::Data => tokens::data(text),
    };
    edits.sort_by(|a, b| (a.range.start, a.range.end, &a.with).cmp(&(b.range.start, b.range.end, &b.with)));
    edits
}
