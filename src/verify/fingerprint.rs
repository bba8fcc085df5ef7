//! Fingerprints of final states. Screening compares them, e.g. to see whether a mutant left the
//! same state as the reference. They also tell a wrong answer from no answer.

use std::collections::BTreeMap;

use super::act::is_below;
use super::canonical_json;
use super::no_verdict::{NoVerdict, Phase};
use crate::sandbox::{ChangeKind, GetError, Process, ProcessOutcome, Sandbox, SandboxError};

/// The files of a state by absolute path.
pub type Fingerprint = BTreeMap<String, FileFingerprint>;

/// One regular file of a final state.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFingerprint {
    /// BLAKE3 of the content.
    pub hash: String,
    /// BLAKE3 of the canonical form, e.g. of JSON without its blanks. `None` for formats that have
    /// no canonical form here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_form: Option<String>,
    /// The kind of its content, e.g. JSON, as parsers find it.
    pub shape: String,
    /// Size in bytes.
    pub size: u64,
    /// Whether the file exists in the image with other content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// Hashes of a final state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateHashes {
    /// Equal for equal states.
    pub exact: String,
    /// Equal for states whose files have equal canonical forms. Names, kinds, modes, owners and
    /// link targets must be equal too.
    pub canonical_form: String,
}

/// One entry as the hashes of a state see it. Equal states have equal facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: EntryKind,
    exact: String,
    /// As `exact`, but with the canonical form of a file in place of its content. `None` if it has
    /// no canonical form.
    canonical_form: Option<String>,
}

impl Facts {
    /// Facts of a regular file with this `metadata`, e.g. mode and owner.
    pub(super) fn of_file(metadata: &str, file: &FileFingerprint) -> Self {
        let with = |content: &str| format!("file {metadata} {content}");
        let canonical_form = file.canonical_form.as_deref().map(with);
        Self { kind: EntryKind::File, exact: with(&file.hash), canonical_form }
    }

    /// Facts of a folder.
    pub(super) fn of_folder(metadata: &str) -> Self {
        Self { kind: EntryKind::Folder, ..Self::of_other(format!("folder {metadata}")) }
    }

    /// Facts of anything else, e.g. a link.
    pub(super) fn of_other(exact: String) -> Self {
        Self { kind: EntryKind::Other, exact, canonical_form: None }
    }
}

/// The kind of an archive's entry. Later entries may lie in a folder, or link to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Folder,
    Other,
}

impl StateHashes {
    /// The hashes of a state with these entries, which are sorted.
    pub(super) fn of<'a>(entries: impl Iterator<Item = (&'a [u8], &'a Facts)>) -> Self {
        let (mut exact, mut canonical_form) = (blake3::Hasher::new(), blake3::Hasher::new());
        for (path, facts) in entries {
            let Facts { exact: same, canonical_form: alike, .. } = facts;
            for (hasher, fact) in [(&mut exact, same), (&mut canonical_form, alike.as_ref().unwrap_or(same))]
            {
                hasher.update(path).update(b"\0").update(fact.as_bytes()).update(b"\n");
            }
        }
        Self {
            exact: exact.finalize().to_hex().to_string(),
            canonical_form: canonical_form.finalize().to_hex().to_string(),
        }
    }
}

/// Maximum size of a file that is parsed. Results that people read are smaller; larger files are
/// only hashed.
pub(super) const MAX_PARSED: u64 = 4 << 20;
/// The shape of files that are not parsed.
const LARGE: &str = "large";
/// Folders whose files are never part of an answer.
const APART: [&str; 7] = ["/solution", "/logs", "/tmp", "/run", "/root/.cache", "/var/log", "/tests"];
/// Maximum number of changed files that are examined.
const MAX_FILES: usize = 400;
/// Maximum output of `stat` for [`MAX_FILES`] paths of maximum length with every character quoted.
const MAX_METADATA: usize = 16 << 20;

impl FileFingerprint {
    /// The fingerprint of one file.
    pub fn of(path: &str, bytes: &[u8]) -> Self {
        let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        Self {
            hash: hash(bytes),
            canonical_form: canonical_form(path, bytes).map(|text| hash(text.as_bytes())),
            shape: shape(path, bytes),
            size: bytes.len() as u64,
            edited: false,
        }
    }

    /// The fingerprint of a file of more than [`MAX_PARSED`] bytes.
    pub(super) fn of_large(hash: blake3::Hash, size: u64) -> Self {
        Self {
            hash: hash.to_hex().to_string(),
            canonical_form: None,
            shape: LARGE.to_owned(),
            size,
            edited: false,
        }
    }
}

