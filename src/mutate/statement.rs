//! Detects which statements of a shell script change state.

use crate::syntax::{children, named_children, text_of};
use tree_sitter::Node;

/// Commands that change no state unless their output is redirected.
const STATELESS: [&str; 26] = [
    "echo", "printf", "true", "false", ":", "set", "cd", "pwd", "ls", "cat", "test", "[", "export", "shopt",
    "umask", "sleep", "head", "tail", "grep", "wc", "diff", "cmp", "exit", "return", "break", "continue",
];

/// Redirection targets that discard output.
const NOWHERE: [&str; 3] = ["/dev/null", "/dev/stderr", "/dev/stdout"];

/// Whether running `node` may change anything outside the shell.
pub(super) fn changes_state(node: Node<'_>, script: &str) -> bool {
    match node.kind() {
        "comment"
        | "variable_assignment"
        | "variable_assignments"
        | "declaration_command"
        | "unset_command"
        | "function_definition"
        | "test_command" => false,
        "command" => {
            node.child_by_field_name("name").is_none_or(|name| !STATELESS.contains(&text_of(name, script)))
        }
        "pipeline" | "list" | "negated_command" => {
            named_children(node).into_iter().any(|child| changes_state(child, script))
        }
        "redirected_statement" => {
            let body = node.child_by_field_name("body").is_some_and(|body| changes_state(body, script));
            body || children(node).into_iter().any(|child| writes(child, script))
        }
        _ => true,
    }
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
