//! Mutants of Python programs, made from the syntax tree.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::edit::{Edit, above, quoted};
use super::language::Language;
use super::operator::Operator;
use super::{python_call, python_literal};
use crate::syntax::{children, named_children, text_of};

/// Comparison operators, each with an operator that it is easily confused with.
const COMPARISONS: [(&str, &str); 10] = [
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("==", "!="),
    ("!=", "=="),
    ("in", "not in"),
    ("not in", "in"),
    ("is", "is not"),
    ("is not", "is"),
];

/// Arithmetic operators, each with an operator that it is easily confused with.
const ARITHMETIC: [(&str, &str); 18] = [
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("/", "//"),
    ("//", "*"),
    ("%", "//"),
    ("**", "*"),
    ("&", "|"),
    ("|", "&"),
    ("^", "|"),
    ("<<", ">>"),
    (">>", "<<"),
    ("+=", "-="),
    ("-=", "+="),
    ("*=", "+="),
    ("/=", "//="),
    ("//=", "*="),
    ("|=", "&="),
];

/// An exception that these programs never raise. A handler for it has no effect.
const NEVER_RAISED: &str = "NotImplementedError";

const FUNCTION: &str = "function_definition";
const MODULE: &str = "module";

/// Every edit of `text`, unordered. Whether the result parses is not checked.
pub(super) fn edits(text: &str) -> Vec<Edit> {
    let Some(tree) = Language::Python.parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    walk(tree.root_node(), text, &bindings(tree.root_node(), text), 0, &mut found);
    found
}

/// The offset at which a name is first bound. The key is the id of a function or module, and the
/// name.
type Bindings<'a> = BTreeMap<(usize, &'a str), usize>;

fn walk(node: Node<'_>, text: &str, bindings: &Bindings<'_>, region: usize, found: &mut Vec<Edit>) {
    let here = if node.kind() == FUNCTION { node.start_byte() } else { region };
    if is_not_worth_mutating(node, text) {
        return;
    }
    let known = found.len();
    match node.kind() {
        "comparison_operator" => found.extend(comparison(node, text)),
        "boolean_operator" | "binary_operator" | "augmented_assignment" => {
            found.extend(operation(node, text));
        }
        "not_operator" => found.extend(not_dropped(node, text)),
        "if_statement" | "elif_clause" | "while_statement" | "conditional_expression" | "if_clause" => {
            found.extend(negated(node, text));
        }
        "except_clause" => found.extend(unhandled(node, text)),
        "integer" | "float" | "true" | "false" => found.extend(python_literal::number(node, text)),
        "string" => found.extend(python_literal::string(node, text)),
        "call" => found.extend(python_call::edits(node, text)),
        "unary_operator" => found.extend(sign_dropped(node, text)),
        _ => {}
    }
    found.extend(dropped(node, text, bindings));
    for edit in &mut found[known..] {
        edit.region = here;
    }
    for child in children(node) {
        walk(child, text, bindings, here, found);
    }
}

/// Whether edits of the node are useless, e.g. in messages, types or imports. They change nothing
/// that is checked, or only break the program.
fn is_not_worth_mutating(node: Node<'_>, text: &str) -> bool {
    match node.kind() {
        "comment"
        | "import_statement"
        | "import_from_statement"
        | "future_import_statement"
        | "type"
        | "decorator"
        | "assert_statement" => true,
        // A string that stands alone is documentation.
        "expression_statement" => named_children(node).iter().all(|child| child.kind() == "string"),
        "string" => above(node, &["raise_statement"]).is_some(),
        "keyword_argument" => {
            let name = node.child_by_field_name("name").map_or("", |name| text_of(name, text));
            matches!(
                name,
                "help" | "description" | "metavar" | "prog" | "epilog" | "usage" | "encoding" | "file"
            )
        }
        "call" => python_call::is_message(node, text),
        "comparison_operator" => text_of(node, text).starts_with("__name__"),
        _ => false,
    }
}

