//! What only a draft can lack: it has its second and wrong solutions with it.

use crate::lint::rule::RuleMatch;
use crate::lint::subject::Subject;

/// Checks that a verifier needs at least; fewer cannot tell a near miss from a solution.
const MIN_CHECKS: usize = 8;
/// Known wrong solutions that a recipe brings at least.
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
