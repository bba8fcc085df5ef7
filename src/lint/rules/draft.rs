//! Rules about drafts, which include a second solution and wrong solutions.

use crate::lint::linted_task::LintedTask;
use crate::lint::rule::RuleMatch;
use crate::model::TaskAuthor;

/// Minimum number of checks in a recipe's task. With fewer, step scores hardly differ.
const MIN_CHECKS: usize = 8;
/// Minimum number of checks in a task by a model. It can be smaller, because violations of every
/// clause show what the checks notice.
const MIN_CHECKS_OF_MODEL: usize = 4;
/// Minimum number of known wrong solutions of a recipe.
const MIN_WRONG: usize = 3;

pub(in crate::lint) fn few_checks(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let Some(draft) = task.draft else { return Vec::new() };
    let checks = draft.task.checks.len();
    let least = match draft.task.blueprint.author {
        TaskAuthor::Recipe(_) => MIN_CHECKS,
        TaskAuthor::Model => MIN_CHECKS_OF_MODEL,
    };
    if checks >= least {
        return Vec::new();
    }
    let message = format!("{checks} checks; at least {least} are needed");
    vec![RuleMatch::whole("tests/test_outputs.py", message)]
}

pub(in crate::lint) fn few_wrong_solutions(task: &LintedTask<'_>) -> Vec<RuleMatch> {
    let Some(draft) = task.draft else { return Vec::new() };
    let wrong = draft.wrong.len();
    // A draft by a model has violations instead, and more of them.
    if wrong >= MIN_WRONG || draft.task.blueprint.author == TaskAuthor::Model {
        return Vec::new();
    }
    vec![RuleMatch::whole(
        "recipe.toml",
        format!("{wrong} known wrong solutions; at least {MIN_WRONG} are needed"),
    )]
}
