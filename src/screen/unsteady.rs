//! Final states of a reference that differ from run to run, e.g. commits, archives and logs with
//! times in them.

use std::collections::BTreeSet;

use crate::verify::Fingerprint;

/// The differences between two runs of one reference.
#[derive(Debug, Default)]
pub(super) struct Unsteady {
    /// Files with different contents, and files that only one run left.
    files: BTreeSet<String>,
    /// Folders in which each run leaves files with other names, e.g. the objects of a git
    /// repository.
    folders: BTreeSet<String>,
}

impl Unsteady {
    /// Compares the fingerprints of two runs.
    pub(super) fn of(one: &Fingerprint, other: &Fingerprint) -> Self {
        let lacks = |fingerprint: &Fingerprint, other: &Fingerprint| -> Vec<String> {
            fingerprint.keys().filter(|path| !other.contains_key(*path)).cloned().collect()
        };
        let (of_one, of_other) = (lacks(one, other), lacks(other, one));
        let nearest = |path: &String, others: &[String]| {
            let shared = others.iter().map(|other| shared_folder(path, other));
            shared.max_by_key(|folder| folder.len()).map(str::to_owned)
        };
        let folders = of_one.iter().filter_map(|path| nearest(path, &of_other));
        let folders = folders.chain(of_other.iter().filter_map(|path| nearest(path, &of_one))).collect();
        let changed =
            one.iter().filter(|(path, file)| other.get(*path).is_some_and(|other| other.hash != file.hash));
        let changed = changed.map(|(path, _)| path.clone());
        Self { files: changed.chain(of_one).chain(of_other).collect(), folders }
    }

    /// Whether `found` may be a state of the reference: it differs from `reference` only where two
    /// runs of the reference differ.
    ///
    /// False if two runs left equal states. Such states are compared as wholes, with modes, owners
    /// and links.
    pub(super) fn explains(&self, found: &Fingerprint, reference: &Fingerprint) -> bool {
        let is_known = |path: &String| self.files.contains(path);
        let is_new = |path: &String| self.folders.iter().any(|folder| path.starts_with(folder.as_str()));
        !self.files.is_empty()
            && found.iter().all(|(path, file)| match reference.get(path) {
                Some(expected) => expected.hash == file.hash || is_known(path),
                None => is_known(path) || is_new(path),
            })
            && reference.keys().all(|path| found.contains_key(path) || is_known(path))
    }
}

/// The longest folder that both files lie in. It ends with a slash.
fn shared_folder<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let end = one.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    &one[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::FileFingerprint;

    #[test]
    fn what_differs_between_two_runs_explains_a_third() {
        let fingerprint = |files: &[(&str, &str)]| -> Fingerprint {
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), FileFingerprint::of(path, text.as_bytes())))
                .collect()
        };
        let one = fingerprint(&[
            ("/app/a.txt", "1"),
            ("/app/.git/index", "x1"),
            ("/app/.git/refs/tags/v", "12"),
            ("/app/.git/objects/12/3", "c"),
            ("/app/.git/objects/aa/a", "s"),
        ]);
        let two = fingerprint(&[
            ("/app/a.txt", "1"),
            ("/app/.git/index", "x2"),
            ("/app/.git/refs/tags/v", "45"),
            ("/app/.git/objects/45/6", "d"),
            ("/app/.git/objects/aa/a", "s"),
        ]);
        let check = |other: &Fingerprint, change: &[(&str, Option<&str>)], expect: bool| {
            let mut found = one.clone();
            for (path, text) in change {
                match text {
                    Some(text) => {
                        found.insert((*path).to_owned(), FileFingerprint::of(path, text.as_bytes()))
                    }
                    None => found.remove(*path),
                };
            }
            assert_eq!(Unsteady::of(&one, other).explains(&found, &one), expect, "{change:?}");
        };
        check(&two, &[], true);
        let third: [(&str, Option<&str>); 4] = [
            ("/app/.git/index", Some("x3")),
            ("/app/.git/refs/tags/v", Some("78")),
            ("/app/.git/objects/12/3", None),
            ("/app/.git/objects/78/9", Some("e")),
        ];
        check(&two, &third, true);
        check(&two, &[("/app/a.txt", Some("2"))], false);
        check(&two, &[("/app/b.txt", Some("2"))], false);
        check(&two, &[("/app/.git/objects/aa/a", None)], false);
        check(&two, &[("/app/.git/refs/tags/v", None)], true);
        check(&two, &[("/app/.git/refs/heads/x", Some("12"))], false);
        // States that are always equal are compared as wholes.
        check(&one, &[], false);
        check(&fingerprint(&[]), &[("/app/b.txt", Some("2"))], false);
    }
}