fn comparison(node: Node<'_>, text: &str) -> Vec<Edit> {
    let mut cursor = node.walk();
    let operators: Vec<_> = node.children_by_field_name("operators", &mut cursor).collect();
    let is_ours = |node: &&Node<'_>| COMPARISONS.iter().any(|(have, _)| *have == text_of(**node, text));
    operators
        .iter()
        .filter(is_ours)
        .filter_map(|operator| {
            let written = text_of(*operator, text);
            let (_, other) = COMPARISONS.iter().find(|(have, _)| *have == written)?;
            Some(
                Edit::replace(text, operator.byte_range(), *other, Operator::Comparison)
                    .what(format!("`{written}` became `{other}` in `{}`", quoted(text_of(node, text)))),
            )
        })
        .collect()
}

fn operation(node: Node<'_>, text: &str) -> Option<Edit> {
    let operator = node.child_by_field_name("operator")?;
    let written = text_of(operator, text);
    let side = |name| node.child_by_field_name(name).map_or("", |side: Node<'_>| side.kind());
    let (other, kind) = match written {
        "and" => ("or", Operator::Logic),
        "or" => ("and", Operator::Logic),
        // Strings and lists cannot be subtracted, and `%` on a string is formatting.
        _ if ["left", "right"].iter().any(|name| {
            matches!(side(name), "string" | "concatenated_string" | "list" | "tuple" | "list_comprehension")
        }) =>
        {
            return None;
        }
        _ => (ARITHMETIC.iter().find(|(have, _)| *have == written)?.1, Operator::Arithmetic),
    };
    Some(
        Edit::replace(text, operator.byte_range(), other, kind)
            .what(format!("`{written}` became `{other}` in `{}`", quoted(text_of(node, text)))),
    )
}

fn not_dropped(node: Node<'_>, text: &str) -> Option<Edit> {
    let inner = node.child_by_field_name("argument")?;
    let range = node.start_byte()..inner.start_byte();
    Some(
        Edit::drop(text, range, "", Operator::Logic)
            .what(format!("`not` dropped before `{}`", quoted(text_of(inner, text)))),
    )
}

fn sign_dropped(node: Node<'_>, text: &str) -> Option<Edit> {
    let inner = node.child_by_field_name("argument")?;
    let range = node.start_byte()..inner.start_byte();
    // `-1` is an index from the end. The number itself is mutated too.
    Some(
        Edit::drop(text, range, "", Operator::Arithmetic)
            .what(format!("sign dropped before `{}`", quoted(text_of(inner, text)))),
    )
}

/// Inverts a condition that has no operator of its own.
fn negated(node: Node<'_>, text: &str) -> Option<Edit> {
    let condition = match node.kind() {
        // The grammar has no field for the condition in `a if CONDITION else b` and in `if
        // CONDITION` of a comprehension.
        "conditional_expression" => named_children(node).into_iter().nth(1)?,
        "if_clause" => named_children(node).into_iter().next()?,
        _ => node.child_by_field_name("condition")?,
    };
    if !matches!(condition.kind(), "identifier" | "call" | "attribute" | "subscript") {
        return None;
    }
    let written = text_of(condition, text);
    Some(
        Edit::replace(text, condition.byte_range(), format!("not {written}"), Operator::Logic)
            .what(format!("`{}` negated", quoted(written))),
    )
}

/// Removes the effect of an exception handler.
fn unhandled(node: Node<'_>, text: &str) -> Option<Edit> {
    let caught = named_children(node).into_iter().next()?;
    let caught = match caught.kind() {
        "block" => {
            let keyword = children(node).into_iter().next()?;
            let range = keyword.end_byte()..keyword.end_byte();
            return Some(
                Edit::replace(text, range, format!(" {NEVER_RAISED}"), Operator::ErrorHandling)
                    .what("handler of every exception dropped"),
            );
        }
        "as_pattern" => named_children(caught).into_iter().next()?,
        _ => caught,
    };
    Some(
        Edit::replace(text, caught.byte_range(), NEVER_RAISED, Operator::ErrorHandling)
            .what(format!("handler of `{}` dropped", quoted(text_of(caught, text)))),
    )
}

/// Removes a statement, if no name is undefined afterwards.
fn dropped(node: Node<'_>, text: &str, bindings: &Bindings<'_>) -> Option<Edit> {
    let edit = |operator| Some(Edit::drop(text, node.byte_range(), "pass", operator));
    match node.kind() {
        "raise_statement" => edit(Operator::ErrorHandling),
        "continue_statement" | "break_statement" | "delete_statement" => edit(Operator::DroppedStatement),
        "expression_statement" => {
            let inner = named_children(node).into_iter().next()?;
            let is_step = match inner.kind() {
                "call" | "augmented_assignment" | "yield" | "await" => true,
                "assignment" => inner.child_by_field_name("left").is_some_and(|left| {
                    matches!(left.kind(), "subscript" | "attribute") || is_rebound(left, text, bindings)
                }),
                _ => false,
            };
            let caches = text_of(inner, text).starts_with("sys.dont_write_bytecode");
            if is_step && !caches { edit(Operator::DroppedStatement) } else { None }
        }
        "if_statement" if is_guard(node) => {
            let raises = node.child_by_field_name("consequence").is_some_and(|body| {
                let body = text_of(body, text).trim_start();
                body.starts_with("raise") || body.starts_with("sys.exit")
            });
            edit(if raises { Operator::ErrorHandling } else { Operator::DroppedStatement })
        }
        _ => None,
    }
}

/// Whether an `if` is a guard: its body has one statement, which leaves the block, and there is no
/// `else`.
fn is_guard(node: Node<'_>) -> bool {
    let leaves = ["raise_statement", "return_statement", "continue_statement", "break_statement"];
    let body = node.child_by_field_name("consequence").map(named_children).unwrap_or_default();
    node.child_by_field_name("alternative").is_none()
        && matches!(body.as_slice(), [only] if leaves.contains(&only.kind()))
}

/// Whether the name on the left was already bound earlier in the same function.
fn is_rebound(left: Node<'_>, text: &str, bindings: &Bindings<'_>) -> bool {
    let scope = above(left, &[FUNCTION, MODULE]).filter(|_| left.kind() == "identifier");
    let first = scope.and_then(|scope| bindings.get(&(scope.id(), text_of(left, text))));
    first.is_some_and(|first| *first < left.start_byte())
}

/// The first bindings of all names. They are collected once, because a program of a thousand
/// statements looks up a thousand names.
fn bindings<'a>(root: Node<'_>, text: &'a str) -> Bindings<'a> {
    let mut found = Bindings::new();
    // The module and the enclosing functions, each with the index of its parent.
    let mut scopes: Vec<(usize, Option<usize>)> = Vec::new();
    let mut open = vec![(root, None)];
    while let Some((node, around)) = open.pop() {
        let mut scope = around;
        if matches!(node.kind(), FUNCTION | MODULE) {
            scopes.push((node.id(), around));
            scope = Some(scopes.len() - 1);
        }
        let bound = match node.kind() {
            "assignment" | "augmented_assignment" => node.child_by_field_name("left").into_iter().collect(),
            "parameters" => named_children(node),
            _ => Vec::new(),
        };
        for name in bound.into_iter().map(|bound| text_of(bound, text)) {
            let mut at = scope;
            while let Some(&(id, outer)) = at.and_then(|at| scopes.get(at)) {
                let first = found.entry((id, name)).or_insert(node.start_byte());
                *first = node.start_byte().min(*first);
                at = outer;
            }
        }
        open.extend(named_children(node).into_iter().map(|child| (child, scope)));
    }
    found
}
