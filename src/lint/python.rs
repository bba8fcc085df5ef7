//! Syntax trees of pytest modules: functions, assertions and calls. Strings and comments are ignored.

use tree_sitter::Node;

use crate::syntax::{Grammar, children, descendants, line, named_children, parse, text_of};

const FUNCTION: &str = "function_definition";

/// Parts of names of calls that can fail without an `assert` statement: calls of helpers count, since they may assert.
const FAILING_CALLS: [&str; 9] =
    ["assert", "raise", "fail", "check", "expect", "verify", "raises", "compare", "sys.exit"];

/// Endings of the names of functions that start a program.
const STARTS_PROGRAM: [&str; 6] = ["run", "system", "popen", "Popen", "call", "check_output"];

/// Catching one of these catches a failed assertion.
const CATCH_ASSERTIONS: [&str; 3] = ["Exception", "BaseException", "AssertionError"];

/// The parts of a module that rules need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Module<'a> {
    /// Methods included; functions in functions belong to the outer one.
    pub(super) functions: Vec<Function<'a>>,
    /// `assert` statements and calls of `pytest.raises` and `pytest.fail` anywhere in the module.
    pub(super) assertions: usize,
    /// Calls that start a program.
    pub(super) programs: Vec<ProgramCall>,
    /// Lines of the calls of `zip` that end silently with the shorter of several sequences.
    pub(super) lenient_zips: Vec<u32>,
}

/// One `def`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// Of the `def`, from 1.
    pub(super) line: u32,
    /// Enclosing class, if any.
    pub(super) class: Option<&'a str>,
    pub(super) documented: bool,
    pub(super) asserts: Vec<Assertion<'a>>,
    /// Whether a call can fail, judged by its name.
    pub(super) fails_otherwise: bool,
    /// Names of what it calls.
    pub(super) calls: Vec<&'a str>,
    /// Lines of the `try` statements that catch the failure of an assertion without handling it.
    pub(super) swallowed: Vec<u32>,
}

/// One `assert` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assertion<'a> {
    /// Without the message.
    pub(super) condition: &'a str,
    /// Whether the condition compares values.
    pub(super) compares: bool,
}

/// A call that starts a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramCall {
    pub(super) line: u32,
    /// The string literals among its arguments, joined by blanks.
    pub(super) words: String,
}

/// Parses a module. Invalid parts are left out.
pub(super) fn module(text: &str) -> Module<'_> {
    let Some(tree) = parse(Grammar::Python, text) else { return Module::default() };
    let mut found = Module::default();
    for node in descendants(tree.root_node()) {
        match node.kind() {
            "assert_statement" => found.assertions += 1,
            "call" => {
                let name = called(node, text);
                found.assertions += usize::from(matches!(name, "pytest.raises" | "pytest.fail"));
                if name == "zip" && is_lenient(node, text) {
                    found.lenient_zips.push(line(node));
                }
                if STARTS_PROGRAM.iter().any(|ending| name.ends_with(ending)) {
                    let words: Vec<_> = descendants(node)
                        .filter(|inner| inner.kind() == "string_content")
                        .map(|inner| text_of(inner, text))
                        .collect();
                    found.programs.push(ProgramCall { line: line(node), words: words.join(" ") });
                }
            }
            _ => {}
        }
    }
    let mut open: Vec<(Node<'_>, Option<&str>)> = vec![(tree.root_node(), None)];
    while let Some((node, class)) = open.pop() {
        if node.kind() == FUNCTION {
            found.functions.push(function(node, class, text));
            continue;
        }
        let class = if node.kind() == "class_definition" { field(node, "name", text) } else { class };
        open.extend(named_children(node).into_iter().rev().map(|child| (child, class)));
    }
    found
}

fn function<'a>(node: Node<'_>, class: Option<&'a str>, text: &'a str) -> Function<'a> {
    let mut function = Function {
        name: field(node, "name", text).unwrap_or_default(),
        line: line(node),
        class,
        documented: false,
        asserts: Vec::new(),
        fails_otherwise: false,
        calls: Vec::new(),
        swallowed: Vec::new(),
    };
    let Some(body) = node.child_by_field_name("body") else { return function };
    function.documented = is_documented(body, text);
    // Where the last assertion ends: nodes come in the order of the text, and to look for one above each would take the square of their depth.
    let mut asserted = 0;
    for node in descendants(body) {
        match node.kind() {
            "assert_statement" => {
                asserted = asserted.max(node.end_byte());
                let condition = named_children(node).into_iter().find(|child| child.kind() != "comment");
                function.asserts.extend(condition.map(|condition| Assertion {
                    condition: text_of(condition, text),
                    compares: descendants(condition).any(|inner| inner.kind() == "comparison_operator"),
                }));
            }
            "raise_statement" => function.fails_otherwise = true,
            // `subprocess.run(…, check=True)`.
            "keyword_argument" => {
                function.fails_otherwise |= field(node, "name", text) == Some("check");
            }
            "call" => {
                let name = called(node, text);
                function.calls.push(name);
                function.fails_otherwise |=
                    node.start_byte() >= asserted && FAILING_CALLS.iter().any(|part| name.contains(part));
            }
            "try_statement" if swallows(node, text) => function.swallowed.push(line(node)),
            _ => {}
        }
    }
    function
}

