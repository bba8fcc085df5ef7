//! Outlines of final states: enough to tell a wrong answer from no answer.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::act::is_below;
use super::no_verdict::{NoVerdict, Phase};
use crate::model::canonical_json;
use crate::sandbox::{ChangeKind, GetError, Sandbox, SandboxError};

/// Files by absolute path, each with its hash and its parsed kind.
pub type Outline = BTreeMap<String, Trace>;

/// One regular file of a final state.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// BLAKE3 of the content.
    pub hash: String,
    /// BLAKE3 of the normalised content, for formats whose bytes can differ: JSON without blanks, its keys sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// The kind that it parses as.
    pub shape: String,
    /// Size in bytes.
    pub size: u64,
    /// It exists in the image with other content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// Larger files are only hashed: results that a person would read are shorter.
pub(super) const MAX_PARSED: u64 = 4 << 20;
/// The kind of files that are not parsed.
const LARGE: &str = "large";
/// Folders whose files are never part of an answer.
const APART: [&str; 7] = ["/solution", "/logs", "/tmp", "/run", "/root/.cache", "/var/log", "/tests"];
/// Maximum number of changed files that are examined.
const MAX_FILES: usize = 400;

impl Trace {
    /// The outline of one file.
    pub fn of(path: &str, bytes: &[u8]) -> Self {
        let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        Self {
            hash: hash(bytes),
            meaning: meaning(path, bytes).map(|text| hash(text.as_bytes())),
            shape: shape(path, bytes),
            size: bytes.len() as u64,
            edited: false,
        }
    }

    /// The outline of a file of more than [`MAX_PARSED`] bytes.
    pub(super) fn of_large(hash: blake3::Hash, size: u64) -> Self {
        Self { hash: hash.to_hex().to_string(), meaning: None, shape: LARGE.to_owned(), size, edited: false }
    }
}

fn meaning(path: &str, bytes: &[u8]) -> Option<String> {
    if !path.ends_with(".json") || bytes.len() as u64 > MAX_PARSED {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    canonical_json(&value).ok()
}

/// Whether two states have the same meaning in all their files.
pub fn same_meaning(state: &Outline, other: &Outline) -> bool {
    let meaning = |trace: &Trace| trace.meaning.clone().unwrap_or_else(|| trace.hash.clone());
    state.len() == other.len()
        && state
            .iter()
            .zip(other)
            .all(|((path, trace), (also, with))| path == also && meaning(trace) == meaning(with))
}

/// The parsed kind of a file and, for tables, the header. A file whose content does not match its name has a kind of its own.
fn shape(path: &str, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "empty".to_owned();
    }
    if bytes.len() as u64 > MAX_PARSED {
        return LARGE.to_owned();
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return match bytes {
            [0x7f, b'E', b'L', b'F', ..] => "elf".to_owned(),
            [0x1f, 0x8b, ..] => "gzip".to_owned(),
            _ if bytes.starts_with(b"SQLite format 3\0") => "sqlite".to_owned(),
            _ => "binary".to_owned(),
        };
    };
    let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, end)| end);
    match extension {
        "json" => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(serde_json::Value::Object(_)) => "json object".to_owned(),
            Ok(serde_json::Value::Array(_)) => "json array".to_owned(),
            Ok(_) => "json scalar".to_owned(),
            Err(_) => "not json".to_owned(),
        },
        "jsonl" | "ndjson" => {
            let parses = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
            if text.lines().filter(|line| !line.is_empty()).all(parses) {
                "json lines"
            } else {
                "not json lines"
            }
            .to_owned()
        }
        "csv" | "tsv" => format!("table {}", text.lines().next().unwrap_or_default().trim()),
        "toml" => if text.parse::<toml::Table>().is_ok() { "toml" } else { "not toml" }.to_owned(),
        _ if text.starts_with("#!") => "script".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Parts of a repository that tasks do not ask to change.
const GIT_OWN: [&str; 7] = [
    "/.git/objects/",
    "/.git/logs/",
    "/.git/index",
    "/.git/COMMIT_EDITMSG",
    "/.git/ORIG_HEAD",
    "/.git/rebase-",
    "/.git/AUTO_MERGE",
];

/// Whether `state` has every file that the reference made of `untouched`, each of the same kind and none unchanged: it may be wrong, but it
/// is an answer. Files that git names by content are ignored, since their names differ in every state.
pub fn well_formed(state: &Outline, reference: &Outline, untouched: &Outline) -> bool {
    let is_gits = |path: &str| GIT_OWN.iter().any(|own| path.contains(own));
    let made = reference.iter().filter(|(path, trace)| untouched.get(*path) != Some(trace));
    made.filter(|(path, _)| !is_gits(path)).all(|(path, trace)| {
        let given = untouched.get(path).map(|given| &given.hash);
        state.get(path).is_some_and(|found| found.shape == trace.shape && given != Some(&found.hash))
    })
}

