//! Wrong solutions that need no author: the reference runs, and then its results are damaged. Tests
//! that still pass do not look at the content. E.g. they check that a file begins with `\x7fELF`.

use super::table::{Expect, Planned, Table};
use super::target::{Only, ScreeningTarget};
use crate::model::{File, FileTree, Judging, RelPath, Rigor, RowKind, followed_by};
use crate::verify::{Act, Condition, Fingerprint, absolute_paths};
use std::time::Duration;

/// The damage to each result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// The first bytes stay. Each later byte is replaced by the next byte value, so that type and
    /// size stay.
    Garbled,
    Halved,
}

/// A file of the solution with the paths of the results, one in each line.
const LIST: &str = "damaged-results";
/// The note of a row whose trial was not possible.
pub(super) const SERVED: &str =
    "not applicable: a process of the reference may still hold the results in memory";
/// Shell code that ends with [`NOT_APPLICABLE`](crate::verify::NOT_APPLICABLE) if a process of the
/// reference still runs. It is used where tests see processes, since a service may hold its results
/// in memory.
const UNLESS_SERVED: &str = r#"own=" "
next=$$
while [ "${next:-0}" -gt 0 ]; do
    own="$own$next "
    IFS= read -r line <"/proc/$next/stat" || break
    set -- ${line##*) }
    next=$2
done
for place in /proc/[0-9]*; do
    IFS= read -r line 2>/dev/null <"$place/stat" || continue
    set -- ${line##*) }
    case $1 in Z | X) continue ;; esac
    case $own in *" ${place#/proc/} "*) ;; *) exit 3 ;; esac
done
"#;
const EACH: &str = r#"while IFS= read -r place; do
    [ -f "$place" ] && [ ! -L "$place" ] || continue
    size=$(wc -c <"$place")
    DAMAGE >"$place.damaged" && cat "$place.damaged" >"$place"
    rm -f "$place.damaged"
done <"$(dirname "$0")/damaged-results"
"#;

impl Damage {
    fn name(self) -> &'static str {
        match self {
            Self::Garbled => "results garbled",
            Self::Halved => "results cut to half",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Garbled => "the reference with all results garbled after their first bytes",
            Self::Halved => "the reference with all results cut to half",
        }
    }

    /// Shell code that prints the damaged content of `$place`, a file of `$size` bytes.
    fn command(self) -> &'static str {
        match self {
            Self::Garbled => {
                r#"{ kept=$((size / 2)); [ $kept -le 64 ] || kept=64; head -c $kept "$place"; tail -c +$((kept + 1)) "$place" | LC_ALL=C tr '\000-\377' '\001-\377\000'; }"#
            }
            Self::Halved => r#"head -c $((size / 2)) "$place""#,
        }
    }
}

/// Damaged references, with their kind of damage.
pub(super) struct Damaged(Vec<(Damage, FileTree)>);

impl Damaged {
    /// The damages at a rigor. If there are none, `table` says why.
    pub(super) fn of(
        target: &ScreeningTarget<'_>,
        solution: &FileTree,
        [reference, untouched]: [&Fingerprint; 2],
        rigor: Rigor,
        only: &Only,
        table: &mut Table,
    ) -> Self {
        let damages: &[Damage] = match rigor {
            Rigor::Quick => &[],
            Rigor::Standard => &[Damage::Garbled],
            Rigor::Full => &[Damage::Garbled, Damage::Halved],
        };
        let wanted = |damage: &Damage| only.wants_row(RowKind::WrongSolution, damage.name());
        let damages: Vec<_> = damages.iter().copied().filter(wanted).collect();
        let results = results(target.instruction, reference, untouched);
        if results.is_empty() {
            for damage in damages {
                let why = "the reference writes no file that the instruction names";
                table.skipped(RowKind::WrongSolution, damage.name(), why);
            }
            return Self(Vec::new());
        }
        let judging = target.task.judging();
        let files = |damage| Some((damage, damaged(solution, damage, &results, judging)?));
        Self(damages.into_iter().filter_map(files).collect())
    }

    /// Their trials. Each may last `within`.
    pub(super) fn planned(&self, within: Duration) -> impl Iterator<Item = Planned<'_>> {
        self.0.iter().map(move |(damage, solution)| Planned {
            kind: RowKind::WrongSolution,
            name: damage.name().to_owned(),
            act: Act::Edit { solution, within },
            condition: Condition::FirstFailure { likely: &[], known: &[] },
            expect: Expect::FailUnlessEqual,
            repeat: 0,
            about: damage.about().to_owned(),
        })
    }
}

