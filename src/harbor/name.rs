//! Names of task directories.

use crate::model::{Blueprint, TaskName};

/// `<domain>-<recipe>-<index>`, with at least four digits: lower-case letters, digits and single hyphens, at most 64.
///
/// Unique within a run by its index, and sorted as the plan is within a recipe.
pub fn task_name(blueprint: &Blueprint) -> TaskName {
    TaskName::numbered(
        &format!("{}-{}", blueprint.domain, blueprint.recipe().map_or("model", |recipe| recipe.name())),
        blueprint.index,
    )
}
