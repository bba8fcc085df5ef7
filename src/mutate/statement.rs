//! Detects which statements of a shell script change state.

use crate::syntax::{children, named_children, text_of};
use tree_sitter::Node;

/// Commands that change no state unless their output is redirected.
const STATELESS: [&str; 27] = [
    "echo", "printf", "true", "false", ":", "set", "cd", "pwd", "ls", "cat", "test", "[", "export", "shopt",
    "umask", "sleep", "head", "tail", "grep", "wc", "diff", "cmp", "exit", "return", "break", "continue",
    "trap",
];

/// Maximum number of nested calls of a script's own functions that are followed.
const MAX_CALLS: u32 = 4;

/// Redirection targets that discard output.
const NOWHERE: [&str; 3] = ["/dev/null", "/dev/stderr", "/dev/stdout"];

/// Whether `node` may change anything outside of the shell when it runs.
pub(super) fn changes_state(node: Node<'_>, script: &str) -> bool {
    changes(node, script, MAX_CALLS)
}

fn changes(node: Node<'_>, script: &str, calls: u32) -> bool {
    let any = |node| named_children(node).into_iter().any(|child| changes(child, script, calls));
    match node.kind() {
        "comment"
        | "variable_assignment"
        | "variable_assignments"
        | "declaration_command"
        | "unset_command"
        | "function_definition"
        | "test_command" => false,
        "command" => {
            let name = node.child_by_field_name("name").map(|name| text_of(name, script));
            name.is_none_or(|name| {
                !STATELESS.contains(&name) && !is_function_without_effect(name, node, script, calls)
            })
        }
        "pipeline" | "list" | "negated_command" => any(node),
        "redirected_statement" => {
            let body = node.child_by_field_name("body").is_some_and(|body| changes(body, script, calls));
            body || children(node).into_iter().any(|child| writes(child, script))
        }
        _ => true,
    }
}

/// Whether the script defines a function `name` that changes no state, e.g. one that prints a
/// message and exits.
fn is_function_without_effect(name: &str, call: Node<'_>, script: &str, calls: u32) -> bool {
    let mut root = call;
    while let Some(parent) = root.parent() {
        root = parent;
    }
    let mut bodies = named_children(root)
        .into_iter()
        .filter(|node| node.kind() == "function_definition")
        .filter(|node| node.child_by_field_name("name").is_some_and(|found| text_of(found, script) == name))
        .filter_map(|node| node.child_by_field_name("body"))
        .peekable();
    let is_without_effect = |body: Node<'_>| {
        body.kind() == "compound_statement"
            && !named_children(body).into_iter().any(|child| changes(child, script, calls - 1))
    };
    calls > 0 && bodies.peek().is_some() && bodies.all(is_without_effect)
}

/// Whether a redirection writes a file.
fn writes(redirect: Node<'_>, script: &str) -> bool {
    match redirect.kind() {
        "file_redirect" => {
            let text = text_of(redirect, script);
            let target = redirect.child_by_field_name("destination").map_or("", |node| text_of(node, script));
            text.contains('>') && !text.contains(">&") && !NOWHERE.contains(&target)
        }
        "heredoc_redirect" => children(redirect).into_iter().any(|child| writes(child, script)),
        _ => false,
    }
}
