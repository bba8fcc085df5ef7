//! Names and phrases that were replaced by the field's words must not come back into code or documentation.

#![allow(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Replaced names of types and variants. They match as whole identifiers, and only in code.
const IDENTIFIERS: &[&str] = &[
    "Arena", "Casting", "Company", "Deed", "Exam", "Filed", "Gear", "Ground", "Lab", "Mind", "Notebook",
    "Patience", "Peek", "Peeked", "Places", "Player", "Posed", "Ring", "Said", "Scene", "Silence", "Spent",
    "Talk", "Venue", "Wish", "Workshop",
];

/// Replaced phrases, in lower case. They match as whole words anywhere in a line.
const PHRASES: &[&str] = &[
    "a million tokens",
    "as far as it",
    "cannot be played",
    "is played in",
    "leads nowhere",
    "nobody has",
    "nobody is",
    "of this room",
    "passing outcome",
    "strange hands",
    "take over a",
    "taken over",
    "the answer is no",
    "two a core",
    "whoever",
];

/// Sources and documents. Task texts (`domains`, `templates`) and the corpora of tests are data, not prose of this project.
fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
        found.push(path.to_owned());
    }
}

/// Whether `phrase` occurs in `text` and no word continues after it.
fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| !text[at + phrase.len()..].starts_with(char::is_alphanumeric))
}

/// The replaced words in a line.
fn replaced_words(line: &str) -> Vec<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let words: Vec<&str> = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let lower = line.to_lowercase();
    let names = IDENTIFIERS.iter().filter(|name| words.contains(name));
    names.chain(PHRASES.iter().filter(|phrase| has_phrase(&lower, phrase))).copied().collect()
}

#[test]
fn replaced_words_are_found() {
    let check = |line: &str, expect: &[&str]| assert_eq!(replaced_words(line), expect, "{line}");
    check("struct Mind;", &["Mind"]);
    check("fn remind(mind: &Minder)", &[]);
    check("let said: Option<Said> = None;", &["Said"]);
    check("/// A name that Leads nowhere.", &["leads nowhere"]);
    check("/// The answer is not needed. Spent costs are counted.", &[]);
    check("/// 2 per core, and $1 per 1M input tokens.", &[]);
}

#[test]
fn replaced_words_do_not_occur() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for part in ["src", "benches", "build.rs", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        sources(&root.join(part), &mut files);
    }
    assert!(files.len() > 100, "the sources were not found");
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap().display().to_string();
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            for word in replaced_words(line) {
                found.push(format!("{path}:{}: `{word}`", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