fn canonical_form(path: &str, bytes: &[u8]) -> Option<String> {
    if !path.ends_with(".json") || bytes.len() as u64 > MAX_PARSED {
        return None;
    }
    canonical_json::canonical(std::str::from_utf8(bytes).ok()?)
}

/// The kind of a file, e.g. `json object`. Tables have their header in it. A file whose content
/// does not match its name has a kind of its own, e.g. `not json`.
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

/// Parts of a git repository that no task asks to change.
const GIT_OWN: [&str; 7] = [
    "/.git/objects/",
    "/.git/logs/",
    "/.git/index",
    "/.git/COMMIT_EDITMSG",
    "/.git/ORIG_HEAD",
    "/.git/rebase-",
    "/.git/AUTO_MERGE",
];

/// Whether `state` is an answer, right or wrong: it has every file that the reference added or
/// changed, each with the same kind and with new content. Files that git names by content are
/// ignored, since their names differ in every state.
pub fn well_formed(state: &Fingerprint, reference: &Fingerprint, untouched: &Fingerprint) -> bool {
    let is_gits = |path: &str| GIT_OWN.iter().any(|own| path.contains(own));
    let made = reference.iter().filter(|(path, file)| untouched.get(*path) != Some(file));
    made.filter(|(path, _)| !is_gits(path)).all(|(path, file)| {
        let given = untouched.get(path).map(|given| &given.hash);
        state.get(path).is_some_and(|found| found.shape == file.shape && given != Some(&found.hash))
    })
}

/// How a running container differs from its image.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// The files that differ from the image, without logs and temporary files.
    pub(super) fingerprint: Fingerprint,
    /// Hashes of these files and of every other difference. `None` if there are too many of them,
    /// or too large ones.
    pub(super) hashes: Option<StateHashes>,
}

/// Compares a running container with its image.
pub(super) async fn changed(sandbox: &Sandbox) -> Result<Changed, NoVerdict> {
    let mut fingerprint = Fingerprint::new();
    let mut entries = BTreeMap::new();
    let mut changes = sandbox.changes().await?;
    changes.retain(|change| {
        let apart = APART.iter().any(|folder| is_below(folder, &change.path));
        !apart && !change.path.contains("/__pycache__")
    });
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    let mut is_known = changes.len() <= MAX_FILES;
    changes.truncate(MAX_FILES);
    let living = changes.iter().filter(|change| change.kind != ChangeKind::Deleted);
    let metadata = match metadata(sandbox, living.map(|change| change.path.as_str())).await {
        Ok(Some(metadata)) => metadata,
        Ok(None) => {
            is_known = false;
            String::new()
        }
        Err(error) => return Err(NoVerdict::Sandbox { phase: Phase::Solve, error }),
    };
    for change in changes {
        if change.kind == ChangeKind::Deleted {
            entries.insert(change.path, Facts::of_other("deleted".to_owned()));
            continue;
        }
        match sandbox.get(&change.path, MAX_PARSED).await {
            Ok(bytes) => {
                let edited = change.kind == ChangeKind::Modified;
                let file = FileFingerprint { edited, ..FileFingerprint::of(&change.path, &bytes) };
                entries.insert(change.path.clone(), Facts::of_file("", &file));
                fingerprint.insert(change.path, file);
            }
            Err(GetError::NotRegular { .. }) => {
                entries.insert(change.path, Facts::of_other("no file".to_owned()));
            }
            Err(GetError::TooLarge { .. } | GetError::Sandbox(SandboxError::TooLarge { .. })) => {
                is_known = false;
            }
            // The file has disappeared meanwhile.
            Err(
                GetError::Missing { .. }
                | GetError::Sandbox(SandboxError::Failed { .. } | SandboxError::Nul { .. }),
            ) => {}
            Err(GetError::Sandbox(error @ (SandboxError::Lost(_) | SandboxError::Engine(_)))) => {
                return Err(NoVerdict::Sandbox { phase: Phase::Solve, error });
            }
        }
    }
    // No path is empty.
    entries.insert(String::new(), Facts::of_other(metadata));
    let entries = entries.iter().map(|(path, facts)| (path.as_bytes(), facts));
    let hashes = is_known.then(|| StateHashes::of(entries));
    Ok(Changed { fingerprint, hashes })
}

