//! Rules for drafts, which include their second and wrong solutions.

use crate::lint::rule::RuleMatch;
use crate::lint::subject::Subject;

/// Minimum number of checks of a verifier; fewer cannot tell an almost correct solution from a correct one.
const MIN_CHECKS: usize = 8;
/// Minimum number of known wrong solutions of a recipe.
const MIN_WRONG: usize = 3;

pub(in crate::lint) fn few_checks(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let Some(draft) = subject.draft else { return Vec::new() };
    let checks = draft.task.checks.len();
    if checks >= MIN_CHECKS {
        return Vec::new();
    }
    let message = format!("{checks} checks; a verifier needs at least {MIN_CHECKS}");
    vec![RuleMatch::whole("tests/test_outputs.py", message)]
}

pub(in crate::lint) fn few_wrong_solutions(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let Some(draft) = subject.draft else { return Vec::new() };
    let wrong = draft.wrong.len();
    if wrong >= MIN_WRONG {
        return Vec::new();
    }
    vec![RuleMatch::whole(
        "recipe.toml",
        format!("{wrong} known wrong solutions; at least {MIN_WRONG} are needed"),
    )]
}
