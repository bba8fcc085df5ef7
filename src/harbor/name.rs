//! Names of task directories.

use crate::model::{Blueprint, TaskName};

/// Docker labels and Harbor's trial names are cut at 64 letters.
const LONGEST: usize = 64;

/// `<domain>-<recipe>-<index>`, with at least four digits: lower-case letters, digits and single hyphens, at most 64.
///
/// Unique within a run by its index, and sorted as the plan is within a recipe.
pub fn task_name(blueprint: &Blueprint) -> TaskName {
    let recipe = blueprint.recipe.as_str();
    let recipe = recipe.split_once('/').map_or(recipe, |(_, name)| name);
    let mut stem = slug(&format!("{}-{recipe}", blueprint.domain));
    let index = format!("{:04}", blueprint.index);
    stem.truncate(LONGEST - 1 - index.len());
    TaskName(format!("{}-{index}", stem.trim_end_matches('-')))
}

/// Lower case, and one hyphen for every run of other characters.
fn slug(text: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { ' ' };
    let spaced: String = text.chars().map(plain).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join("-")
}
