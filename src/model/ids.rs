//! Newtype identifiers. Each one says what a string may be used for, and is checked where it is made.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

string_id! {
    /// A domain, by the stem of its file in `domains/` (`data_science`).
    DomainId
}
string_id! {
    /// A recipe, as `<domain>/<name>`: its folder below `templates/recipes/`.
    RecipeId
}
string_id! {
    /// A task's directory name: lower case, digits and hyphens.
    TaskName
}
string_id! {
    /// One assertion unit of a verifier: the name of a `test_…` function.
    CheckId
}
string_id! {
    /// The content address of one stage result: 64 hexadecimal digits of BLAKE3.
    Key
}

/// The number that all randomness of one run, task or trial is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// A seed that depends on this one and on `parts` only, so that item *i* never depends on the items before it.
    pub fn derive(self, parts: &[&str]) -> Seed {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        // TOML integers are signed: the top bit stays clear so that a seed can stand in task.toml.
        Seed(u64::from_le_bytes(first) >> 1)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
