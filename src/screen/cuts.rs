//! Truncated solutions: the reference, cut before one of its top-level state-changing statements.

use std::collections::BTreeSet;

use tree_sitter::{Node, Parser};

/// Cuts of one solution that are tried; more of them rarely find what these do not.
const MAX_CUTS: usize = 4;

/// Commands that leave no state behind, unless their output is redirected.
const STATELESS: [&str; 22] = [
    "echo", "printf", "true", ":", "set", "cd", "pwd", "ls", "cat", "test", "[", "export", "shopt", "umask",
    "sleep", "head", "tail", "grep", "wc", "diff", "cmp", "exit",
];

/// A prefix of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// State-changing statements kept, and how many there are.
    pub kept: usize,
    pub of: usize,
    pub script: String,
}

/// At most [`MAX_CUTS`] prefixes of `script`, each ending before a state-changing top-level statement and keeping at least one.
/// Empty when the script has fewer than two such statements, or is not bash.
pub fn cuts(script: &str) -> Vec<Cut> {
    let starts = state_changing_statements(script);
    let of = starts.len();
    // Keeping none of them is the untouched trial.
    let places: BTreeSet<usize> = match of {
        0 | 1 => BTreeSet::new(),
        _ => (0..MAX_CUTS.min(of - 1)).map(|nth| of - 1 - nth * (of - 1) / MAX_CUTS.min(of - 1)).collect(),
    };
    places
        .into_iter()
        .filter_map(|kept| Some(Cut { kept, of, script: script.get(..*starts.get(kept)?)?.to_owned() }))
        .collect()
}

fn state_changing_statements(script: &str) -> Vec<usize> {
    let mut parser = Parser::new();
    if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
        return Vec::new();
    }
    let Some(tree) = parser.parse(script, None) else { return Vec::new() };
    let root = tree.root_node();
    let mut cursor = root.walk();
    root.named_children(&mut cursor)
        .filter(|node| changes_state(*node, script))
        .map(|node| node.start_byte())
        .collect()
}

fn changes_state(node: Node<'_>, script: &str) -> bool {
    match node.kind() {
        "comment"
        | "variable_assignment"
        | "variable_assignments"
        | "declaration_command"
        | "function_definition"
        | "test_command" => false,
        "command" => node
            .child_by_field_name("name")
            .and_then(|name| name.utf8_text(script.as_bytes()).ok())
            .is_none_or(|name| !STATELESS.contains(&name)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expect: &[&str]) {
        let got: Vec<_> = cuts(script).into_iter().map(|cut| cut.script).collect();
        assert_eq!(got, expect, "{script:?}");
    }

    #[test]
    fn cuts_end_before_state_changing_statements() {
        check("", &[]);
        check("mkdir a\n", &[]);
        check("mkdir a\ntouch a/b\n", &["mkdir a\n"]);
        check(
            "set -eu\ncd /app\nmkdir a\necho made\ntouch a/b\necho done\n",
            &["set -eu\ncd /app\nmkdir a\necho made\n"],
        );
        check("x=1\nmkdir a; touch b\n", &["x=1\nmkdir a; "]);
        check("cat > a <<'E'\nmkdir x\nE\nsort a > b\n", &["cat > a <<'E'\nmkdir x\nE\n"]);
        check("f() { rm -r a; }\nmkdir a\nf\n", &["f() { rm -r a; }\nmkdir a\n"]);
        check(
            "for x in 1 2; do\n  touch $x\ndone\nif true; then\n  rm 1\nfi\n",
            &["for x in 1 2; do\n  touch $x\ndone\n"],
        );
        check("echo a > b\ncat b > c\n", &["echo a > b\n"]);
        check("mkdir a && touch a/b\nmv a c\n", &["mkdir a && touch a/b\n"]);
    }

    #[test]
    fn at_most_four_cuts_and_always_the_last() {
        let script: String = (0..20).map(|n| format!("touch {n}\n")).collect();
        let kept: Vec<_> = cuts(&script).iter().map(|cut| cut.kept).collect();
        assert_eq!(kept.len(), 4);
        assert_eq!(kept.last(), Some(&19));
    }
}
