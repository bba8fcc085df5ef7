//! `[variants]` of `recipe.toml`: variants that a recipe excludes or adds.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;

use super::load::repeated;
use super::problem::{Problem, suggest};
use super::source::{Source, at};
use crate::model::{Applies, RelPath, is_kebab_case};

/// Differences from the variants in `templates/variants/` that are legal for every task.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VariantsDecl {
    /// Conditional variants that the instruction leaves free.
    pub include: Vec<String>,
    /// Variants that the instruction forbids: name → the words that forbid it.
    pub exclude: BTreeMap<String, String>,
    /// The recipe's own variants, each with a script `variants/<name>.sh`.
    pub own: Vec<OwnVariantDecl>,
}

/// One `variants/<name>.sh`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnVariantDecl {
    /// Kebab-case. It is also the name of the script.
    pub name: String,
    /// What it changes, in a few words.
    pub title: String,
    /// The kind of changed files that it works on.
    #[serde(default = "any")]
    pub applies: Applies,
    /// One sentence that says why the change never makes a correct state wrong.
    pub legal: String,
}

fn any() -> Applies {
    Applies::Any
}

impl VariantsDecl {
    /// Problems that are visible without the recipe's files and the common variants.
    pub(super) fn check(&self, source: &Source<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, reason) in &self.exclude {
            if reason.trim().is_empty() {
                let problem = source.problem(
                    at!["variants", "exclude", name],
                    format!("`{name}` is excluded without a reason"),
                );
                problems.push(problem.hint("quote the words of the instruction that forbid it"));
            }
            if self.include.contains(name) {
                problems.push(
                    source.problem(
                        at!["variants", "include"],
                        format!("`{name}` is both included and excluded"),
                    ),
                );
            }
        }
        for (place, own) in self.own.iter().enumerate() {
            if !is_kebab_case(&own.name) {
                let problem = source.problem(
                    at!["variants", "own", place, "name"],
                    format!("`{}` is not a valid name", own.name),
                );
                problems.push(
                    problem.hint("names are kebab-case: lower-case letters, digits and single hyphens"),
                );
            }
            for (key, text) in [("title", &own.title), ("legal", &own.legal)] {
                if text.trim().is_empty() {
                    problems.push(source.problem(
                        at!["variants", "own", place, key],
                        format!("`{key}` of `{}` is empty", own.name),
                    ));
                }
            }
        }
        let own = self.own.iter().enumerate();
        let own = own.map(|(place, own)| {
            (vec!["variants".into(), "own".into(), place.into(), "name".into()], &*own.name)
        });
        problems.extend(repeated(source, own));
        problems
    }

    /// Reports unknown variants, own names that already exist, missing scripts, and undeclared
    /// scripts. `known` are the names in `templates/variants/`. `files` are the recipe's files.
    pub(super) fn check_against(
        &self,
        source: &Source<'_>,
        known: &BTreeSet<String>,
        files: &[RelPath],
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        let unknown = |path: &[super::source::Step<'_>], name: &str| {
            let hint = suggest(name, known.iter().map(String::as_str));
            (!known.contains(name))
                .then(|| source.problem(path, format!("unknown variant `{name}`")).hint(hint))
        };
        for (place, name) in self.include.iter().enumerate() {
            problems.extend(unknown(at!["variants", "include", place], name));
        }
        for name in self.exclude.keys() {
            problems.extend(unknown(at!["variants", "exclude", name], name));
        }
        let names: BTreeSet<&str> = files.iter().map(|path| path.as_str().trim_end_matches(".j2")).collect();
        let mut declared = BTreeSet::new();
        for (place, own) in self.own.iter().enumerate() {
            let path = at!["variants", "own", place, "name"];
            let script = format!("variants/{}.sh", own.name);
            if known.contains(&own.name) {
                let problem =
                    source.problem(path, format!("`{}` is the name of a variant for all recipes", own.name));
                problems.push(problem.hint("choose another name, or include that one"));
            }
            if !names.contains(script.as_str()) {
                problems.push(source.problem(path, format!("the recipe has no `{script}` or `{script}.j2`")));
            }
            declared.insert(script);
        }
        for name in names.iter().filter(|name| name.starts_with("variants/") && !declared.contains(**name)) {
            let problem = source.problem(at!["variants"], format!("`{name}` is not declared"));
            problems.push(problem.hint(
                "add a `[[variants.own]]` with its name, title and why it is legal, or remove the file",
            ));
        }
        problems
    }
}
