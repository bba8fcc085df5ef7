//! Legal variants of a correct state, which no test may reject.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the state that a correct solution left, after which it is still correct. Tests that reject it are too strict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Kebab-case, and the name of its file.
    pub name: String,
    /// A short description.
    pub title: String,
    /// The files that the solution must have created or changed for the variant to apply.
    pub applies: Applies,
    /// Bash, run as root in the solver's container after the reference solution. `$CHANGED` names a file that lists the absolute
    /// paths of the regular files that the solution created or changed, one per line. Exit status 0: done;
    /// [`Variant::NOT_APPLICABLE`]: there was nothing to do.
    pub script: String,
    /// Why this never makes a correct state wrong, in one sentence.
    pub legal: String,
    /// Legal only where an instruction leaves that form free: tried for the recipes that include it, and no others.
    #[serde(default)]
    pub conditional: bool,
}

/// The changed files that a variant requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Applies {
    /// No particular file.
    Any,
    /// Any file.
    File,
    Json,
    Csv,
    /// A Python module.
    Python,
    /// An SQLite database, whatever its name.
    Sqlite,
    /// Something below a `.git` folder.
    Git,
}

impl Variant {
    /// The exit status of a script that found nothing to do.
    pub const NOT_APPLICABLE: i32 = 3;

    /// Whether it applies, given the absolute paths of the changed files.
    pub fn applies_to<'a>(&self, changed: impl IntoIterator<Item = &'a str>) -> bool {
        let mut changed = changed.into_iter();
        let fits = |path: &str| match self.applies {
            Applies::Any | Applies::File | Applies::Sqlite => true,
            Applies::Json => path.ends_with(".json"),
            Applies::Csv => path.ends_with(".csv") || path.ends_with(".tsv"),
            Applies::Python => path.ends_with(".py"),
            Applies::Git => path.contains("/.git/"),
        };
        self.applies == Applies::Any || changed.any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_apply_by_changed_files() {
        for (applies, changed, expect) in [
            (Applies::Any, vec![], true),
            (Applies::File, vec![], false),
            (Applies::File, vec!["/app/a"], true),
            (Applies::Json, vec!["/app/a", "/app/b.json"], true),
            (Applies::Json, vec!["/app/b.jsonl"], false),
            (Applies::Git, vec!["/app/.git/HEAD"], true),
            (Applies::Git, vec!["/app/.gitignore"], false),
        ] {
            let variant = Variant {
                name: String::new(),
                title: String::new(),
                applies,
                script: String::new(),
                legal: String::new(),
                conditional: false,
            };
            assert_eq!(variant.applies_to(changed.clone()), expect, "{applies:?} {changed:?}");
        }
    }
}
