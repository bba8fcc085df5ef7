//! Edits of Python calls: functions that are easily confused, and omitted arguments.

use tree_sitter::Node;

use super::edit::{Edit, quoted};
use super::operator::Operator;
use crate::syntax::{children, named_children, text_of};

/// Functions and methods, each with one that it is easily confused with. The last part of the name
/// decides.
const SWAPPED: [(&str, &str, Operator); 30] = [
    ("min", "max", Operator::SortOrder),
    ("max", "min", Operator::SortOrder),
    ("any", "all", Operator::Logic),
    ("all", "any", Operator::Logic),
    ("floor", "ceil", Operator::Arithmetic),
    ("ceil", "floor", Operator::Arithmetic),
    ("round", "int", Operator::Arithmetic),
    ("lower", "upper", Operator::Constant),
    ("upper", "lower", Operator::Constant),
    ("casefold", "upper", Operator::Constant),
    ("startswith", "endswith", Operator::Comparison),
    ("endswith", "startswith", Operator::Comparison),
    ("removeprefix", "removesuffix", Operator::Comparison),
    ("removesuffix", "removeprefix", Operator::Comparison),
    ("fullmatch", "match", Operator::Comparison),
    ("match", "search", Operator::Comparison),
    ("search", "match", Operator::Comparison),
    ("strip", "lstrip", Operator::Constant),
    ("lstrip", "strip", Operator::Constant),
    ("rstrip", "lstrip", Operator::Constant),
    ("split", "rsplit", Operator::OffByOne),
    ("rsplit", "split", Operator::OffByOne),
    ("partition", "rpartition", Operator::OffByOne),
    ("rpartition", "partition", Operator::OffByOne),
    ("find", "rfind", Operator::OffByOne),
    ("union", "intersection", Operator::Logic),
    ("intersection", "union", Operator::Logic),
    ("islink", "isfile", Operator::Comparison),
    ("is_dir", "is_file", Operator::Comparison),
    ("is_file", "is_dir", Operator::Comparison),
];

/// Rounding modes, each with another one.
const ROUNDING: [(&str, &str); 8] = [
    ("ROUND_HALF_UP", "ROUND_HALF_EVEN"),
    ("ROUND_HALF_EVEN", "ROUND_HALF_UP"),
    ("ROUND_HALF_DOWN", "ROUND_HALF_UP"),
    ("ROUND_DOWN", "ROUND_UP"),
    ("ROUND_UP", "ROUND_DOWN"),
    ("ROUND_FLOOR", "ROUND_CEILING"),
    ("ROUND_CEILING", "ROUND_FLOOR"),
    ("ROUND_05UP", "ROUND_DOWN"),
];

/// Keyword arguments that hardly affect the result.
const UNINFORMATIVE: [&str; 11] = [
    "newline",
    "encoding",
    "errors",
    "exist_ok",
    "parents",
    "indent",
    "check",
    "text",
    "capture_output",
    "timeout",
    "stdout",
];

/// Keyword arguments that are required, or that only affect messages.
const NEEDED: [&str; 4] = ["file", "fieldnames", "help", "target"];

/// Edits of one call.
pub(super) fn edits(node: Node<'_>, text: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let Some(function) = node.child_by_field_name("function") else { return found };
    let Some(arguments) = node.child_by_field_name("arguments") else { return found };
    let called = text_of(function, text);
    let (start, last) = match called.rfind('.') {
        Some(dot) => (function.start_byte() + dot + 1, &called[dot + 1..]),
        None => (function.start_byte(), called),
    };
    // Without `maxsplit`, `split` and `rsplit` return the same parts.
    let unbounded = last.ends_with("split") && named_children(arguments).len() < 2;
    for (have, other, operator) in SWAPPED {
        if have == last && !unbounded {
            let what = format!("`{have}` became `{other}` in `{}`", quoted(text_of(node, text)));
            found.push(Edit::replace(text, start..start + have.len(), other, operator).what(what));
        }
    }
    if arguments.kind() != "argument_list" {
        return found;
    }
    found.extend(order(called, last, function, arguments, text));
    found.extend(left_out(called, arguments, text));
    found
}

