//! Facts about pytest modules from their syntax trees: functions, assertions and calls. Text in
//! strings and comments is ignored.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::python_files::{Fetch, Read, constants, fetch, reads, rewards};
use crate::syntax::{Grammar, children, descendants, line, named_children, parse, text_of};

const FUNCTION: &str = "function_definition";

/// Parts of names of calls that can fail without an `assert` statement. Helpers are included,
/// because they may assert.
const FAILING_CALLS: [&str; 9] =
    ["assert", "raise", "fail", "check", "expect", "verify", "raises", "compare", "sys.exit"];

/// Endings of names of functions that start a program.
const STARTS_PROGRAM: [&str; 6] = ["run", "system", "popen", "Popen", "call", "check_output"];

/// Maximum number of loops of a module that are examined. Each takes time in proportion to the
/// module's length.
const MOST_LOOPS: usize = 500;

/// A handler for one of these also catches failed assertions.
const CATCH_ASSERTIONS: [&str; 3] = ["Exception", "BaseException", "AssertionError"];

/// The facts about a module that rules need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Module<'a> {
    /// Functions and methods. An inner function is part of the outer one.
    pub(super) functions: Vec<Function<'a>>,
    /// Number of `assert` statements and of calls of `pytest.raises` and `pytest.fail` in the
    /// module.
    pub(super) assertions: usize,
    /// Calls that start a program.
    pub(super) programs: Vec<ProgramCall>,
    /// Lines of comparisons over `zip`. They end at the shortest sequence without an error.
    pub(super) lenient_zips: Vec<u32>,
    /// Calls that download something.
    pub(super) fetches: Vec<Fetch<'a>>,
    /// Files that the module reads or runs.
    pub(super) reads: Vec<Read<'a>>,
    /// Lines of calls that write a value to `reward.json` that is no number, and the value.
    pub(super) rewards: Vec<(u32, String)>,
    /// Lines with assertions that depend on the wall clock.
    pub(super) clocks: Vec<u32>,
}

/// One `def`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// Line of the `def`, from 1.
    pub(super) line: u32,
    /// Name of the enclosing class.
    pub(super) class: Option<&'a str>,
    pub(super) documented: bool,
    pub(super) asserts: Vec<Assertion<'a>>,
    /// Whether it makes a call that can fail, judged by the call's name.
    pub(super) fails_otherwise: bool,
    /// Whether it is a helper: the module calls it with arguments, or uses its value, or it is a
    /// fixture.
    pub(super) helps: bool,
    /// Names of the functions that it calls.
    pub(super) calls: Vec<&'a str>,
    /// Lines of `try` statements that catch a failed assertion and ignore it.
    pub(super) swallowed: Vec<u32>,
}

/// One `assert` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assertion<'a> {
    /// The condition, without the message.
    pub(super) condition: &'a str,
    /// Whether the condition compares values.
    pub(super) compares: bool,
}

/// A call that starts a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramCall {
    pub(super) line: u32,
    /// The string literals in its arguments, joined by blanks.
    pub(super) words: String,
}

