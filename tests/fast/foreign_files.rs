//! Only `folder` opens files that somebody else may have made. It checks their type and their size.

use std::fs;
use std::path::{Path, PathBuf};

/// Calls that would follow links, wait for named pipes, or read devices without end.
const CALLS: &[&str] = &["fs::read(", "read_to_string(", "File::open(", "fs::File::open("];
/// Modules that read files of the kernel or the machine, e.g. `/proc/stat`; the guest's own
/// program; code that opens folders to sync them; the catalog of agents, which opens files that it
/// wrote in folders of its own, e.g. archives with a known hash.
const EXEMPT: &[&str] = &[
    "agent/catalog/",
    "doctor/",
    "guest/",
    "sandbox/",
    "folder/open.rs",
    "verify/condition.rs",
    "cli/summary.rs",
    "store/atomic.rs",
    "store/lock.rs",
    "llm/cassette.rs",
];

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

/// The lines of `text` that open a file, without its tests.
fn opening(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| CALLS.iter().any(|call| line.contains(call))).collect()
}

#[test]
fn only_folder_opens_files() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&src).unwrap().to_str().unwrap();
        let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
        if is_test || EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        wrong.extend(opening(&text).into_iter().map(|line| format!("{name}: {}", line.trim())));
    }
    assert!(
        wrong.is_empty(),
        "use `folder::read_file` or `folder::read_named_by_user`:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn calls_are_found() {
    let check = |text: &str, expect: usize| assert_eq!(opening(text).len(), expect, "{text}");
    check("let text = std::fs::read_to_string(path)?;\n", 1);
    check("let bytes = fs::read(path)?;\nlet file = File::open(path)?;\n", 2);
    check("let bytes = read_file(path, MOST)?;\n", 0);
    check("fs::read_dir(path)?;\n#[cfg(test)]\nmod tests {\nfs::read(path);\n", 0);
}
