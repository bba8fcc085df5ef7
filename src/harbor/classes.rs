//! `tests/classes.json`: the classes and weights of checks. The verifier of a written task computes
//! `f2p` and `p2p` from them.
//!
//! Classes are known only after the untouched trial. So the file is added to the directory after
//! screening, before the certificate's digest is computed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Check, CheckClass, CheckId, File, FileTree, RelPath};

/// The path in a task directory. `run_checks.py` reads it.
pub const CLASSES: &str = "tests/classes.json";
/// Version of the file's format.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Classes<'a> {
    version: u32,
    checks: BTreeMap<&'a CheckId, Class>,
}

#[derive(Serialize)]
struct Class {
    class: CheckClass,
    weight: f64,
}

/// Adds the classes and weights of `checks`. The verifier then writes `f2p` and `p2p` in addition
/// to `reward`. Without checks no file is added.
pub fn add_classes(directory: &mut FileTree, checks: &[Check]) {
    if checks.is_empty() {
        return;
    }
    let checks = checks.iter().map(|check| (&check.id, Class { class: check.class, weight: check.weight }));
    let classes = Classes { version: VERSION, checks: checks.collect() };
    // Names, classes and finite numbers always serialise, and the path is valid.
    if let (Ok(text), Ok(path)) = (serde_json::to_string_pretty(&classes), RelPath::new(CLASSES)) {
        directory.insert(path, File::text(text + "\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_weights_are_written() {
        let check = |checks: &[(&str, CheckClass, f64)], expect: Option<serde_json::Value>| {
            let checks = checks.iter().map(|(id, class, weight)| Check {
                id: CheckId::parse(*id).unwrap(),
                class: *class,
                weight: *weight,
            });
            let mut directory = FileTree::default();
            add_classes(&mut directory, &checks.collect::<Vec<_>>());
            let written = directory.text(CLASSES).map(|text| serde_json::from_str(text).unwrap());
            assert_eq!(written, expect);
        };
        check(&[], None);
        check(
            &[("test_a", CheckClass::F2P, 2.0), ("test_b", CheckClass::P2P, 1.0)],
            Some(serde_json::json!({ "version": 1, "checks": {
                "test_a": { "class": "F2P", "weight": 2.0 }, "test_b": { "class": "P2P", "weight": 1.0 },
            } })),
        );
    }
}
