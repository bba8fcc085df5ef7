//! Modules may use only modules below them. The order is the one in `src/lib.rs` and
//! `ARCHITECTURE.md`.

use std::fs;
use std::path::{Path, PathBuf};

/// The levels, bottom to top. Modules of one level may not use each other.
const LEVELS: &[&[&str]] = &[
    &["model"],
    &["clock", "folder", "guest", "retry", "syntax"],
    &["assets"],
    &["store", "domain", "prompts"],
    &["llm", "sandbox", "harbor"],
    &["judge", "lint", "mutate", "verify"],
    &["agent"],
    &["author", "screen", "rollout", "recording"],
    &["authoring", "export", "audit"],
    &["doctor", "pipeline"],
    &["cli"],
];

fn level(module: &str) -> Option<usize> {
    LEVELS.iter().position(|modules| modules.contains(&module))
}

/// Modules that a source text names as `crate::module`. Comments and tests count too.
fn used_modules(text: &str) -> Vec<String> {
    text.match_indices("crate::")
        .map(|(at, found)| &text[at + found.len()..])
        .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
        .collect()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn modules_use_only_modules_below() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 50, "the sources were not found");
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let module =
            relative.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(here) = level(module) else {
            wrong.push(format!("{}: module `{module}` has no place in the order", relative.display()));
            continue;
        };
        for used in used_modules(&fs::read_to_string(&file).unwrap()) {
            match level(&used) {
                _ if used == module => {}
                Some(there) if there < here => {}
                Some(_) => wrong
                    .push(format!("{}: `{module}` uses `{used}`, which is not below it", relative.display())),
                None => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_order_names_every_module() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let modules = lib.lines().filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';'));
    let missing: Vec<_> = modules.filter(|module| level(module).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_architecture_names_every_module() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name))
        .collect();
    // Documents list them top to bottom.
    let levels: Vec<_> =
        named.iter().map(|name| level(name).unwrap_or_else(|| panic!("no module `{name}`"))).collect();
    let missing: Vec<_> =
        LEVELS.iter().flat_map(|level| *level).filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(levels.first(), Some(&(LEVELS.len() - 1)));
}