/// Hash of a state, equal for equal files.
fn state_of(outline: &Outline) -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, trace) in outline {
        hasher.update(path.as_bytes());
        hasher.update(b"\0");
        hasher.update(trace.hash.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The files of a running container that differ from its image, without logs and temporary files, and a hash that is equal for equal changes.
/// `None`: there are too many files, or too large ones, to tell states apart.
pub(super) async fn changed(sandbox: &Sandbox) -> Result<(Outline, Option<String>), NoVerdict> {
    let mut outline = Outline::new();
    let mut changes = sandbox.changes().await?;
    changes.retain(|change| {
        let apart = APART.iter().any(|folder| is_below(folder, &change.path));
        !apart && !change.path.contains("/__pycache__")
    });
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    let mut is_known = changes.len() <= MAX_FILES;
    let mut others = String::new();
    for change in changes.into_iter().take(MAX_FILES) {
        if change.kind == ChangeKind::Deleted {
            // Writing to a String cannot fail.
            let _ = write!(others, "deleted {}\0", change.path);
            continue;
        }
        match sandbox.get(&change.path, MAX_PARSED).await {
            Ok(bytes) => {
                let edited = change.kind == ChangeKind::Modified;
                let trace = Trace { edited, ..Trace::of(&change.path, &bytes) };
                outline.insert(change.path, trace);
            }
            Err(GetError::NotRegular { .. }) => {
                let _ = write!(others, "no file {}\0", change.path);
            }
            Err(GetError::TooLarge { .. } | GetError::Sandbox(SandboxError::TooLarge { .. })) => {
                is_known = false;
            }
            // Files that disappear meanwhile.
            Err(
                GetError::Missing { .. }
                | GetError::Sandbox(SandboxError::Failed { .. } | SandboxError::Nul { .. }),
            ) => {}
            Err(GetError::Sandbox(error @ (SandboxError::Lost(_) | SandboxError::Engine(_)))) => {
                return Err(NoVerdict::Sandbox { phase: Phase::Solve, error });
            }
        }
    }
    let state = is_known.then(|| {
        let text = format!("{} {others}", state_of(&outline));
        blake3::hash(text.as_bytes()).to_hex().to_string()
    });
    Ok((outline, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_distinguish_answers() {
        let check =
            |path: &str, text: &str, expect: &str| assert_eq!(shape(path, text.as_bytes()), expect, "{path}");
        check("/a.json", "", "empty");
        check("/a.json", "{\"a\": 1}", "json object");
        check("/a.json", "[1]", "json array");
        check("/a.json", "{\"a\": }", "not json");
        check("/a.jsonl", "{}\n[]\n", "json lines");
        check("/a.jsonl", "{}\n[\n", "not json lines");
        check("/a.csv", "a,b\n1,2\n", "table a,b");
        check("/a.toml", "a = 1", "toml");
        check("/a.toml", "a = ", "not toml");
        check("/a/run", "#!/bin/sh\n", "script");
        check("/a/notes", "x", "text");
        assert_eq!(shape("/a/b", b"\x7fELF\xff"), "elf");
        assert_eq!(shape("/a/b", b"\xff\xfe"), "binary");
    }

    #[test]
    fn states_with_equal_meaning_are_equal() {
        let outline =
            |path: &str, text: &str| Outline::from([(path.to_owned(), Trace::of(path, text.as_bytes()))]);
        let check = |left: &str, right: &str, expect: bool| {
            assert_eq!(
                same_meaning(&outline("/a.json", left), &outline("/a.json", right)),
                expect,
                "{left} {right}"
            );
        };
        check("{\"a\": 1, \"b\": [2]}", "{\"b\":[2],\"a\":1}\n", true);
        check("{\"a\": 1}", "{\"a\": 2}", false);
        check("[1, 2]", "[2, 1]", false);
        check("{\"a\": }", "{\"a\":}", false);
        assert!(!same_meaning(&Outline::new(), &outline("/a.txt", "x")));
        assert!(same_meaning(&outline("/a.txt", "x"), &outline("/a.txt", "x")));
        assert!(!same_meaning(&outline("/a.txt", "x"), &outline("/b.txt", "x")));
    }

    #[test]
    fn a_well_formed_state_has_all_that_the_reference_made() {
        let outline = |files: &[(&str, &str)]| -> Outline {
            files.iter().map(|(path, text)| ((*path).to_owned(), Trace::of(path, text.as_bytes()))).collect()
        };
        let untouched = outline(&[("/app/in.csv", "a\n1\n")]);
        let reference = outline(&[("/app/in.csv", "a\n1\n"), ("/app/out.json", "{\"n\": 1}")]);
        let check = |state: &[(&str, &str)], expect: bool| {
            assert_eq!(well_formed(&outline(state), &reference, &untouched), expect, "{state:?}");
        };
        check(&[("/app/out.json", "{\"n\": 2}")], true);
        check(&[("/app/out.json", "{\"n\": 2"), ("/app/in.csv", "a\n1\n")], false);
        check(&[("/app/out.json", "[2]")], false);
        check(&[("/app/in.csv", "a\n1\n")], false);
        check(&[], false);
        // Different commits have different objects.
        let committed = outline(&[("/r/.git/refs/heads/main", "11\n"), ("/r/.git/objects/ab/cd", "x")]);
        let other = outline(&[("/r/.git/refs/heads/main", "22\n"), ("/r/.git/objects/ef/01", "y")]);
        assert!(well_formed(&other, &committed, &Outline::new()));
        assert!(!well_formed(&Outline::new(), &committed, &Outline::new()));
        // A file that the reference edits, unchanged.
        let given = outline(&[("/app/table.csv", "a\n1\n")]);
        let edited = outline(&[("/app/table.csv", "a\n2\n")]);
        assert!(!well_formed(&given, &edited, &given));
        assert!(well_formed(&outline(&[("/app/table.csv", "a\n3\n")]), &edited, &given));
    }
}
