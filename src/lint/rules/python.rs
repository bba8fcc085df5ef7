//! What checks ask, and whether they can fail.

use std::collections::BTreeSet;

use crate::lint::python::{Function, condition, functions, indent};
use crate::lint::rule::Hit;
use crate::lint::subject::Subject;

/// Fewer assertions in a whole task cannot tell a near miss from a solution.
const FEW: usize = 3;

/// Ways to fail that are no `assert` statement: calls of helpers count, since they may assert.
const FAILS: [&str; 9] =
    ["assert", "raise", "fail(", "check", "expect", "verify", "raises(", "compare", "sys.exit"];

fn checks<'a>(text: &'a str) -> Vec<Function<'a>> {
    functions(text).into_iter().filter(Function::is_check).collect()
}

pub(in crate::lint) fn without_assert(subject: &Subject<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (path, text) in subject.test_modules() {
        let local: Vec<_> = functions(text)
            .into_iter()
            .filter(|function| !function.is_check() && function.body.iter().any(|(_, code)| can_fail(code)))
            .map(|function| format!("{}(", function.name))
            .collect();
        for check in checks(text) {
            let fails = check
                .body
                .iter()
                .any(|(_, code)| can_fail(code) || local.iter().any(|call| code.contains(call)));
            if !fails && !check.body.is_empty() {
                hits.push(Hit::at(path, check.line, format!("`{}` asserts nothing", check.name)));
            }
        }
    }
    hits
}

fn can_fail(code: &str) -> bool {
    FAILS.iter().any(|word| code.contains(word))
}

pub(in crate::lint) fn existence_only(subject: &Subject<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (path, text) in subject.test_modules() {
        let asserting: Vec<_> =
            checks(text).into_iter().filter(|check| check.asserts().next().is_some()).collect();
        let weak: Vec<_> = asserting
            .iter()
            .filter(|check| {
                check.asserts().all(|(_, what)| asks_existence(what))
                    && check.body.iter().all(|(_, code)| condition(code).is_some() || !can_fail(code))
            })
            .collect();
        if let Some(first) = weak.first().filter(|_| weak.len() * 2 > asserting.len()) {
            let message =
                format!("{} of {} checks only ask whether something exists", weak.len(), asserting.len());
            hits.push(Hit::at(path, first.line, message));
        }
    }
    hits
}

/// Whether a condition is nothing but a question for existence.
fn asks_existence(condition: &str) -> bool {
    const QUESTIONS: [&str; 8] = [
        "os.path.exists(",
        "os.path.isfile(",
        "os.path.isdir(",
        ".exists()",
        ".is_file()",
        ".is_dir()",
        "path.exists(",
        "isfile(",
    ];
    // The message of an assertion may hold anything.
    let begins = [", f\"", ", \"", ", f'", ", '"];
    let end = begins.iter().filter_map(|begin| condition.find(begin)).min();
    let condition = &condition[..end.unwrap_or(condition.len())];
    let compares = [" == ", " != ", " < ", " > ", " <= ", " >= ", " in ", " is ", "st_size", "getsize"];
    QUESTIONS.iter().any(|question| condition.contains(question))
        && !compares.iter().any(|compare| condition.contains(compare))
}

pub(in crate::lint) fn few_asserts(subject: &Subject<'_>) -> Vec<Hit> {
    let modules: Vec<_> = subject.test_modules().collect();
    let Some((first, _)) = modules.first() else { return Vec::new() };
    let asserts = modules
        .iter()
        .flat_map(|(_, text)| text.lines())
        .filter(|code| {
            condition(code).is_some() || code.contains("pytest.raises") || code.contains("pytest.fail")
        })
        .count();
    if asserts >= FEW {
        return Vec::new();
    }
    vec![Hit::whole(first, format!("{asserts} assertions in the whole task"))]
}

pub(in crate::lint) fn same_check_twice(subject: &Subject<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (path, text) in subject.test_modules() {
        let mut seen = BTreeSet::new();
        for check in checks(text) {
            if !seen.insert((check.class, check.name)) {
                hits.push(Hit::at(path, check.line, format!("`{}` is defined twice", check.name)));
            }
        }
    }
    // A draft's list of checks was made by its author's own reading of the tests.
    let mut listed = subject.draft.map(|draft| draft.task.checks.clone()).unwrap_or_default();
    listed.sort();
    if let Some(twice) = listed.windows(2).find(|pair| pair[0] == pair[1]).filter(|_| hits.is_empty()) {
        hits.push(Hit::whole("tests/test_outputs.py", format!("`{}` is defined twice", twice[0])));
    }
    hits
}

pub(in crate::lint) fn undocumented(subject: &Subject<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (path, text) in subject.test_modules() {
        let checks = checks(text);
        let bare: Vec<_> = checks.iter().filter(|check| !check.has_docstring()).collect();
        if let Some(first) = bare.first() {
            let message = format!("{} of {} checks have no docstring", bare.len(), checks.len());
            hits.push(Hit::at(path, first.line, message));
        }
    }
    hits
}

pub(in crate::lint) fn swallowed(subject: &Subject<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (path, text) in subject.test_modules() {
        for function in functions(text) {
            hits.extend(
                swallowed_in(&function).map(|line| {
                    Hit::at(path, line, "an assertion's failure is caught, and the check goes on")
                }),
            );
        }
    }
    hits
}

/// The first `try` of a function that holds an assertion and whose handler for it does nothing.
fn swallowed_in(function: &Function<'_>) -> Option<u32> {
    let body = &function.body;
    for (at, (line, code)) in body.iter().enumerate() {
        if code.trim() != "try:" {
            continue;
        }
        let depth = indent(code);
        let inside: Vec<_> = body[at + 1..].iter().take_while(|(_, code)| indent(code) > depth).collect();
        let asserts = inside.iter().any(|(_, code)| condition(code).is_some());
        let mut handlers = body[at + 1 + inside.len()..].iter().peekable();
        while let Some((_, handler)) = handlers.next_if(|(_, code)| {
            indent(code) == depth
                && ["except", "else:", "finally:"].iter().any(|w| code.trim().starts_with(w))
        }) {
            let mut does_nothing = true;
            while let Some((_, code)) = handlers.next_if(|(_, code)| indent(code) > depth) {
                let code = code.trim();
                does_nothing &= matches!(code, "pass" | "return" | "continue" | "...")
                    || code.starts_with("print(")
                    || code == "return True";
            }
            let head = handler.trim();
            let catches = head == "except:"
                || ["Exception", "AssertionError"]
                    .iter()
                    .any(|name| head.starts_with("except") && head.contains(name));
            if asserts && catches && does_nothing {
                return Some(*line);
            }
        }
    }
    None
}
