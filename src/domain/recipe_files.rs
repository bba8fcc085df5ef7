//! Checks that a recipe's files are complete.

use std::collections::BTreeSet;

use super::problem::Problem;
use super::recipe_decl::RecipeDecl;
use super::source::{Source, at};
use crate::model::{RecipeId, RelPath, is_kebab_case};

/// Required files of a recipe, with or without `.j2`, and their purpose.
const NEEDED: [(&str, &str); 5] = [
    ("instruction.md", "it is what a solver reads"),
    ("solution/solve.sh", "it is the reference solution"),
    ("second/solve.sh", "it is an independent solution in another language or style"),
    ("tests/test_outputs.py", "its `test_…` functions are the checks"),
    ("clauses.toml", "it says what each sentence of the instruction demands, and how that can be violated"),
];

/// The file of the scripted expert. Its strings are templates, but the file itself is not.
const EXPERT: &str = "expert.toml";

/// Maximum number of characters of domain and recipe together. With two hyphens and a six-digit
/// index, a task's name then has at most 64.
const LONGEST_ID: usize = 56;

/// Reports missing files, and wrong solutions that are not declared.
pub(super) fn check(folder: &str, source: &Source<'_>, decl: &RecipeDecl, files: &[RelPath]) -> Vec<Problem> {
    let names: BTreeSet<&str> = files.iter().map(|path| path.as_str().trim_end_matches(".j2")).collect();
    let problem = |message: String, hint: &str| Problem {
        file: folder.to_owned(),
        at: None,
        message,
        hint: Some(hint.to_owned()),
    };
    let missing = NEEDED
        .iter()
        .filter(|(name, _)| !names.contains(name))
        .map(|(name, why)| problem(format!("the recipe has no `{name}` or `{name}.j2`"), why));
    let silent = files.iter().all(|path| path.as_str() != EXPERT);
    let expert =
        silent.then(|| problem(format!("the recipe has no `{EXPERT}`"), "it scripts the offline expert"));
    let scripts =
        decl.wrong.iter().enumerate().map(|(place, wrong)| (place, format!("wrong/{}.sh", wrong.name)));
    let absent =
        scripts.clone().filter(|(_, script)| !names.contains(script.as_str())).map(|(place, script)| {
            source.problem(
                at!["wrong", place, "name"],
                format!("the recipe has no `{script}` or `{script}.j2`"),
            )
        });
    let declared: BTreeSet<String> = scripts.map(|(_, script)| script).collect();
    let stray = names
        .iter()
        .filter(|name| name.starts_with("wrong/") && name.ends_with(".sh") && !declared.contains(**name))
        .map(|name| {
            let problem = source.problem(at!["wrong"], format!("`{name}` is not declared"));
            problem.hint("add a `[[wrong]]` with its name and why it is wrong, or remove the file")
        });
    missing.chain(expert).chain(absent).chain(stray).collect()
}

/// Reports a folder whose name cannot be part of a task's name.
pub(super) fn check_name(folder: &str, id: &RecipeId) -> Option<Problem> {
    let name = id.name();
    let letters = id.as_str().len().saturating_sub("/".len());
    if is_kebab_case(name) && letters <= LONGEST_ID {
        return None;
    }
    Some(Problem {
        file: folder.to_owned(),
        at: None,
        message: format!("`{name}` is not a valid name for a recipe"),
        hint: Some(format!("names are kebab-case, and at most {LONGEST_ID} letters long with the domain")),
    })
}