/// `sorted` becomes `list`. `sorted(x)` and `x.sort()` sort in reverse order.
fn order(called: &str, last: &str, function: Node<'_>, arguments: Node<'_>, text: &str) -> Vec<Edit> {
    if last != "sort" && called != "sorted" {
        return Vec::new();
    }
    let mut found = Vec::new();
    let given = named_children(arguments);
    let keyword = |name: &str| given.iter().any(|argument| text_of(*argument, text).starts_with(name));
    let whole = quoted(text_of(function.parent().unwrap_or(function), text));
    if called == "sorted" && !keyword("key=") && !keyword("reverse=") {
        let edit = Edit::replace(text, function.byte_range(), "list", Operator::SortOrder);
        found.push(edit.what(format!("`{whole}` not sorted")));
    }
    // The closing parenthesis may be missing.
    let closing = children(arguments).last().copied().filter(|last| last.kind() == ")" && !last.is_missing());
    let Some(end) = closing.map(|closing| closing.start_byte()) else { return found };
    // A generator expression without its own parentheses allows no second argument.
    if !keyword("reverse=") {
        let before = text.get(..end).unwrap_or_default();
        let comma = if given.is_empty() || before.trim_end().ends_with(',') { "" } else { ", " };
        let edit = Edit::replace(text, end..end, format!("{comma}reverse=True"), Operator::SortOrder);
        found.push(edit.what(format!("`{whole}` sorted the other way round")));
    }
    found
}

/// Omits each keyword argument, and swaps rounding modes.
fn left_out(called: &str, arguments: Node<'_>, text: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let given = named_children(arguments);
    for (place, argument) in given.iter().enumerate() {
        let written = text_of(*argument, text);
        let value = argument.child_by_field_name("value").unwrap_or(*argument);
        let (before, mode) = text_of(value, text).rsplit_once('.').unwrap_or(("", text_of(value, text)));
        if let Some((_, other)) = ROUNDING.iter().find(|(have, _)| *have == mode) {
            let start = value.end_byte() - mode.len();
            let edit = Edit::replace(text, start..value.end_byte(), *other, Operator::Arithmetic);
            // A bare name may not be imported.
            found.push(
                edit.uninformative_if(before.is_empty(), "the other rounding mode may not be imported"),
            );
        }
        if argument.kind() != "keyword_argument" {
            continue;
        }
        let name = argument.child_by_field_name("name").map_or("", |name| text_of(name, text));
        if NEEDED.contains(&name) || is_record(called) {
            continue;
        }
        let start = if place > 0 { given[place - 1].end_byte() } else { argument.start_byte() };
        let end = match given.get(place + 1) {
            Some(next) if place == 0 => next.start_byte(),
            _ => argument.end_byte(),
        };
        let operator = if matches!(name, "key" | "reverse" | "sort_keys") {
            Operator::SortOrder
        } else {
            Operator::Flag
        };
        found.push(
            Edit::drop(text, start..end, "", operator)
                .what(format!("`{}` dropped from `{}`", quoted(written), quoted(called)))
                .uninformative_if(UNINFORMATIVE.contains(&name), "hardly changes what is left behind"),
        );
    }
    found
}

/// Whether the keyword arguments of the function are fields of a record.
fn is_record(called: &str) -> bool {
    called == "dict" || called.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase))
}

/// Whether a call only prints a message, or ends the program with one.
pub(super) fn is_message(node: Node<'_>, text: &str) -> bool {
    let called = node.child_by_field_name("function").map_or("", |function| text_of(function, text));
    let arguments = node.child_by_field_name("arguments").map_or("", |node| text_of(node, text));
    match called {
        "print" => arguments.contains("stderr"),
        "sys.exit" | "exit" => arguments.starts_with("(\"") || arguments.starts_with("(f\""),
        _ => {
            called.starts_with("logging.")
                || called.starts_with("log.")
                || called.starts_with("logger.")
                || called == "sys.stderr.write"
                || called == "parser.error"
        }
    }
}
