//! Checks that an edited text still parses, with bounds on the work.

use std::collections::BTreeMap;
use std::ops::Range;

use super::edit::Edit;
use super::language::Language;

/// Maximum bytes of a text that is mutated. Longer texts are data, and their lines are alike.
pub(super) const MOST_BYTES: usize = 128 << 10;

/// Maximum bytes that are parsed to check the edits of one solution. They take some seconds. The
/// reference of every recipe stays below.
const MOST_PARSED: usize = 16 << 20;

/// A digest of an edited text. The texts themselves are too many to keep in memory.
pub(super) fn digest(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// The n for which checking every n-th edit costs at most [`MOST_PARSED`] bytes. `costs` has the
/// cost of each edit.
pub(super) fn step(costs: impl Iterator<Item = usize>) -> usize {
    costs.fold(0, usize::saturating_add).div_ceil(MOST_PARSED).max(1)
}

/// Checks edits of one text.
pub(super) struct Checker<'a> {
    language: Language,
    text: &'a str,
    /// Syntax errors of the programs in the text before any edit, by language and range.
    before: BTreeMap<(Language, usize, usize), usize>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(language: Language, text: &'a str) -> Self {
        Self { language, text, before: BTreeMap::new() }
    }

    /// The text after `edit`. `None` if the text, or an edited program in it, has more syntax
    /// errors than before.
    pub(super) fn applied(&mut self, edit: &Edit) -> Option<String> {
        for (language, program) in &edit.programs {
            self.checked(edit, *language, program.clone())?;
        }
        self.checked(edit, self.language, 0..self.text.len())
    }

    /// The part `program` of the text after `edit`. `None` if it has more syntax errors than
    /// before.
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
    use crate::mutate::edits::edits;

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
            let edits = edits(language, text);
            let most = edits.iter().map(|edit| edit.cost(language, text.len())).max();
            assert_eq!(most, Some(expect), "{language:?} {text:?}");
        };
        check(Language::Data, &format!("a = 1{}\n", " ".repeat(994)), 62);
        check(Language::Python, "x = 1\n", 6);
        // The cost of the script, and of the program in it.
        check(Language::Bash, "python3 -c 'x = 1'\n", 19 + 5);
    }
}
