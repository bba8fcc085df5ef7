//! The addresses of records, and the build that they are of.

use std::sync::OnceLock;

use serde::Serialize;

use super::StoreError;
use crate::model::{Key, canonical_json};

/// Sets the build's id, for developers: results of builds with the same id are taken for equal.
pub const BUILD_VARIABLE: &str = "TERMSMITH_BUILD_ID";
/// Letters and digits of a build's id.
pub(super) const LONGEST_BUILD: usize = 32;

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub(super) name: &'static str,
    pub(super) origin: Origin,
}

/// What a record's content depends on besides its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This build of termsmith computed it. Another build computes it again.
    Computed,
    /// Nothing: it came from elsewhere, e.g. a model's reply, or its key is a hash of its content.
    Given,
}

impl Stage {
    /// Results that termsmith computes from their inputs.
    pub const fn computed(name: &'static str) -> Self {
        Self { name, origin: Origin::Computed }
    }

    /// Facts that are the same for every build.
    pub const fn given(name: &'static str) -> Self {
        Self { name, origin: Origin::Given }
    }
}

/// This build of termsmith: a hash of its sources and assets, which `build.rs` computes.
pub fn build_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let named = std::env::var(BUILD_VARIABLE).ok().filter(|name| is_build_id(name));
        named.unwrap_or_else(|| include_str!(concat!(env!("OUT_DIR"), "/build_id")).to_owned())
    })
}

/// Ids are printed, and stand in the first bytes of records.
fn is_build_id(name: &str) -> bool {
    (1..=LONGEST_BUILD).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The address of a stage's result for `input`.
///
/// Its first half is a hash of stage and input, the second one of stage, input and build. So the
/// results of two builds for the same input have the same first half, e.g. as a rollout's id.
pub fn key<T: Serialize>(stage: Stage, input: &T) -> Result<Key, StoreError> {
    key_of(build_id(), stage, input)
}

/// As [`key`], for another build.
pub(super) fn key_of<T: Serialize>(build: &str, stage: Stage, input: &T) -> Result<Key, StoreError> {
    let input = canonical_json(input).map_err(StoreError::Encode)?;
    let asked = hash(&[stage.name, &input]);
    Ok(match stage.origin {
        Origin::Given => Key::of(&asked),
        Origin::Computed => Key::of_build(&asked, &hash(&[stage.name, &input, build])),
    })
}

fn hash(parts: &[&str]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_builds_can_be_told_from_their_surroundings() {
        let check = |name: &str, expect: bool| assert_eq!(is_build_id(name), expect, "{name}");
        check("dev", true);
        check("0123456789abcdef", true);
        check(include_str!(concat!(env!("OUT_DIR"), "/build_id")), true);
        check("", false);
        check("a b", false);
        check("a\"", false);
        check(&"a".repeat(33), false);
    }

    #[test]
    fn another_build_has_other_keys_for_what_it_computes() {
        let check = |stage: Stage, expect: bool| {
            let (one, other) = (key_of("a", stage, &1).unwrap(), key_of("b", stage, &1).unwrap());
            assert_eq!(one == other, expect, "{stage:?}");
            assert_eq!(one.asked(), other.asked());
            assert_eq!(one, key_of("a", stage, &1).unwrap());
            assert_ne!(one.asked(), key_of("a", stage, &2).unwrap().asked());
        };
        check(Stage::computed("trial"), false);
        check(Stage::given("call"), true);
    }
}
