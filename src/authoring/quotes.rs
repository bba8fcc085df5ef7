//! Reads from the docstring of each check which words of the instruction it enforces.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::{CheckId, Clause, ClauseRecord, Clauses, squeeze};

/// A top-level test function with its docstring.
static TEST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?ms)^def (test_\w+)\([^)]*\)[^:]*:\s*(r?)"""(.*?)""""#).ok());
/// A quotation in typographic or straight marks.
static QUOTATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?s)“(.+?)”|"(.+?)""#).ok());
/// Characters of a quotation. A single word would be found anywhere.
const LEAST: usize = 8;

/// The quotations of each check. Checks without a docstring are missing.
pub(super) fn quotations(checks: &str) -> BTreeMap<CheckId, Vec<String>> {
    let (Some(test), Some(quotation)) = (TEST.as_ref(), QUOTATION.as_ref()) else { return BTreeMap::new() };
    let quoted = |docstring: &str| {
        let found = quotation.captures_iter(docstring);
        found.filter_map(|found| found.get(1).or(found.get(2))).map(|words| squeeze(words.as_str())).collect()
    };
    test.captures_iter(checks)
        .filter_map(|found| {
            let docstring = if found[2].is_empty() { unescaped(&found[3]) } else { found[3].to_owned() };
            Some((CheckId::parse(&found[1]).ok()?, quoted(&docstring)))
        })
        .collect()
}

/// A docstring with its escapes resolved, e.g. `\"` becomes `"`.
fn unescaped(docstring: &str) -> String {
    let mut text = String::with_capacity(docstring.len());
    let mut chars = docstring.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(&next @ ('\\' | '"' | '\'')) if c == '\\' => {
                text.push(next);
                chars.next();
            }
            _ => text.push(c),
        }
    }
    text
}

/// The problem of checks that quote no words of the instruction.
pub(super) fn problems(checks: &[CheckId], text: &str, instruction: &str) -> Vec<String> {
    let quotations = quotations(text);
    let instruction = squeeze(instruction);
    let mut problems = Vec::new();
    for check in checks {
        let quoted = quotations.get(check).map_or(&[][..], Vec::as_slice);
        let long: Vec<_> = quoted.iter().filter(|words| words.chars().count() >= LEAST).collect();
        match long.iter().find(|words| !instruction.contains(words.as_str())) {
            _ if long.is_empty() => problems.push(format!(
                "the docstring of `{check}` does not begin with a quotation of the words that demand it"
            )),
            Some(words) => {
                problems.push(format!("`{check}` quotes “{words}”, which the instruction does not say"));
            }
            None => {}
        }
    }
    problems
}

/// `clauses`, each with the checks that quote its words. If no check quotes a clause, the checks
/// that notice its violations are added later ([`noticed`]). To ask the model for the quotation
/// would cost a reply, and every trial of the changed checks.
pub(super) fn assigned(mut clauses: Clauses, checks: &str) -> Clauses {
    let quotations = quotations(checks);
    for clause in &mut clauses.clause {
        clause.checks = quotations
            .iter()
            .filter(|(_, quoted)| quoted.iter().any(|words| overlaps(clause, words)))
            .map(|(check, _)| check.clone())
            .collect();
    }
    clauses
}

/// `clauses`, each without a quoting check with the checks that noticed its violations.
pub(super) fn noticed(mut clauses: Clauses, records: &[ClauseRecord]) -> Clauses {
    for clause in clauses.clause.iter_mut().filter(|clause| clause.checks.is_empty()) {
        let record = records.iter().find(|record| record.id == clause.id);
        clause.checks = record.map(|record| record.noticed_by.clone()).unwrap_or_default();
    }
    clauses
}

fn overlaps(clause: &Clause, words: &str) -> bool {
    // A final full stop makes no difference.
    let bare = |words: &str| squeeze(words).trim_matches(|c: char| c.is_ascii_punctuation()).to_owned();
    let words = bare(words);
    !words.is_empty()
        && clause
            .says
            .iter()
            .map(|says| bare(says))
            .any(|says| says.contains(&words) || words.contains(&says))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tally;

    const CHECKS: &str = "def helper():\n    \"\"\"\"Not a check.\"\"\"\n\n\ndef test_a():\n    \"\"\"“sorted by\n    name”, and \"one row per line\": compared.\"\"\"\n    assert 1\n\n\ndef test_b() -> None:\n    assert 1\n";

    #[test]
    fn quotations_are_compared_with_the_instruction() {
        let ids = [CheckId::parse("test_a").unwrap(), CheckId::parse("test_b").unwrap()];
        let check = |instruction: &str, expect: &[&str]| {
            let found = problems(&ids, CHECKS, instruction);
            assert_eq!(found.len(), expect.len(), "{found:?}");
            for (found, part) in found.iter().zip(expect) {
                assert!(found.contains(part), "{found}");
            }
        };
        check("Rows are sorted by name. Write one row\nper line.", &["`test_b` does not begin"]);
        check("Rows are sorted by name.", &["“one row per line”", "`test_b`"]);
    }

    #[test]
    fn escapes_of_docstrings_are_read() {
        let check = |docstring: &str, instruction: &str| {
            let checks = format!("def test_a():\n    {docstring}\n    assert 1\n");
            let found = problems(&[CheckId::parse("test_a").unwrap()], &checks, instruction);
            assert_eq!(found, [""; 0], "{docstring}");
        };
        check(
            r#""""“a tab is printed as `\\t`, a backslash as `\\\\`”""""#,
            r"There, a tab is printed as `\t`, a backslash as `\\`.",
        );
        check(r#"r"""“a tab is printed as `\t`”""""#, r"There, a tab is printed as `\t`.");
        check(r#""""“it prints \"no\" and ends”""""#, "It is so: it prints \"no\" and ends.");
    }

    #[test]
    fn clauses_are_assigned_to_checks_that_quote_them() {
        let clause = |says: &str| Clause {
            id: "a".to_owned(),
            says: vec![says.to_owned()],
            checks: Vec::new(),
            wrong: Vec::new(),
            violation: Vec::new(),
            untested: None,
        };
        let check = |clause: Clause, quoting: usize, demanding: usize| {
            let record = ClauseRecord {
                id: clause.id.clone(),
                says: clause.says.clone(),
                violations: Tally { good: 1, counted: 1 },
                noticed_by: vec![CheckId::parse("test_b").unwrap()],
                untested: None,
            };
            let clauses = Clauses { clause: vec![clause], ..Clauses::default() };
            let clauses = assigned(clauses, CHECKS);
            assert_eq!(clauses.clause[0].checks.len(), quoting);
            assert_eq!(noticed(clauses.clone(), &[]).clause[0].checks.len(), quoting);
            assert_eq!(noticed(clauses, &[record]).clause[0].checks.len(), demanding);
        };
        check(clause("Rows are sorted by name."), 1, 1);
        check(clause("by name"), 1, 1);
        check(clause("in UTF-8"), 0, 1);
    }
}
