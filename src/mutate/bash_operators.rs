//! Edits of comparisons, logic and arithmetic in bash: `[ ]`, `[[ ]]` and `(( ))`.

use tree_sitter::Node;

use super::edit::{Edit, above, quoted};
use super::operator::Operator;
use crate::syntax::text_of;

/// Binary operators, each with an operator that it is easily confused with.
const BINARY: [(&str, &str, Operator); 27] = [
    ("<", "<=", Operator::Comparison),
    ("<=", "<", Operator::Comparison),
    (">", ">=", Operator::Comparison),
    (">=", ">", Operator::Comparison),
    ("==", "!=", Operator::Comparison),
    ("=", "!=", Operator::Comparison),
    ("!=", "==", Operator::Comparison),
    ("-lt", "-le", Operator::Comparison),
    ("-le", "-lt", Operator::Comparison),
    ("-gt", "-ge", Operator::Comparison),
    ("-ge", "-gt", Operator::Comparison),
    ("-eq", "-ne", Operator::Comparison),
    ("-ne", "-eq", Operator::Comparison),
    ("-nt", "-ot", Operator::Comparison),
    ("-ot", "-nt", Operator::Comparison),
    ("&&", "||", Operator::Logic),
    ("||", "&&", Operator::Logic),
    ("-a", "-o", Operator::Logic),
    ("-o", "-a", Operator::Logic),
    ("+", "-", Operator::Arithmetic),
    ("-", "+", Operator::Arithmetic),
    ("*", "+", Operator::Arithmetic),
    ("/", "*", Operator::Arithmetic),
    ("%", "/", Operator::Arithmetic),
    ("**", "*", Operator::Arithmetic),
    ("+=", "-=", Operator::Arithmetic),
    ("-=", "+=", Operator::Arithmetic),
];

/// Unary operators, each with an operator that it is easily confused with.
const UNARY: [(&str, &str); 11] = [
    ("-z", "-n"),
    ("-n", "-z"),
    ("-f", "-d"),
    ("-d", "-f"),
    ("-e", "-d"),
    ("-L", "-f"),
    ("-h", "-f"),
    ("-r", "-x"),
    ("-w", "-x"),
    ("-x", "-d"),
    ("-s", "-d"),
];

/// `a OP b` with another operator.
pub(super) fn binary(node: Node<'_>, text: &str) -> Vec<Edit> {
    let Some(operator) = node.child_by_field_name("operator") else { return Vec::new() };
    let written = text_of(operator, text);
    // `[[ ]]` has no `<=`, so a comparison of texts can only be inverted.
    let of_texts = above(node, &["test_command"]).is_some_and(|test| text_of(test, text).starts_with('['));
    let turned = match written {
        "<" if of_texts => Some((">", Operator::Comparison)),
        ">" if of_texts => Some(("<", Operator::Comparison)),
        _ => None,
    };
    let other = turned.or_else(|| {
        BINARY.iter().find(|(have, ..)| *have == written).map(|(_, other, kind)| (*other, *kind))
    });
    other
        .map(|(other, kind)| {
            Edit::replace(text, operator.byte_range(), other, kind)
                .what(format!("`{written}` became `{other}` in `{}`", quoted(text_of(node, text))))
        })
        .into_iter()
        .collect()
}

/// `-f x` becomes another test. `! x` loses its negation.
pub(super) fn unary(node: Node<'_>, text: &str) -> Vec<Edit> {
    let Some(operator) = node.child_by_field_name("operator") else { return Vec::new() };
    let written = text_of(operator, text);
    let quote = quoted(text_of(node, text));
    if written == "!" {
        let edit = Edit::drop(text, operator.byte_range(), "", Operator::Logic);
        return vec![edit.what(format!("`!` dropped in `{quote}`"))];
    }
    UNARY
        .iter()
        .filter(|(have, _)| *have == written)
        .map(|(_, other)| {
            Edit::replace(text, operator.byte_range(), *other, Operator::Comparison)
                .what(format!("`{written}` became `{other}` in `{quote}`"))
        })
        .collect()
}
