//! Syntax trees of shell and Python texts, instructions of Dockerfiles, and quoting for shells.
//!
//! Texts are untrusted and may be nested deeply, so a recursive walk could overflow the stack.
//! Trees are therefore walked with a work list. A recursive walk must check [`depth`] first.

pub(crate) mod builder;
pub(crate) mod dockerfile;
mod shell_word;

use tree_sitter::{Node, Parser, Tree};

pub(crate) use shell_word::{shell_line, shell_word};

/// A built-in grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grammar {
    Bash,
    Python,
}

/// The syntax tree of `text`. A text with errors has a tree with error nodes. `None` if the grammar
/// cannot be loaded.
pub(crate) fn parse(grammar: Grammar, text: &str) -> Option<Tree> {
    let language = match grammar {
        Grammar::Bash => tree_sitter_bash::LANGUAGE,
        Grammar::Python => tree_sitter_python::LANGUAGE,
    };
    let mut parser = Parser::new();
    parser.set_language(&language.into()).ok()?;
    parser.parse(text, None)
}

/// The source text of a node.
pub(crate) fn text_of<'a>(node: Node<'_>, text: &'a str) -> &'a str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// All children of a node, including punctuation.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// The children that have a name in the grammar, i.e. no punctuation.
pub(crate) fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// The line where a node begins, from 1.
pub(crate) fn line(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX - 1) + 1
}

/// The depth of a tree: the number of nodes on its longest path from the root.
pub(crate) fn depth(tree: &Tree) -> usize {
    let mut cursor = tree.walk();
    let (mut here, mut deepest) = (1, 1);
    loop {
        if cursor.goto_first_child() {
            here += 1;
            deepest = deepest.max(here);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return deepest;
            }
            here -= 1;
        }
    }
}

/// The named nodes at and below `node`, in the order of the text.
pub(crate) fn descendants(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut open = vec![node];
    std::iter::from_fn(move || {
        let node = open.pop()?;
        open.extend(named_children(node).into_iter().rev());
        Some(node)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_in_the_order_of_the_text() {
        let check = |grammar, text: &str, kind: &str, expect: &[(u32, &str)]| {
            let tree = parse(grammar, text).unwrap();
            let nodes = descendants(tree.root_node()).filter(|node| node.kind() == kind);
            let found: Vec<_> = nodes.map(|node| (line(node), text_of(node, text))).collect();
            assert_eq!(found, expect, "{text}");
        };
        check(Grammar::Bash, "a | b\nif c; then d; fi", "command", &[(1, "a"), (1, "b"), (2, "c"), (2, "d")]);
        check(Grammar::Python, "f(g(1))\nh()", "call", &[(1, "f(g(1))"), (1, "g(1)"), (2, "h()")]);
        // A deep text must not overflow the stack.
        let deep = format!("{}1{}", "(".repeat(20_000), ")".repeat(20_000));
        assert!(descendants(parse(Grammar::Python, &deep).unwrap().root_node()).count() > 10);
    }

    #[test]
    fn depths() {
        let check = |grammar, text: &str, expect: usize| {
            assert_eq!(depth(&parse(grammar, text).unwrap()), expect, "{text:?}");
        };
        check(Grammar::Python, "", 1);
        // Three nodes: the module, the statement, the name.
        check(Grammar::Python, "a", 3);
        check(Grammar::Python, "a\n(b)\nc", 4);
        check(Grammar::Python, &format!("{}1{}", "(".repeat(20_000), ")".repeat(20_000)), 20_003);
        check(Grammar::Bash, "a", 4);
    }
}
