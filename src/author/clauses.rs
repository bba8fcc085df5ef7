//! Reads `clauses.toml` of a recipe: what its instruction demands, and how each demand can be
//! violated.

use std::collections::BTreeSet;

use minijinja::value::Value;

use super::AuthorError;
use super::render::Renderer;
use crate::model::{CheckId, Clauses, FileTree, WrongSolution};

const FILE: &str = "clauses.toml";

/// The parts of a task that its clauses depend on.
pub(super) struct Parts<'a> {
    pub(super) instruction: &'a str,
    pub(super) solution: &'a FileTree,
    pub(super) checks: &'a [CheckId],
    pub(super) wrong: &'a [WrongSolution],
}

/// Reads, renders and checks the clauses of a recipe.
pub(super) fn clauses(
    renderer: &Renderer<'_>,
    context: &Value,
    parts: &Parts<'_>,
) -> Result<Clauses, AuthorError> {
    let malformed = |message: String| AuthorError::Malformed {
        recipe: renderer.recipe.to_owned(),
        file: FILE.to_owned(),
        message,
    };
    let Some(file) = renderer.one(FILE, context)? else { return Ok(Clauses::default()) };
    let text = file.as_text().ok_or_else(|| malformed("it is not UTF-8".to_owned()))?;
    let clauses: Clauses = toml::from_str(text).map_err(|error| malformed(error.to_string()))?;
    let wrong: BTreeSet<&str> = parts.wrong.iter().map(|wrong| wrong.name.as_str()).collect();
    let problems = clauses.problems(parts.instruction, parts.solution, parts.checks, &wrong);
    if problems.is_empty() {
        return Ok(clauses);
    }
    Err(malformed(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}
