//! Edits of command options: omitted, added, or swapped.

use tree_sitter::Node;

use super::edit::{Edit, quoted};
use super::literal::mode_beside;
use super::operator::Operator;
use crate::syntax::text_of;

/// Commands whose options affect how they start, and not the result.
const STARTERS: [&str; 11] =
    ["set", "bash", "sh", "python3", "python", "perl", "env", "exec", "local", "declare", "shopt"];

/// For each command: its short options that take a value, and those that hardly affect the result.
const KNOWN: [(&str, &str, &str); 29] = [
    ("awk", "Ffv", ""),
    ("cat", "", ""),
    ("chmod", "", "fvc"),
    ("chown", "", "fvc"),
    ("comm", "", ""),
    ("cp", "t", "fv"),
    ("curl", "odHXFuAm", "sSf"),
    ("cut", "dfcb", ""),
    ("date", "d", ""),
    ("find", "", ""),
    ("git", "mCcF", "qv"),
    ("grep", "eABCmf", "qsahE"),
    ("gzip", "", "fq"),
    ("head", "nc", "q"),
    ("install", "mogt", "vD"),
    ("jq", "", "M"),
    ("ln", "", "fv"),
    ("mkdir", "m", "pv"),
    ("mv", "t", "fv"),
    ("paste", "d", ""),
    ("read", "dnrp", ""),
    ("rm", "", "fv"),
    ("sed", "ef", ""),
    ("sort", "tkoST", "s"),
    ("stat", "c", ""),
    ("tail", "nc", "q"),
    ("tar", "Cf", "v"),
    ("tr", "", ""),
    ("uniq", "fsw", ""),
];

/// Options that are easily forgotten. The operator says whether the option changes an order.
const ADDED: [(&str, &str, Operator); 5] = [
    ("sort", "-r", Operator::SortOrder),
    ("grep", "-v", Operator::Flag),
    ("uniq", "-d", Operator::Flag),
    ("wc", "-c", Operator::Flag),
    ("cut", "--complement", Operator::Flag),
];

/// Pairs of commands that are easily confused.
const SWAPPED: [(&str, &str, Operator); 10] = [
    ("head", "tail", Operator::Flag),
    ("tail", "head", Operator::Flag),
    ("sort", "cat", Operator::SortOrder),
    ("tac", "cat", Operator::SortOrder),
    ("uniq", "cat", Operator::Flag),
    ("cp", "mv", Operator::Flag),
    ("mv", "cp", Operator::Flag),
    ("basename", "dirname", Operator::Path),
    ("dirname", "basename", Operator::Path),
    ("break", "continue", Operator::Logic),
];

/// Commands whose options `-r`, `-n` and `-k` determine the order.
const ORDERING: [&str; 2] = ["sort", "ls"];

/// Commands that take a file mode.
const MODES: [&str; 3] = ["chmod", "install", "mkdir"];

/// Edits of the name and the options of one command.
pub(super) fn edits(called: &str, name: Node<'_>, arguments: &[Node<'_>], text: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let words: Vec<&str> = arguments.iter().map(|node| text_of(*node, text)).collect();
    for (have, other, operator) in SWAPPED {
        // `cat FILE -k 2` instead of `sort FILE -k 2` would only fail.
        let takes_them = other != "cat" || words.iter().all(|word| !word.starts_with('-'));
        if have == called && takes_them {
            let edit = Edit::replace(text, name.byte_range(), other, operator);
            let edit = edit.what(format!("`{have}` became `{other}`"));
            let own = other == "mv" && words.iter().any(|word| word.contains("/solution/"));
            found.push(edit.uninformative_if(own, "the solution's own files are not judged"));
        }
    }
    for (have, option, operator) in ADDED {
        if have == called && !words.contains(&option) {
            let at = name.end_byte();
            let what = format!("`{option}` added to `{called}`");
            found.push(Edit::replace(text, at..at, format!(" {option}"), operator).what(what));
        }
    }
    if MODES.contains(&called) {
        let last_of = |word: &str| word.strip_prefix("-m").unwrap_or(word).to_owned();
        for node in arguments {
            let word = text_of(*node, text);
            let mode = last_of(word);
            if let Some(other) = mode_beside(&mode) {
                let range = node.end_byte() - mode.len()..node.end_byte();
                found.push(Edit::replace(text, range, other, Operator::Constant));
            }
        }
    }
    if !STARTERS.contains(&called) {
        found.extend(dropped(called, arguments, text));
    }
    found
}

fn dropped(called: &str, arguments: &[Node<'_>], text: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let known = KNOWN.iter().find(|(name, ..)| *name == called);
    for (place, node) in arguments.iter().enumerate() {
        let word = text_of(*node, text);
        if word == "--" {
            break;
        }
        let Some(body) = word.strip_prefix('-').filter(|body| !body.is_empty()) else { continue };
        if body.starts_with(|first: char| first.is_ascii_digit()) || word.contains(['\n', '$']) {
            continue;
        }
        let next = arguments.get(place + 1);
        let next_word = next.map_or("-", |node| text_of(*node, text));
        let with_space = node.start_byte().saturating_sub(1)..node.end_byte();
        let with_value = with_space.start..next.map_or(node.end_byte(), Node::end_byte);
        let operator = if ORDERING.contains(&called) { Operator::SortOrder } else { Operator::Flag };
        let edit = |range, option: &str| {
            Edit::drop(text, range, "", operator)
                .what(format!("`{}` dropped from `{called}`", quoted(option)))
        };
        if let Some(long) = body.strip_prefix('-') {
            // The word after a long option may be its value. If it stayed without the option, it
            // would only cause an error.
            let alone = long.contains('=') || next_word.starts_with('-');
            let is_minor = matches!(long, "quiet" | "silent" | "verbose" | "force" | "parents");
            let range = if alone || is_minor { with_space } else { with_value };
            found.push(edit(range, word).uninformative_if(is_minor, "affects messages, hardly the result"));
            continue;
        }
        let Some((_, valued, minor)) = known else {
            found.push(
                edit(with_space, word).uninformative_if(word.len() > 2, "an option that is not known here"),
            );
            continue;
        };
        if body.len() > 2 && !body.bytes().all(|byte| byte.is_ascii_alphabetic()) || called == "find" {
            continue;
        }
        let letters: Vec<char> = body.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            let is_last = at + 1 == letters.len();
            let is_minor = minor.contains(*letter);
            if valued.contains(*letter) {
                // The value is the rest of the word, or the next word.
                if !matches!(letter, 'f' | 'e') {
                    let range = if is_last { with_value.clone() } else { with_space.clone() };
                    if at == 0 {
                        found.push(edit(range, &format!("-{letter}")));
                    }
                }
                break;
            }
            let start = node.start_byte() + 1 + at;
            let range =
                if letters.len() == 1 { with_space.clone() } else { start..start + letter.len_utf8() };
            let option = format!("-{letter}");
            found
                .push(edit(range, &option).uninformative_if(is_minor, "affects messages, hardly the result"));
        }
    }
    found
}
