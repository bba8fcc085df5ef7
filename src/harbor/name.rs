//! Names of task directories.

use super::ORGANISATION;
use crate::model::{Blueprint, RecipeId, TaskName};

/// Takes the place of the recipe in the name of a task by a model.
const MODEL: &str = "model";

/// `<domain>-<recipe>-<index>`, e.g. `coding-mend-booking-cli-0007`. It has lower-case letters,
/// digits and single hyphens, at most 64 characters. The index has at least four digits.
///
/// The index makes the name unique in a run. Within a recipe, names sort like the plan.
pub fn task_name(blueprint: &Blueprint) -> TaskName {
    named(blueprint.domain.as_str(), blueprint.recipe().map_or(MODEL, RecipeId::name), blueprint.index)
}

/// The name of a task without termsmith's organisation, for a name that another harness states. The
/// text after `__` is the id of a trial, and is removed.
pub fn own_name(stated: &TaskName) -> &str {
    let name = stated.as_str();
    let name = name.strip_prefix(ORGANISATION).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    name.split_once("__").map_or(name, |(task, _)| task)
}

/// Whether `recipe` makes tasks with the name `stated`.
pub fn is_task_of(stated: &TaskName, recipe: &RecipeId) -> bool {
    let name = own_name(stated);
    let index = name.rsplit_once('-').and_then(|(_, index)| index.parse::<u32>().ok());
    index.is_some_and(|index| named(recipe.domain(), recipe.name(), index).as_str() == name)
}

fn named(domain: &str, recipe: &str, index: u32) -> TaskName {
    TaskName::numbered(&format!("{domain}-{recipe}"), index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_a_recipe_are_known_by_their_names() {
        let recipe = RecipeId::parse("data_science/settle-meter-readings").unwrap();
        let check = |name: &str, expect: bool| {
            assert_eq!(is_task_of(&TaskName::parse(name).unwrap(), &recipe), expect, "{name}");
        };
        check("data-science-settle-meter-readings-0003", true);
        check("termsmith/data-science-settle-meter-readings-0003", true);
        check("data-science-settle-meter-readings-12345", true);
        check("data-science-settle-meter-readings-0003__aB3xY", true);
        check("other/data-science-settle-meter-readings-0003", false);
        check("data-science-settle-meter-readings-3", false);
        check("data-science-settle-meter-readings", false);
        check("data-science-settle-meter-0003", false);
        check("0003", false);
    }
}
