//! Mutants of makefiles: prerequisites or recipe lines omitted, and shell edits of recipe lines.

use super::edit::{Edit, EditsOf, quoted};
use super::language::Language;
use super::operator::Operator;

/// Every edit of `text`, unordered and not yet parsed. `embedded` edits the programs in it.
pub(super) fn edits(text: &str, embedded: EditsOf<'_>) -> Vec<Edit> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut rule = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches('\n');
        if let Some(command) = body.strip_prefix('\t') {
            found.push(
                Edit::drop(text, start..start + body.len(), "\t@:", Operator::DroppedStatement).region(rule),
            );
            let at = start + 1..start + body.len();
            let edits = embedded(Language::Bash, command).into_iter();
            found.extend(edits.map(|edit| edit.embedded(Language::Bash, at.clone()).region(rule)));
        } else if !body.starts_with('#') && !body.trim().is_empty() {
            rule = start;
            found.extend(declaration(text, start, body).into_iter().map(|edit| edit.region(rule)));
        }
        start += line.len();
    }
    found
}

/// Omits each word of a rule or of a variable.
fn declaration(text: &str, start: usize, body: &str) -> Vec<Edit> {
    let Some((head, values)) = right_side(body) else {
        let include = body.starts_with("include") || body.starts_with("-include");
        let edit = Edit::drop(text, start..start + body.len(), "", Operator::DroppedStatement);
        return if include || body.starts_with('.') { vec![edit] } else { Vec::new() };
    };
    let phony = head.starts_with(".PHONY");
    words(values)
        .into_iter()
        .filter(|(_, word)| *word != "|")
        .map(|(at, word)| {
            let from = start + body.len() - values.len() + at;
            Edit::drop(text, from..from + word.len(), "", Operator::DroppedStatement)
                .what(format!("`{}` dropped from `{}`", quoted(word), quoted(head)))
                .uninformative_if(phony, "matters only where a file has that name")
        })
        .collect()
}

/// The parts left and right of the first `:`, `=`, `:=`, `?=` or `+=` outside `$(…)`.
fn right_side(body: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let at = body.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ':' | '=' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })?;
    let (head, rest) = body.split_at(at);
    let values = rest.trim_start_matches([':', '=', ' ']);
    (!head.starts_with(['$', '-'])).then_some((head.trim_end_matches(['?', '+', ' ']), values))
}

/// Words separated by white space. `$(…)` counts as one word.
fn words(values: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut depth, mut begin) = (0, None);
    for (at, c) in values.char_indices().chain([(values.len(), ' ')]) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c == ' ' && depth == 0 {
            if let Some(from) = begin.take() {
                found.push((from, &values[from..at]));
            }
        } else if begin.is_none() {
            begin = Some(at);
        }
    }
    found
}