/// Kind, mode, owner and link target of each of `paths`, as the container's own `stat` prints them.
/// Empty if the container has no `stat`. `None` if `stat` did not end, or could not be asked.
async fn metadata<'a>(
    sandbox: &Sandbox,
    paths: impl Iterator<Item = &'a str>,
) -> Result<Option<String>, SandboxError> {
    // `%f` is kind and mode as one hexadecimal number. `%N` is the quoted name, for a link with
    // `-> TARGET`.
    let process = Process::new("stat").args(["-c", "%f %u:%g %N", "--"]).args(paths);
    let process = Process { max_output: MAX_METADATA, ..process.env("PATH", "/usr/bin:/bin") };
    let done = match sandbox.spawn(&process).await {
        Ok(done) => done,
        // E.g. the solver's processes leave no room for another one. Later steps show that.
        Err(SandboxError::Failed { .. } | SandboxError::TooLarge { .. } | SandboxError::Nul { .. }) => {
            return Ok(None);
        }
        Err(error @ (SandboxError::Lost(_) | SandboxError::Engine(_))) => return Err(error),
    };
    Ok(match done.outcome {
        // A status other than 0 means that some paths have disappeared meanwhile.
        ProcessOutcome::Exited(_) => Some(String::from_utf8_lossy(&done.stdout).into_owned()),
        ProcessOutcome::NotStarted(_) => Some(String::new()),
        ProcessOutcome::Signaled(_) | ProcessOutcome::TimedOut => None,
    })
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
    fn states_with_equal_canonical_form_are_told_apart_by_everything_else() {
        let hashes = |entries: &[(&str, Facts)]| {
            StateHashes::of(entries.iter().map(|(path, facts)| (path.as_bytes(), facts)))
        };
        let file = |path: &'static str, metadata: &str, text: &str| {
            (path, Facts::of_file(metadata, &FileFingerprint::of(path, text.as_bytes())))
        };
        let check = |left: &[(&str, Facts)], right: &[(&str, Facts)], exact: bool, canonical_form: bool| {
            let (one, other) = (hashes(left), hashes(right));
            assert_eq!(
                (one.exact == other.exact, one.canonical_form == other.canonical_form),
                (exact, canonical_form),
                "{left:?} {right:?}"
            );
        };
        let json = |metadata: &str, text: &str| [file("/a.json", metadata, text)];
        check(&json("644", "[1]"), &json("644", "[1]"), true, true);
        check(&json("644", "{\"a\": 1, \"b\": [2]}"), &json("644", "{\"b\":[2],\"a\":1}\n"), false, true);
        check(&json("644", "{\"a\":1}"), &json("600", "{\"a\": 1}"), false, false);
        check(&json("", "{\"a\": 1}"), &json("", "{\"a\": 2}"), false, false);
        check(&json("", "[1, 2]"), &json("", "[2, 1]"), false, false);
        check(&json("", "{\"a\": }"), &json("", "{\"a\":}"), false, false);
        let text = |path: &'static str| [file(path, "", "x")];
        check(&[], &text("/a.txt"), false, false);
        check(&text("/b.txt"), &text("/a.txt"), false, false);
        let [one, other] =
            ["link 0:0 a", "link 0:0 b"].map(|link| [("/l", Facts::of_other(link.to_owned()))]);
        check(&one, &other, false, false);
    }

    #[test]
    fn a_well_formed_state_has_all_that_the_reference_made() {
        let fingerprint = |files: &[(&str, &str)]| -> Fingerprint {
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), FileFingerprint::of(path, text.as_bytes())))
                .collect()
        };
        let untouched = fingerprint(&[("/app/in.csv", "a\n1\n")]);
        let reference = fingerprint(&[("/app/in.csv", "a\n1\n"), ("/app/out.json", "{\"n\": 1}")]);
        let check = |state: &[(&str, &str)], expect: bool| {
            assert_eq!(well_formed(&fingerprint(state), &reference, &untouched), expect, "{state:?}");
        };
        check(&[("/app/out.json", "{\"n\": 2}")], true);
        check(&[("/app/out.json", "{\"n\": 2"), ("/app/in.csv", "a\n1\n")], false);
        check(&[("/app/out.json", "[2]")], false);
        check(&[("/app/in.csv", "a\n1\n")], false);
        check(&[], false);
        // Different commits have different objects.
        let committed = fingerprint(&[("/r/.git/refs/heads/main", "11\n"), ("/r/.git/objects/ab/cd", "x")]);
        let other = fingerprint(&[("/r/.git/refs/heads/main", "22\n"), ("/r/.git/objects/ef/01", "y")]);
        assert!(well_formed(&other, &committed, &Fingerprint::new()));
        assert!(!well_formed(&Fingerprint::new(), &committed, &Fingerprint::new()));
        // The reference edits this file. Left unchanged, it is no answer.
        let given = fingerprint(&[("/app/table.csv", "a\n1\n")]);
        let edited = fingerprint(&[("/app/table.csv", "a\n2\n")]);
        assert!(!well_formed(&given, &edited, &given));
        assert!(well_formed(&fingerprint(&[("/app/table.csv", "a\n3\n")]), &edited, &given));
    }
}
