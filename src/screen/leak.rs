//! The row `leak`: is the answer in the image, visible or in a lower layer?

use std::collections::{BTreeMap, BTreeSet};

use super::table::Table;
use super::target::ScreeningTarget;
use crate::model::{File, FileTree, RelPath, RowKind};
use crate::sandbox::LayerFile;
use crate::syntax::shell_word;
use crate::verify::{Act, Condition, Fingerprint, TrialError, TrialRunner};

/// Minimum size of a secret. Shorter files can be equal by chance, e.g. `0\n`, `ok` or an empty
/// list.
const MIN_BYTES: u64 = 12;

/// `useradd` copies the files of this folder into every home.
const SKELETON: &str = "etc/skel/";

/// Contents that must not be in the image, by their hashes.
#[derive(Debug, Default)]
struct Secrets {
    found: BTreeMap<String, Secret>,
    sizes: BTreeSet<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Secret {
    /// A file of the task's author, by its path in the task.
    Author(String),
    /// A result of the reference, by one of its paths.
    Result(String),
}

/// A file in a layer that holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held<'a> {
    path: &'a str,
    secret: &'a Secret,
}

impl Secrets {
    fn add(&mut self, hash: &str, size: u64, secret: Secret) {
        if size >= MIN_BYTES {
            self.sizes.insert(size);
            self.found.entry(hash.to_owned()).or_insert(secret);
        }
    }

    /// The files among `files` that hold a secret.
    fn held<'a>(&'a self, files: &'a [LayerFile]) -> Vec<Held<'a>> {
        let own = files.iter().filter(|file| !file.path.trim_start_matches(['.', '/']).starts_with(SKELETON));
        own.filter_map(|file| {
            let secret = self.found.get(blake3::hash(&file.bytes).to_hex().as_str())?;
            Some(Held { path: &file.path, secret })
        })
        .collect()
    }
}

/// Looks in every layer of the image for the reference's results, its script, and the tests.
pub(super) async fn leak(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    reference: &Fingerprint,
    untouched: &Fingerprint,
    table: &mut Table,
) -> Result<(), TrialError> {
    let secrets = secrets(target, reference, untouched);
    let image = target.task.images(runner, Condition::Ordinary).await?.solver;
    let files = runner.engine.get().await?.layer_files(&image, &secrets.sizes).await?;
    let held = secrets.held(&files);
    let solution = target.task.solution().and_then(|solution| with_altered(solution, &held));
    let altered = match solution {
        Some(solution) => {
            let act = Act::Solve(&solution);
            let first_failure = Condition::FirstFailure { likely: &[], known: &[] };
            let row = (RowKind::Leak, "layers");
            target.trial(runner, row, act, first_failure, 0).await?.1.fingerprint
        }
        None => Fingerprint::new(),
    };
    match leaked(&held, reference, &altered) {
        None => table.row(RowKind::Leak, "layers", true, ""),
        Some(Held { path, secret }) => {
            let what = match secret {
                Secret::Author(path) => format!("`{path}`"),
                Secret::Result(path) => format!("the reference's result `{path}`"),
            };
            let note = format!("a layer of the image holds {what}, as `{path}`");
            table.row(RowKind::Leak, "layers", false, &note);
        }
    }
    Ok(())
}

fn secrets(target: &ScreeningTarget<'_>, reference: &Fingerprint, untouched: &Fingerprint) -> Secrets {
    let mut secrets = Secrets::default();
    // Refs and logs of a git repository only name commits. The content is in the objects.
    let is_pointer = |path: &str| path.contains("/.git/") && !path.contains("/.git/objects/");
    let made =
        reference.iter().filter(|(path, file)| untouched.get(*path) != Some(file) && !is_pointer(path));
    for (path, file) in made {
        secrets.add(&file.hash, file.size, Secret::Result(path.clone()));
    }
    let nothing = FileTree::default();
    for (folder, files) in
        [("solution", target.task.solution().unwrap_or(&nothing)), ("tests", target.task.tests())]
    {
        let secret = files.iter().filter(|(path, _)| !path.as_str().starts_with("pristine/"));
        for (path, file) in secret {
            let hash = blake3::hash(&file.bytes).to_hex();
            secrets.add(&hash, file.bytes.len() as u64, Secret::Author(format!("{folder}/{path}")));
        }
    }
    secrets
}

/// The first file of a layer that gives the answer away.
///
/// The file may be an input that the reference only copies or moves. An experiment shows that:
/// `altered` is the state after a run of the reference on altered inputs. A copied result is
/// altered too.
fn leaked<'a>(held: &[Held<'a>], reference: &Fingerprint, altered: &Fingerprint) -> Option<Held<'a>> {
    let is_copied = |path: &String| match (reference.get(path), altered.get(path)) {
        (Some(before), Some(after)) => before.hash != after.hash,
        (None | Some(_), None) | (None, Some(_)) => false,
    };
    let leak = held.iter().find(|held| match held.secret {
        Secret::Author(_) => true,
        Secret::Result(path) => !is_copied(path),
    });
    leak.cloned()
}

