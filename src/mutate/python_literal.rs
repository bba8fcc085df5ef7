//! Edits of Python numbers and strings.

use tree_sitter::Node;

use super::edit::{Edit, above, quoted};
use super::literal::{decimal_beside, integer_plus, word_beside};
use super::operator::Operator;
use crate::syntax::{children, named_children, text_of};

/// Contexts in which a number is an index or a count.
const OFFSET_NODES: [&str; 2] = ["slice", "subscript"];

/// `True` becomes `False`, and a number becomes slightly larger or smaller.
pub(super) fn number(node: Node<'_>, text: &str) -> Vec<Edit> {
    let written = text_of(node, text);
    let edit = |other: String, operator| {
        let line = node.parent().map_or(written, |parent| text_of(parent, text));
        Edit::replace(text, node.byte_range(), other.clone(), operator)
            .what(format!("`{written}` became `{other}` in `{}`", quoted(line)))
    };
    match written {
        "True" => return vec![edit("False".to_owned(), Operator::Constant)],
        "False" => return vec![edit("True".to_owned(), Operator::Constant)],
        _ => {}
    }
    if let Some(other) = decimal_beside(written) {
        return vec![edit(other, Operator::Constant)];
    }
    let operator = if is_index_or_offset(node, text) { Operator::OffByOne } else { Operator::Constant };
    if let Some(mode) = written.strip_prefix("0o") {
        return super::literal::mode_beside(mode)
            .map(|mode| edit(format!("0o{mode}"), operator))
            .into_iter()
            .collect();
    }
    [1, -1].into_iter().filter_map(|by| Some(edit(integer_plus(written, by)?, operator))).collect()
}

fn is_index_or_offset(node: Node<'_>, text: &str) -> bool {
    let mut at = node;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            kind if OFFSET_NODES.contains(&kind) => return true,
            "binary_operator" | "unary_operator" | "parenthesized_expression" | "argument_list" => {
                at = parent;
            }
            "call" => {
                let called = parent.child_by_field_name("function").map_or("", |node| text_of(node, text));
                let counting = matches!(called, "range" | "enumerate" | "islice" | "itertools.islice")
                    || called.ends_with("split");
                return counting;
            }
            _ => return false,
        }
    }
    false
}

/// A string with one letter changed. Keys and file names stay, because changing them only breaks
/// the program.
pub(super) fn string(node: Node<'_>, text: &str) -> Vec<Edit> {
    let parent = node.parent();
    let kind = parent.map_or("", |parent| parent.kind());
    if matches!(kind, "subscript" | "concatenated_string") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let path = names_a_file(node, text);
    let compared = kind == "comparison_operator";
    let formats = named_children(node).iter().any(|part| part.kind() == "interpolation");
    for part in children(node) {
        match part.kind() {
            "string_content" => {
                let Some(other) = word_beside(text_of(part, text)) else { continue };
                let operator = if path {
                    Operator::Path
                } else if formats {
                    Operator::Content
                } else {
                    Operator::Constant
                };
                let edit = Edit::replace(text, part.byte_range(), other, operator)
                    .uninformative_if(path, "the file would be missing where it is looked for")
                    .uninformative_if(compared, "the comparison would never hold");
                found.push(edit);
            }
            "interpolation" => found.extend(specifier(part, text)),
            _ => {}
        }
    }
    found
}

/// `{x:.2f}` with another number of decimals.
fn specifier(interpolation: Node<'_>, text: &str) -> Vec<Edit> {
    let Some(format) =
        named_children(interpolation).into_iter().find(|part| part.kind() == "format_specifier")
    else {
        return Vec::new();
    };
    let written = text_of(format, text);
    let digits = written.find(|c: char| matches!(c, '1'..='9'));
    let Some(at) = digits.filter(|_| !written.contains('{')) else { return Vec::new() };
    let place = format.start_byte() + at;
    [1, -1]
        .into_iter()
        .filter_map(|by| {
            let other = integer_plus(written.get(at..=at)?, by)?;
            let mutated = format!("{}{other}{}", &written[..at], &written[at + 1..]);
            let edit = Edit::replace(text, place..place + 1, other, Operator::Arithmetic);
            Some(edit.what(format!("`{written}` became `{mutated}`")))
        })
        .collect()
}

fn names_a_file(node: Node<'_>, text: &str) -> bool {
    let call = above(node, &["call", "keyword_argument", "lambda", "subscript"])
        .filter(|node| node.kind() == "call");
    let called =
        call.and_then(|call| call.child_by_field_name("function")).map_or("", |node| text_of(node, text));
    let opens =
        matches!(called, "open" | "Path" | "pathlib.Path" | "sqlite3.connect" | "os.path.join" | "glob.glob");
    opens || text_of(node, text).trim_matches(['"', '\'']).starts_with('/')
}
