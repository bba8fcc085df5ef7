//! Rules about checks: what they test, and whether they can fail.

use std::collections::BTreeSet;

use regex::Regex;

use crate::lint::linted_task::{LintedTask, in_tests};
use crate::lint::pattern::MOST_IN_ONE_FILE;
use crate::lint::python::{Assertion, Function, module};
use crate::lint::rule::RuleMatch;

/// Minimum number of assertions of a task. With fewer, an almost correct solution cannot be told
/// from a correct one.
const FEW: usize = 3;

fn checks(text: &str) -> Vec<Function<'_>> {
    module(text).functions.into_iter().filter(Function::is_check).collect()
}

pub(in crate::lint) fn without_assert(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.test_modules() {
        let functions = module(text).functions;
        let helpers: BTreeSet<&str> = functions
            .iter()
            .filter(|function| !function.is_check() && function.can_fail())
            .map(|function| function.name)
            .collect();
        for check in functions.iter().filter(|function| function.is_check()) {
            // `self.helper()` calls the method.
            let calls_helper =
                check.calls.iter().any(|call| helpers.contains(call.rsplit('.').next().unwrap_or(call)));
            if !check.can_fail() && !calls_helper {
                matches.push(RuleMatch::at(path, check.line, format!("`{}` asserts nothing", check.name)));
            }
        }
    }
    matches
}

pub(in crate::lint) fn existence_only(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.test_modules() {
        let asserting: Vec<_> = checks(text).into_iter().filter(|check| !check.asserts.is_empty()).collect();
        let weak: Vec<_> = asserting
            .iter()
            .filter(|check| check.asserts.iter().all(asks_existence) && !check.fails_otherwise)
            .collect();
        if let Some(first) = weak.first().filter(|_| weak.len() * 2 > asserting.len()) {
            let message =
                format!("{} of {} checks only test that something exists", weak.len(), asserting.len());
            matches.push(RuleMatch::at(path, first.line, message));
        }
    }
    matches
}

/// Whether a condition only tests that something exists.
fn asks_existence(assertion: &Assertion<'_>) -> bool {
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
    let asks_size = ["st_size", "getsize"].iter().any(|size| assertion.condition.contains(size));
    QUESTIONS.iter().any(|question| assertion.condition.contains(question))
        && !assertion.compares
        && !asks_size
}

pub(in crate::lint) fn few_asserts(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let modules: Vec<_> = task.test_modules().collect();
    let Some((first, _)) = modules.first() else { return Vec::new() };
    let asserts: usize = modules.iter().map(|(_, text)| module(text).assertions).sum();
    if asserts >= FEW {
        return Vec::new();
    }
    vec![RuleMatch::whole(first, format!("{asserts} assertions in the whole task"))]
}

pub(in crate::lint) fn same_check_twice(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.test_modules() {
        let mut seen = BTreeSet::new();
        for check in checks(text) {
            if !seen.insert((check.class, check.name)) {
                matches.push(RuleMatch::at(path, check.line, format!("`{}` is defined twice", check.name)));
            }
        }
    }
    // The author made this list from the draft's tests.
    let mut listed = task.draft.map(|draft| draft.task.checks.clone()).unwrap_or_default();
    listed.sort();
    if let Some(twice) = listed.windows(2).find(|pair| pair[0] == pair[1]).filter(|_| matches.is_empty()) {
        matches.push(RuleMatch::whole("tests/test_outputs.py", format!("`{}` is defined twice", twice[0])));
    }
    matches
}

pub(in crate::lint) fn undocumented(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.test_modules() {
        let checks = checks(text);
        let bare: Vec<_> = checks.iter().filter(|check| !check.documented).collect();
        if let Some(first) = bare.first() {
            let message = format!("{} of {} checks have no docstring", bare.len(), checks.len());
            matches.push(RuleMatch::at(path, first.line, message));
        }
    }
    matches
}

pub(in crate::lint) fn wall_clock(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.texts(|path| in_tests(path) && path.ends_with(".py")) {
        let lines = module(text).clocks.into_iter().take(MOST_IN_ONE_FILE);
        matches.extend(lines.map(|line| RuleMatch::at(path, line, "a check depends on the wall clock")));
    }
    matches
}

pub(in crate::lint) fn swallowed(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.test_modules() {
        for function in module(text).functions {
            // One finding per function is enough.
            matches.extend(function.swallowed.first().map(|line| {
                RuleMatch::at(path, *line, "a failed assertion is caught, and the check continues")
            }));
        }
    }
    matches
}

pub(in crate::lint) fn lenient_zip(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let mut matches = Vec::new();
    for (path, text) in task.test_modules() {
        let lines = module(text).lenient_zips.into_iter();
        matches.extend(lines.take(MOST_IN_ONE_FILE).map(|line| {
            RuleMatch::at(path, line, "`zip` stops at the shorter list, and compares nothing if one is empty")
        }));
    }
    matches
}

/// Code of the reference that tests import or open.
const REFERENCE: &str =
    r#"^\s*(?:from|import)\s+(solution|oracle|reference_solution)\b|["' ](/solution|/oracle)/"#;

pub(in crate::lint) fn imports_reference(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let Ok(reference) = Regex::new(REFERENCE) else { return Vec::new() };
    let instructions = task.instructions();
    let is_test = |path: &str| in_tests(path) && (path.ends_with(".py") || path.ends_with(".sh"));
    let mut matches = Vec::new();
    for (path, text) in task.texts(is_test) {
        let uses = (1_u32..).zip(text.lines()).filter(|(_, line)| {
            let found = reference.captures(line).and_then(|found| found.get(1).or_else(|| found.get(2)));
            !line.trim_start().starts_with('#')
                && found.is_some_and(|found| !names_as_answer(&instructions, found.as_str()))
        });
        matches.extend(
            uses.take(MOST_IN_ONE_FILE)
                .map(|(line, _)| RuleMatch::at(path, line, "the tests use the reference solution")),
        );
    }
    matches
}

/// Whether the instruction says that the answer belongs in the used module (`solution.py`,
/// `solution/`) or folder (`/solution/`).
fn names_as_answer(instructions: &str, used: &str) -> bool {
    instructions.match_indices(used).any(|(at, _)| {
        let before = instructions[..at].chars().next_back();
        let after = &instructions[at + used.len()..];
        // `/app/solution/` is not `/solution/`, and `my-solution.py` is not `solution.py`.
        let whole = !before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let is_module = !used.starts_with('/') && after.starts_with(".py");
        whole && (is_module || after.starts_with('/'))
    })
}
