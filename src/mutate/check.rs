//! Checks that edits leave a text that parses, within bounds on the work.

use std::collections::BTreeMap;
use std::ops::Range;

use super::edit::Edit;
use super::language::Language;

/// Texts above this size are data that a solution brings along, whose lines are all alike.
pub(super) const MOST_BYTES: usize = 128 << 10;

/// Bytes that are parsed to check the edits of a solution: some seconds. Those of every recipe's
/// reference fit.
const MOST_PARSED: usize = 16 << 20;

/// Without a bundled grammar a text is only copied, which takes a fraction of the time.
const COPIED: usize = 16;

/// What it costs to check an edit of `bytes` bytes in this language, in bytes that are parsed.
pub(super) fn cost(language: Language, bytes: usize) -> usize {
    match language {
        Language::Bash | Language::Python => bytes,
        Language::Make | Language::Other | Language::Data => bytes / COPIED,
    }
}

/// Identifies a text among the results of edits, which are too many to be held.
pub(super) fn digest(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Every n-th of edits that cost so many bytes each to check, so that [`MOST_PARSED`] bytes
/// suffice.
pub(super) fn step(costs: impl Iterator<Item = usize>) -> usize {
    costs.fold(0, usize::saturating_add).div_ceil(MOST_PARSED).max(1)
}

/// Checks edits of one text.
pub(super) struct Checker<'a> {
    language: Language,
    text: &'a str,
    /// Syntax errors before any edit, of the programs in the text.
    before: BTreeMap<(Language, usize, usize), usize>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(language: Language, text: &'a str) -> Self {
        Self { language, text, before: BTreeMap::new() }
    }

    /// The text after `edit`, if neither it nor a program in it that is edited has more syntax
    /// errors than before.
    pub(super) fn applied(&mut self, edit: &Edit) -> Option<String> {
        for (language, program) in &edit.programs {
            self.checked(edit, *language, program.clone())?;
        }
        self.checked(edit, self.language, 0..self.text.len())
    }

    /// The part `program` of the text after `edit`.
    fn checked(&mut self, edit: &Edit, language: Language, program: Range<usize>) -> Option<String> {
        let text = self.text.get(program.clone())?;
        let mutated = edit.apply(self.text, program.clone())?;
        let key = (language, program.start, program.end);
        let before = *self.before.entry(key).or_insert_with(|| language.faults(text));
        (language.faults(&mutated) <= before).then_some(mutated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_have_fewer_edits_checked() {
        let check = |edits: usize, bytes: usize, expect: usize| {
            assert_eq!(step((0..edits).map(|_| bytes)), expect, "{edits} edits of {bytes} bytes");
        };
        check(0, 0, 1);
        check(400, 20 << 10, 1);
        check(128, MOST_BYTES, 1);
        check(129, MOST_BYTES, 2);
        check(50_000, MOST_BYTES, 391);
        check(2, usize::MAX, usize::MAX / MOST_PARSED + 1);
    }

    #[test]
    fn only_what_is_parsed_costs_much() {
        let check = |language: Language, text: &str, expect: usize| {
            let edits = language.edits(text, 0);
            let most = edits.iter().map(|edit| edit.cost(language, text.len())).max();
            assert_eq!(most, Some(expect), "{language:?} {text:?}");
        };
        check(Language::Data, &format!("a = 1{}\n", " ".repeat(994)), 62);
        check(Language::Python, "x = 1\n", 6);
        // The script, and the program in it.
        check(Language::Bash, "python3 -c 'x = 1'\n", 19 + 5);
    }
}