/// Whether a call of `zip` takes several sequences of which none is endless, without `strict`.
fn is_lenient(call: Node<'_>, text: &str) -> bool {
    const ENDLESS: [&str; 4] = ["count(", "itertools.count(", "cycle(", "itertools.cycle("];
    let Some(arguments) = call.child_by_field_name("arguments") else { return false };
    let (named, positional): (Vec<_>, Vec<_>) = named_children(arguments)
        .into_iter()
        .filter(|argument| argument.kind() != "comment")
        .partition(|argument| argument.kind() == "keyword_argument");
    let is_strict = named.iter().any(|argument| field(*argument, "name", text) == Some("strict"));
    let is_endless =
        |argument: &Node<'_>| ENDLESS.iter().any(|call| text_of(*argument, text).starts_with(call));
    positional.len() > 1 && !is_strict && !positional.iter().any(is_endless)
}

/// The name of the called function: `pytest.raises`.
fn called<'a>(call: Node<'_>, text: &'a str) -> &'a str {
    field(call, "function", text).unwrap_or_default()
}

fn field<'a>(node: Node<'_>, name: &str, text: &'a str) -> Option<&'a str> {
    Some(text_of(node.child_by_field_name(name)?, text))
}

/// Whether a body begins with a docstring. Bytes and f-strings are not docstrings in Python.
fn is_documented(body: Node<'_>, text: &str) -> bool {
    let first = named_children(body).into_iter().find(|child| child.kind() != "comment");
    let first = first.filter(|first| first.kind() == "expression_statement");
    let value = first.and_then(|first| named_children(first).first().copied());
    value.is_some_and(|value| match value.kind() {
        "string" => !text_of(value, text).starts_with(['f', 'F', 'b', 'B']),
        "concatenated_string" => true,
        _ => false,
    })
}

/// Whether a `try` statement contains an assertion, and a handler that catches its failure without handling it.
fn swallows(node: Node<'_>, text: &str) -> bool {
    let asserts = node
        .child_by_field_name("body")
        .is_some_and(|body| descendants(body).any(|inner| inner.kind() == "assert_statement"));
    asserts
        && children(node)
            .into_iter()
            .filter(|child| matches!(child.kind(), "except_clause" | "except_group_clause"))
            .any(|clause| {
                let parts = named_children(clause).into_iter().filter(|part| part.kind() != "comment");
                let (body, caught): (Vec<_>, Vec<_>) = parts.partition(|part| part.kind() == "block");
                let catches = caught.is_empty()
                    || caught.iter().flat_map(|caught| descendants(*caught)).any(|name| {
                        name.kind() == "identifier" && CATCH_ASSERTIONS.contains(&text_of(name, text))
                    });
                let mut statements = body.into_iter().flat_map(named_children);
                catches && statements.all(|statement| does_nothing(statement, text))
            })
}

fn does_nothing(statement: Node<'_>, text: &str) -> bool {
    let code = text_of(statement, text).trim();
    matches!(code, "pass" | "return" | "return True" | "continue" | "...")
        || code.starts_with("print(")
        || statement.kind() == "comment"
}

impl Function<'_> {
    /// Whether pytest collects it.
    pub(super) fn is_check(&self) -> bool {
        self.name.starts_with("test")
    }

    /// Whether any call in it can fail, judged by its name.
    pub(super) fn can_fail(&self) -> bool {
        self.fails_otherwise || !self.asserts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found() {
        let check = |text: &str, expect: &[&str]| {
            let got: Vec<_> = module(text)
                .functions
                .iter()
                .map(|it| {
                    let asserts: Vec<_> = it.asserts.iter().map(|assert| assert.condition).collect();
                    format!("{} {} {:?} {} {asserts:?}", it.line, it.name, it.class, it.documented)
                })
                .collect();
            assert_eq!(got, expect, "{text}");
        };
        check(
            "import x\n\ndef helper(a,\n           b=1):\n    return a\n\n\nclass TestX:\n    def test_a(self):\n        \"\"\"Doc.\"\"\"\n\n        # c\n        assert a == 1\n        def inner():\n            assert b, 'm'\n    async def test_b(self): assert True\n\ndef test_c() -> None:\n    assert (x)\n",
            &[
                "3 helper None false []",
                "9 test_a Some(\"TestX\") true [\"a == 1\", \"b\"]",
                "16 test_b Some(\"TestX\") false [\"True\"]",
                "18 test_c None false [\"(x)\"]",
            ],
        );
        check(
            "'''Example:\n\ndef test_x():\n    assert y\n'''\n\nX = \"\"\"\ndef test_z(): pass\n\"\"\"\n",
            &[],
        );
        check(
            "def test_a():\n    '''Like this:\n\n    assert b\ndef test_x():\n    pass\n    '''\n    assert c\n",
            &["1 test_a None true [\"c\"]"],
        );
        check("@mark\ndef test_a(\n    b,\n) -> int:\n    f'{b}'\n", &["2 test_a None false []"]);
        check(
            "if a:\n    class T:\n        class U:\n            def test_b(self):\n                pass\ndef (:\n",
            &["4 test_b Some(\"U\") false []"],
        );
    }
}
