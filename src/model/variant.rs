//! Variants: correct states in other legal forms. No test may reject them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change to a correct final state that leaves it correct. Tests that reject the changed state
/// are too strict. E.g. JSON with other white space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Kebab-case. It is also the name of the variant's file.
    pub name: String,
    /// A short description.
    pub title: String,
    /// The kind of files that the script changes. It is informative: the script itself finds out
    /// whether there are any.
    pub applies: Applies,
    /// Bash, run as root in the solver's container after the reference. The file `$CHANGED` lists
    /// the absolute paths of the regular files that the solution created or changed, one per line.
    /// Exit status 0 means done, 3 means that there was nothing to change.
    pub script: String,
    /// One sentence that says why the change never makes a correct state wrong.
    pub legal: String,
    /// Whether the change is legal only if the instruction leaves the form open. Then only recipes
    /// that include the variant use it.
    #[serde(default)]
    pub conditional: bool,
}

/// The kind of changed files that a variant works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Applies {
    /// Not tied to files.
    Any,
    /// Any file.
    File,
    Json,
    Csv,
    /// A Python module.
    Python,
    /// An SQLite database, whatever its name.
    Sqlite,
    /// A file below a `.git` folder.
    Git,
}
