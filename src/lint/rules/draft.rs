//! Rules for drafts, which include their second and wrong solutions.

use crate::lint::rule::RuleMatch;
use crate::lint::subject::Subject;
use crate::model::TaskAuthor;

/// Minimum number of checks of a recipe's verifier; fewer give step scores that hardly differ.
const MIN_CHECKS: usize = 8;
/// The same for a verifier that a model wrote: violations of every clause show what it notices.
const MIN_CHECKS_OF_MODEL: usize = 4;
/// Minimum number of known wrong solutions of a recipe.
const MIN_WRONG: usize = 3;

pub(in crate::lint) fn few_checks(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let Some(draft) = subject.draft else { return Vec::new() };
    let checks = draft.task.checks.len();
    let least = match draft.task.blueprint.author {
        TaskAuthor::Recipe(_) => MIN_CHECKS,
        TaskAuthor::Model => MIN_CHECKS_OF_MODEL,
    };
    if checks >= least {
        return Vec::new();
    }
    let message = format!("{checks} checks; a verifier needs at least {least}");
    vec![RuleMatch::whole("tests/test_outputs.py", message)]
}

pub(in crate::lint) fn few_wrong_solutions(subject: &Subject<'_>) -> Vec<RuleMatch> {
    let Some(draft) = subject.draft else { return Vec::new() };
    let wrong = draft.wrong.len();
    // A model's draft has violations instead, which come to more.
    if wrong >= MIN_WRONG || draft.task.blueprint.author == TaskAuthor::Model {
        return Vec::new();
    }
    vec![RuleMatch::whole(
        "recipe.toml",
        format!("{wrong} known wrong solutions; at least {MIN_WRONG} are needed"),
    )]
}
