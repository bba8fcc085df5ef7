//! Legal variants of a correct state, which no test may reject.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the state that a correct solution left, after which it is still correct. Tests that
/// reject it are too strict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Kebab-case, and the name of its file.
    pub name: String,
    /// A short description.
    pub title: String,
    /// The files that it varies, for readers of the list: the script itself finds out whether there
    /// are any.
    pub applies: Applies,
    /// Bash, run as root in the solver's container after the reference solution. `$CHANGED` names a
    /// file that lists the absolute paths of the regular files that the solution created or
    /// changed, one per line. Exit status 0: done; 3: there was nothing to do.
    pub script: String,
    /// Why this never makes a correct state wrong, in one sentence.
    pub legal: String,
    /// Legal only where an instruction leaves that form free: tried for the recipes that include
    /// it, and no others.
    #[serde(default)]
    pub conditional: bool,
}

/// The changed files that a variant works on.
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