/// The files that the reference writes and the instruction names. Others may be by-products, e.g. a
/// log, or `.bashrc` in a home that is named.
fn results(instruction: &str, reference: &Fingerprint, untouched: &Fingerprint) -> Vec<String> {
    let named = absolute_paths(instruction);
    let written =
        reference.iter().filter(|(path, file)| untouched.get(*path).is_none_or(|old| old.hash != file.hash));
    // The list has one path in each line.
    written
        .map(|(path, _)| path)
        .filter(|path| named.contains(path) && !path.contains('\n'))
        .cloned()
        .collect()
}

/// The solution, followed by the damage to the files at `results`.
fn damaged(solution: &FileTree, damage: Damage, results: &[String], judging: Judging) -> Option<FileTree> {
    let guard = match judging {
        Judging::Shared => UNLESS_SERVED,
        Judging::CleanRoom | Judging::Separate => "",
    };
    let after = format!("{guard}{}", EACH.replace("DAMAGE", damage.command()));
    let mut files = followed_by(solution, &after)?;
    files.insert(RelPath::new(LIST).ok()?, File::text(results.join("\n") + "\n"));
    Some(files)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::verify::{FileFingerprint, NOT_APPLICABLE};

    fn fingerprint(files: &[(&str, &str)]) -> Fingerprint {
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), FileFingerprint::of(path, text.as_bytes())))
            .collect()
    }

    #[test]
    fn results_are_written_by_the_reference_and_named_by_the_instruction() {
        let untouched = fingerprint(&[("/app/in.csv", "1"), ("/app/edited.py", "1"), ("/srv/a/b", "1")]);
        let reference = fingerprint(&[
            ("/app/in.csv", "1"),
            ("/app/edited.py", "2"),
            ("/app/out/a.csv", "2"),
            ("/app/outer", "2"),
            ("/root/.cache/x", "2"),
            ("/srv/a/b", "2"),
        ]);
        let check = |instruction: &str, expect: &[&str]| {
            assert_eq!(results(instruction, &reference, &untouched), expect, "{instruction}");
        };
        check("Write `/app/out/a.csv` from `/app/in.csv`.", &["/app/out/a.csv"]);
        check("Write files to /app/out.", &[]);
        check("Mend /app/edited.py.", &["/app/edited.py"]);
        check("Work in `/app`.", &[]);
        check("Sort the words of in.csv.", &[]);
        check("Read /app/in.csv.", &[]);
    }

    #[test]
    fn damaged_results_are_of_the_same_type_and_wrong() {
        let check = |damage: Damage, before: &[u8], expect: &[u8]| {
            let dir = tempfile::tempdir().unwrap();
            let place = dir.path().join("a b.bin");
            let place = place.to_str().unwrap();
            let script = format!("#!/bin/bash\ncat \"$(dirname \"$0\")/given\" >'{place}'\n");
            let mut solution = FileTree::default();
            solution.insert(RelPath::new("solve.sh").unwrap(), File::script(script));
            solution
                .insert(RelPath::new("given").unwrap(), File { bytes: before.to_vec(), executable: false });
            let results = ["/nonexistent/x".to_owned(), place.to_owned()];
            let files = damaged(&solution, damage, &results, Judging::CleanRoom).unwrap();
            for (path, file) in files.iter() {
                std::fs::write(dir.path().join(path.as_str()), &file.bytes).unwrap();
            }
            let ended = Command::new("bash").arg(dir.path().join("solve.sh")).output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
            assert_eq!(std::fs::read(place).unwrap(), expect, "{damage:?} {before:?}");
        };
        check(Damage::Garbled, b"5050\n", b"5061\x0b");
        check(Damage::Garbled, b"", b"");
        check(Damage::Garbled, b"1", b"2");
        check(Damage::Garbled, b"\x7fEL\0\xff", b"\x7fEM\x01\0");
        let long = [[0; 64], [1; 64], [255; 64]].concat();
        check(Damage::Garbled, &long, &[[0; 64], [2; 64], [0; 64]].concat());
        check(Damage::Halved, b"5050\n", b"50");
        check(Damage::Halved, b"1", b"");
    }

    /// Here a shell sees this test's own processes, so the script ends before the damage.
    #[test]
    fn results_that_a_process_may_hold_are_not_damaged() {
        let ended =
            Command::new("bash").args(["-c", &format!("{UNLESS_SERVED}echo damaged")]).output().unwrap();
        assert_eq!(ended.status.code(), Some(NOT_APPLICABLE), "{ended:?}");
    }
}