/// The reference on altered inputs: each visible file that holds a result gets one more line end.
/// `None` if there is no such file. `None` also if a file of the author's is in the image, since
/// that decides alone.
fn with_altered(solution: &FileTree, held: &[Held<'_>]) -> Option<FileTree> {
    const REFERENCE: &str = "unaltered.sh";
    let mut before = String::new();
    for Held { path, secret } in held {
        match secret {
            Secret::Author(_) => return None,
            Secret::Result(_) => {
                let place = shell_word(path);
                before.push_str(&format!("[ ! -f {place} ] || echo >> {place}\n"));
            }
        }
    }
    if before.is_empty() {
        return None;
    }
    let wrapper = format!("#!/bin/bash\n{before}exec bash \"$(dirname \"$0\")/{REFERENCE}\"\n");
    let mut files = solution.clone();
    let reference = files.text("solve.sh")?.to_owned();
    for (name, text) in [(REFERENCE, reference), ("solve.sh", wrapper)] {
        files.insert(RelPath::new(name).ok()?, File::script(text));
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::FileFingerprint;

    const ANSWER: &str = "10.0.0.1\n10.0.0.2\n";

    fn fingerprint(files: &[(&str, &str)]) -> Fingerprint {
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), FileFingerprint::of(path, text.as_bytes())))
            .collect()
    }

    fn layer(files: &[(&str, &str)]) -> Vec<LayerFile> {
        let file = |(path, text): &(&str, &str)| LayerFile {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        files.iter().map(file).collect()
    }

    #[test]
    fn inputs_that_the_reference_copies_are_no_leak() {
        let reference = fingerprint(&[("/app/out.txt", ANSWER)]);
        let mut secrets = Secrets::default();
        for (path, file) in &reference {
            secrets.add(&file.hash, file.size, Secret::Result(path.clone()));
        }
        let files = layer(&[
            ("/app/in.txt", ANSWER),
            ("/etc/skel/.profile", ANSWER),
            ("/app/other", "something else"),
        ]);
        let held = secrets.held(&files);
        assert_eq!(held.iter().map(|held| held.path).collect::<Vec<_>>(), ["/app/in.txt"]);
        let check = |altered: &[(&str, &str)], expect: Option<&str>| {
            let found = leaked(&held, &reference, &fingerprint(altered));
            assert_eq!(found.map(|held| held.path), expect, "{altered:?}");
        };
        // The result follows the input, which may be anywhere by then.
        check(&[("/app/out.txt", &format!("{ANSWER}\n"))], None);
        check(&[("/app/out.txt", &format!("{ANSWER}\n")), ("/app/in.txt", "x")], None);
        // The result does not follow, or the reference failed.
        check(&[("/app/out.txt", ANSWER)], Some("/app/in.txt"));
        check(&[], Some("/app/in.txt"));
    }

    #[test]
    fn files_of_the_author_are_a_leak_without_an_experiment() {
        let secret = Secret::Author("solution/solve.sh".to_owned());
        let held = [Held { path: "/opt/old.sh", secret: &secret }];
        let solution = FileTree::from_iter([(RelPath::new("solve.sh").unwrap(), File::script("true\n"))]);
        assert_eq!(with_altered(&solution, &held), None);
        assert_eq!(leaked(&held, &Fingerprint::new(), &Fingerprint::new()), Some(held[0].clone()));
        assert_eq!(with_altered(&solution, &[]), None);
    }

    #[test]
    fn visible_files_are_altered_before_the_reference_starts() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        let input = place("it's in.txt");
        std::fs::write(&input, ANSWER).unwrap();
        let secret = Secret::Result("out.txt".to_owned());
        let paths = [&input, &place("deleted")].map(|path| path.to_str().unwrap().to_owned());
        let held = paths.each_ref().map(|path| Held { path, secret: &secret });
        let copying = format!("mv \"{}\" {}\n", paths[0], place("out.txt").display());
        let solution = FileTree::from_iter([(RelPath::new("solve.sh").unwrap(), File::script(copying))]);
        for (path, file) in with_altered(&solution, &held).unwrap().iter() {
            std::fs::write(place(path.as_str()), &file.bytes).unwrap();
        }
        let ended = std::process::Command::new("bash").arg(place("solve.sh")).status().unwrap();
        assert!(ended.success());
        assert_eq!(std::fs::read_to_string(place("out.txt")).unwrap(), format!("{ANSWER}\n"));
        assert!(!place("deleted").exists());
    }
}
