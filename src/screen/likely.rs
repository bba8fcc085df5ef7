//! Guesses which checks notice a mutant. Violations of clauses change lines of the reference. The
//! checks of the violations nearest to the mutant run first, so most mutants fail after a few
//! checks.

use super::table::Table;
use crate::model::{CheckId, Clauses, FileTree, RowKind};

/// Maximum number of checks that run first.
const ENOUGH: usize = 4;

/// The lines of the reference that violations change.
pub(super) struct Places(Vec<Place>);

struct Place {
    file: String,
    /// The middle of the changed lines, counted from 1.
    line: usize,
    /// The checks that failed on the violation, then the checks of its clause.
    checks: Vec<CheckId>,
}

impl Places {
    pub(super) fn of(clauses: &Clauses, solution: &FileTree, table: &Table) -> Self {
        let mut places = Vec::new();
        for clause in &clauses.clause {
            for violation in &clause.violation {
                let row = (RowKind::Clause, clause.row_name(violation));
                let noticed = table.noticed.get(&row).into_iter().flatten();
                let checks: Vec<_> = noticed.chain(&clause.checks).cloned().collect();
                for edit in &violation.edit {
                    let Some(at) = solution.text(&edit.file).and_then(|text| line_of(text, &edit.from))
                    else {
                        continue;
                    };
                    places.push(Place { file: edit.file.clone(), line: at, checks: checks.clone() });
                }
            }
        }
        Self(places)
    }

    /// The likely checks for a change at `place`, e.g. `solve.sh:12`.
    pub(super) fn likely(&self, place: &str) -> Vec<CheckId> {
        let Some((file, line)) = place.rsplit_once(':') else { return Vec::new() };
        let Ok(line) = line.parse::<usize>() else { return Vec::new() };
        let mut near: Vec<&Place> = self.0.iter().filter(|other| other.file == file).collect();
        near.sort_by_key(|other| other.line.abs_diff(line));
        let mut found = Vec::new();
        for check in near.into_iter().flat_map(|place| &place.checks) {
            if found.len() == ENOUGH {
                break;
            }
            if !found.contains(check) {
                found.push(check.clone());
            }
        }
        found
    }
}

/// The middle line of `part` within `text`, counted from 1.
fn line_of(text: &str, part: &str) -> Option<usize> {
    let lines = |text: &str| text.matches('\n').count();
    text.find(part).map(|at| 1 + lines(&text[..at]) + lines(part) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{File, RelPath};

    #[test]
    fn the_checks_of_the_nearest_violations_come_first() {
        let clauses = "\
            [[clause]]\nid = \"one\"\nsays = [\"a\"]\nchecks = [\"test_a\", \"test_b\"]\n\
            [[clause.violation]]\nname = \"x\"\nthat = \"x\"\nedit = [{ from = \"two\\n\", to = \"2\\n\" }]\n\
            [[clause]]\nid = \"other\"\nsays = [\"b\"]\nchecks = [\"test_c\"]\n\
            [[clause.violation]]\nname = \"y\"\nthat = \"y\"\nedit = [{ from = \"nine\", to = \"9\" }]\n";
        let clauses: Clauses = toml::from_str(clauses).unwrap();
        let mut solution = FileTree::default();
        let text = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
        solution.insert(RelPath::new("solve.sh").unwrap(), File::script(text.to_owned()));
        let mut table = Table::default();
        let id = |name: &str| CheckId::parse(name).unwrap();
        table.noticed.insert((RowKind::Clause, "one/x".to_owned()), vec![id("test_d")]);
        let places = Places::of(&clauses, &solution, &table);
        let check = |place: &str, expect: &[&str]| {
            let expect: Vec<_> = expect.iter().map(|name| id(name)).collect();
            assert_eq!(places.likely(place), expect, "{place}");
        };
        check("solve.sh:1", &["test_d", "test_a", "test_b", "test_c"]);
        check("solve.sh:7", &["test_c", "test_d", "test_a", "test_b"]);
        check("other.sh:1", &[]);
        check("solve.sh", &[]);
    }
}
