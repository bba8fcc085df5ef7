//! Reads what a Python module offers, for a prompt: signatures and docstrings.

use tree_sitter::Node;

use crate::syntax::{Grammar, children, named_children, parse, text_of};

/// The module's docstring, its named tuples, and its public functions without their bodies.
pub(super) fn interface(module: &str) -> String {
    let Some(tree) = parse(Grammar::Python, module) else { return module.to_owned() };
    let mut parts = Vec::new();
    for node in named_children(tree.root_node()) {
        match node.kind() {
            "function_definition" => parts.extend(function(node, module)),
            "expression_statement" => {
                let text = text_of(node, module);
                if text.contains("namedtuple(") || parts.is_empty() && text.starts_with("\"\"\"") {
                    parts.push(text.to_owned());
                }
            }
            _ => {}
        }
    }
    parts.join("\n\n")
}

/// The signature of a public function, and its docstring.
fn function(node: Node<'_>, module: &str) -> Option<String> {
    let name = text_of(node.child_by_field_name("name")?, module);
    let body = node.child_by_field_name("body")?;
    if name.starts_with('_') {
        return None;
    }
    let first = named_children(body).into_iter().next()?;
    let documented = children(first).first().is_some_and(|node| node.kind() == "string");
    let end = if documented { first.end_byte() } else { node.child_by_field_name("parameters")?.end_byte() };
    module.get(node.start_byte()..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_private_functions_are_left_out() {
        let check = |module: &str, expect: &str| assert_eq!(interface(module), expect);
        check("\"\"\"Doc.\"\"\"\nimport os\nX = 1\n", "\"\"\"Doc.\"\"\"");
        check(
            "def f(a, b=2):\n    \"\"\"Says.\"\"\"\n    return a\n",
            "def f(a, b=2):\n    \"\"\"Says.\"\"\"",
        );
        check("def f(a):\n    return a\n", "def f(a)");
        check("def _f(a):\n    \"\"\"Private.\"\"\"\n", "");
        check("Pair = namedtuple('Pair', 'a b')\n", "Pair = namedtuple('Pair', 'a b')");
    }
}
