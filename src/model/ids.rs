//! Identifiers as newtypes. Each one is checked when it is made or read from a file, and never
//! changes.

use std::borrow::Borrow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text that is not an identifier of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {kind}: expected {rule}")]
pub struct IdError {
    kind: &'static str,
    rule: &'static str,
    text: String,
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            /// The form of such an identifier, for hints.
            pub const RULE: &'static str = $rule;

            /// Parses `text`.
            pub fn parse(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(&text) { Ok(Self(text)) } else { Err(IdError { kind: $kind, rule: $rule, text }) }
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        // Maps with identifiers as keys can be searched by plain text. Order and hash are those of
        // the text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

string_id! {
    /// A domain's name: the stem of its file in `domains/`, e.g. `data_science`.
    DomainId, "a domain's name", "lower-case letters, digits and `_`, at most 32, a letter first", is_domain
}
string_id! {
    /// A recipe, as `DOMAIN/NAME`: the path of its folder below `templates/recipes/`.
    RecipeId, "a recipe's name", "`DOMAIN/NAME`, such as `coding/mend-parser`", is_recipe
}
string_id! {
    /// A task's name. termsmith's own names consist of lower-case letters, digits and hyphens.
    /// Others may be `ORGANISATION/NAME`. The name becomes a path, so none of its parts may lead
    /// out of a folder.
    TaskName, "a task's name", "1 to 255 bytes, no control characters, no segment that is empty, `.` or `..`", is_task_name
}
string_id! {
    /// A check's name: the name of a `test_…` function, or the name in a foreign report.
    CheckId, "a check's name", "at least one letter", |text| !text.is_empty()
}
string_id! {
    /// The address of one stage result: BLAKE3 as 64 hexadecimal digits.
    Key, "a key", "64 lower-case hexadecimal digits", |text| text.len() == 64 && is_hex(text)
}
string_id! {
    /// The digest of a task's files. termsmith writes Harbor's: `sha256:` and 64 digits. Imported
    /// rollouts keep the digest of their harness.
    TaskDigest, "a task digest", "hexadecimal digits, with `<algorithm>:` before them or without", is_digest
}
string_id! {
    /// The digest of a trial's starting state: `blake3:` and 64 digits.
    EnvironmentDigest, "an environment digest", "hexadecimal digits, with `<algorithm>:` before them or without", is_digest
}

impl DomainId {
    /// The domain of a recipe. `None` if the folder's name is no valid domain name.
    pub fn of(recipe: &RecipeId) -> Option<Self> {
        Self::parse(recipe.domain()).ok()
    }
}

impl RecipeId {
    /// The part before the slash, e.g. `coding`.
    pub fn domain(&self) -> &str {
        self.0.split_once('/').map_or("", |(domain, _)| domain)
    }

    /// The part after the slash, e.g. `mend-parser`.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }
}

impl TaskName {
    /// Docker labels and Harbor's trial names are cut at 64 characters.
    const LONGEST_OF_OURS: usize = 64;

    /// `<stem>-<index>`, e.g. `coding-mend-parser-0007`. The index has at least four digits. The
    /// name has at most 64 characters.
    pub fn numbered(stem: &str, index: u32) -> Self {
        let index = format!("{index:04}");
        let mut name = slug(stem);
        name.truncate(Self::LONGEST_OF_OURS - 1 - index.len());
        Self(format!("{}-{index}", name.trim_end_matches('-')))
    }
}

impl CheckId {
    /// The only check of a task whose verifier reports just a reward.
    pub fn reward() -> Self {
        Self("reward".to_owned())
    }

    /// The name of this check in step `step`. Unchanged if the task has one step without a name.
    pub fn in_step(&self, step: &str) -> Self {
        if step.is_empty() { self.clone() } else { Self(format!("{step}/{self}")) }
    }
}

impl Key {
    /// The key for a hash.
    pub fn of(hash: &blake3::Hash) -> Self {
        Self(hash.to_hex().to_string())
    }

    /// The key of what one build computed: half of a hash of what was asked, and half of a hash of
    /// that and the build.
    pub fn of_build(asked: &blake3::Hash, by: &blake3::Hash) -> Self {
        Self(format!("{}{}", &asked.to_hex()[..Self::HALF], &by.to_hex()[..Self::HALF]))
    }

    /// The half that is the same for every build.
    pub fn asked(&self) -> &str {
        self.0.get(..Self::HALF).unwrap_or(&self.0)
    }

    /// Digits of a half.
    const HALF: usize = 32;
}

impl TaskDigest {
    pub(super) fn sha256(digits: &str) -> Self {
        Self(format!("sha256:{digits}"))
    }
}

impl EnvironmentDigest {
    pub(super) fn blake3(hash: &blake3::Hash) -> Self {
        Self(format!("blake3:{}", hash.to_hex()))
    }
}

fn is_domain(text: &str) -> bool {
    text.len() <= 32
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

// Names with other characters are refused when recipes are loaded, with the file and a hint.
fn is_recipe(text: &str) -> bool {
    text.split_once('/').is_some_and(|(domain, name)| {
        !domain.is_empty() && !name.is_empty() && !name.contains('/') && !text.contains(char::is_control)
    })
}

fn is_task_name(text: &str) -> bool {
    text.len() <= 255
        && !text.contains(char::is_control)
        && text.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

fn is_digest(text: &str) -> bool {
    let (algorithm, digits) = text.split_once(':').unwrap_or(("sha256", text));
    !algorithm.is_empty()
        && algorithm.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !digits.is_empty()
        && digits.len() <= 128
        && is_hex(digits)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

/// Lower case, with one hyphen for each run of other characters.
fn slug(text: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { ' ' };
    let spaced: String = text.chars().map(plain).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join("-")
}

/// The source of all randomness of one run, task or trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// A seed made from this one and `parts`. Item *i* therefore never depends on the items before
    /// it.
    pub fn derive(self, parts: &[&str]) -> Seed {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        // TOML integers are signed. The top bit stays clear, so that task.toml can hold the seed.
        Seed(u64::from_le_bytes(first) >> 1)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked_where_they_are_made_and_where_they_are_read() {
        fn check<T: TryFrom<String> + serde::de::DeserializeOwned>(good: &[&str], bad: &[&str]) {
            for (texts, expect) in [(good, true), (bad, false)] {
                for text in texts {
                    let json = serde_json::Value::from(*text);
                    assert_eq!(T::try_from((*text).to_owned()).is_ok(), expect, "{text:?}");
                    assert_eq!(serde_json::from_value::<T>(json).is_ok(), expect, "{text:?} in a file");
                }
            }
        }
        let hex = "0123456789abcdef".repeat(4);
        check::<DomainId>(
            &["games", "data_science", "a1"],
            &["", "Games", "1a", "a b", "../a", &"a".repeat(33)],
        );
        check::<RecipeId>(&["coding/mend-parser", "c/Odd"], &["", "coding", "/x", "x/", "a/b/c", "a/\n"]);
        check::<TaskName>(
            &["games-roll-up-0001", "org/t", "A task", "x".repeat(255).as_str()],
            &["", ".", "..", "../x", "a/../b", "/etc", "a//b", "a/", "a\0b", "a\nb", &"x".repeat(256)],
        );
        check::<CheckId>(&["test_a", "tests/a.py::test[x y]"], &[""]);
        check::<Key>(
            &[&hex],
            &["", "ab", &hex[1..], &hex.to_uppercase(), &format!("{}g", &hex[1..]), "../../x"],
        );
        check::<TaskDigest>(
            &[&hex, &format!("sha256:{hex}"), "abc"],
            &["", "sha256:", ":ab", "sha256:xyz", "a b"],
        );
        check::<EnvironmentDigest>(&[&format!("blake3:{hex}")], &["", "blake3:", "blake3:../x"]);
    }

    #[test]
    fn an_error_names_what_was_expected() {
        let error = Key::parse("../x").unwrap_err();
        assert_eq!(error.to_string(), "`../x` is not a key: expected 64 lower-case hexadecimal digits");
    }
}