/// Parses a module. Invalid parts are skipped.
pub(super) fn module(text: &str) -> Module<'_> {
    let Some(tree) = parse(Grammar::Python, text) else { return Module::default() };
    let mut found = Module::default();
    let mut loops = 0;
    let constants = constants(tree.root_node(), text);
    for node in descendants(tree.root_node()) {
        match node.kind() {
            "assert_statement" => found.assertions += 1,
            "call" => {
                let name = called(node, text);
                found.assertions += usize::from(matches!(name, "pytest.raises" | "pytest.fail"));
                found.fetches.extend(fetch(node, name, text, &constants));
                found.reads.extend(reads(node, name, text));
                if STARTS_PROGRAM.iter().any(|ending| name.ends_with(ending)) {
                    let words: Vec<_> = descendants(node)
                        .filter(|inner| inner.kind() == "string_content")
                        .map(|inner| text_of(inner, text))
                        .collect();
                    found.programs.push(ProgramCall { line: line(node), words: words.join(" ") });
                }
            }
            "for_statement" | "for_in_clause" if loops < MOST_LOOPS => {
                loops += 1;
                found.lenient_zips.extend(lenient_zip(node, text).map(line));
            }
            _ => {}
        }
    }
    found.rewards = rewards(tree.root_node(), text);
    found.clocks = clocks(tree.root_node(), text);
    let helpers = helpers(tree.root_node(), text);
    let mut open: Vec<(Node<'_>, Option<&str>)> = vec![(tree.root_node(), None)];
    while let Some((node, class)) = open.pop() {
        if node.kind() == FUNCTION {
            let mut function = function(node, class, text);
            function.helps = helpers.contains(function.name) || is_fixture(node, text);
            found.functions.push(function);
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
        helps: false,
        calls: Vec::new(),
        swallowed: Vec::new(),
    };
    let Some(body) = node.child_by_field_name("body") else { return function };
    function.documented = is_documented(body, text);
    // End of the last assertion. Nodes come in the order of the text, so this tells whether a node
    // is inside an assertion. A search through its parents would take quadratic time.
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
            // `subprocess.run(…, check=True)` can fail.
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

/// Names of the functions that the module itself calls with arguments, or whose values it uses.
fn helpers<'a>(root: Node<'_>, text: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for node in descendants(root) {
        let calls = match node.kind() {
            // A statement `f()` does not use the value.
            "expression_statement" | "module" | "block" => continue,
            _ => named_children(node),
        };
        found.extend(calls.into_iter().filter(|call| call.kind() == "call").map(|call| called(call, text)));
    }
    for call in descendants(root).filter(|node| node.kind() == "call") {
        let arguments = call.child_by_field_name("arguments").map(named_children).unwrap_or_default();
        if !arguments.is_empty() {
            found.insert(called(call, text));
        }
    }
    // `self.test_case(1)` calls the method.
    found.into_iter().map(|name| name.strip_prefix("self.").unwrap_or(name)).collect()
}

fn is_fixture(function: Node<'_>, text: &str) -> bool {
    let decorated = function.parent().filter(|parent| parent.kind() == "decorated_definition");
    let decorators = decorated.map(named_children).unwrap_or_default();
    decorators.into_iter().any(|part| part.kind() == "decorator" && text_of(part, text).contains("fixture"))
}

/// The `zip` in a loop or comprehension that compares its pairs, if it can end early without
/// notice.
fn lenient_zip<'t>(looping: Node<'t>, text: &str) -> Option<Node<'t>> {
    let over = looping.child_by_field_name("right")?;
    let zip = descendants(over).find(|node| node.kind() == "call" && called(*node, text) == "zip")?;
    // `enumerate(zip(a, b))` yields the pairs, `dict(zip(a, b))` does not.
    let bare = zip == over || (over.kind() == "call" && called(over, text) == "enumerate");
    let inside = match looping.kind() {
        "for_statement" => looping.child_by_field_name("body"),
        _ => looping.parent(),
    }?;
    let compares = descendants(inside).any(|node| {
        node.kind() == "assert_statement"
            || (node.kind() == "comparison_operator" && !over.byte_range().contains(&node.start_byte()))
    });
    let arguments = zip.child_by_field_name("arguments").map(named_children).unwrap_or_default();
    // `zip(a, a[1:])` compares neighbours.
    let slices = arguments.iter().any(|argument| {
        argument.kind() == "subscript" && descendants(*argument).any(|part| part.kind() == "slice")
    });
    (bare && compares && !slices && is_lenient(zip, text) && !lengths_are_compared(looping, &arguments, text))
        .then_some(zip)
}

/// Whether the function around a loop compares the length of one sequence, or whole sequences.
fn lengths_are_compared(looping: Node<'_>, sequences: &[Node<'_>], text: &str) -> bool {
    let mut around = looping;
    while let Some(parent) = around.parent() {
        around = parent;
        if around.kind() == FUNCTION {
            break;
        }
    }
    let sequences: Vec<_> = sequences.iter().map(|sequence| text_of(*sequence, text)).collect();
    let lengths: Vec<_> = sequences.iter().map(|sequence| format!("len({sequence})")).collect();
    descendants(around).filter(|node| node.kind() == "comparison_operator").any(|comparison| {
        let sides: Vec<_> = named_children(comparison).into_iter().map(|side| text_of(side, text)).collect();
        sequences.iter().all(|sequence| sides.contains(sequence))
            || lengths.iter().any(|length| text_of(comparison, text).contains(length))
    })
}

/// Lines of assertions whose condition reads the wall clock, or a variable that was set from it.
fn clocks(root: Node<'_>, text: &str) -> Vec<u32> {
    const CLOCKS: [&str; 6] =
        ["datetime.now", "datetime.today", "date.today", "time.time", "datetime.utcnow", "time.localtime"];
    let asks = |node: Node<'_>| {
        descendants(node).any(|inner| {
            inner.kind() == "call" && CLOCKS.iter().any(|clock| called(inner, text).ends_with(clock))
        })
    };
    let set_from: BTreeSet<&str> = descendants(root)
        .filter(|node| node.kind() == "assignment" && node.child_by_field_name("right").is_some_and(asks))
        .filter_map(|node| field(node, "left", text))
        .collect();
    let asserts = descendants(root).filter(|node| node.kind() == "assert_statement");
    let conditions = asserts.filter_map(|assert| {
        let condition = named_children(assert).into_iter().find(|child| child.kind() != "comment")?;
        let names = || {
            descendants(condition)
                .any(|node| node.kind() == "identifier" && set_from.contains(text_of(node, text)))
        };
        (asks(condition) || names()).then(|| line(condition))
    });
    conditions.collect()
}

/// Whether a call of `zip` has several finite sequences and no `strict`.
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

/// The name of the called function, e.g. `pytest.raises`.
pub(super) fn called<'a>(call: Node<'_>, text: &'a str) -> &'a str {
    field(call, "function", text).unwrap_or_default()
}

pub(super) fn field<'a>(node: Node<'_>, name: &str, text: &'a str) -> Option<&'a str> {
    Some(text_of(node.child_by_field_name(name)?, text))
}

/// Whether a body begins with a docstring. In Python, bytes and f-strings are no docstrings.
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

/// Whether a `try` statement contains an assertion, and a handler that ignores its failure.
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
    /// Whether pytest collects the function as a test.
    pub(super) fn is_check(&self) -> bool {
        self.name.starts_with("test") && !self.helps
    }

    /// Whether it asserts, or makes a call that can fail.
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
