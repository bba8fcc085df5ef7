//! Clauses: each sentence of the instruction that demands something. A solution violates one clause
//! alone, and a check must notice.

use std::collections::BTreeSet;
use std::time::Duration;

use super::table::{Expect, Planned, Table};
use super::target::{Extent, Only, ScreeningTarget};
use crate::model::{
    Clause, ClauseRecord, Clauses, FileTree, Outcome, Rates, Row, RowKind, Seed, Tally, Violation,
};
use crate::verify::{Act, Condition};

/// A violation that is executed.
pub(super) struct Drawn<'a> {
    name: String,
    clause: &'a Clause,
    violation: &'a Violation,
    files: FileTree,
}

impl Drawn<'_> {
    /// The trial of the violation. The checks that should notice it run first.
    pub(super) fn planned(&self, within: Duration) -> Planned<'_> {
        let words = self.clause.says.first().map(String::as_str).unwrap_or_default();
        Planned {
            kind: RowKind::Clause,
            name: self.name.clone(),
            act: Act::Edit { solution: &self.files, within },
            condition: Condition::FirstFailure { likely: &self.clause.checks, known: &[] },
            repeat: 0,
            expect: Expect::Fail,
            about: format!("a solution that {}, against “{words}”,", self.violation.that),
        }
    }
}

/// The condition for a known wrong solution. The checks of a clause that it violates run first.
pub(super) fn wrong<'a>(clauses: &'a Clauses, name: &str) -> Condition<'a> {
    let is_named = |clause: &&Clause| clause.wrong.iter().any(|wrong| wrong == name);
    let violated = clauses.clause.iter().find(is_named);
    let likely = violated.map_or(&[] as &[_], |clause| clause.checks.as_slice());
    Condition::FirstFailure { likely, known: &[] }
}

/// The violations to execute. If there are too many, the task's identity draws a sample, so that a
/// run of many tasks covers all of them.
pub(super) fn drawn<'a>(
    target: &ScreeningTarget<'a>,
    solution: &FileTree,
    extent: Extent,
    only: &Only,
    table: &mut Table,
) -> Vec<Drawn<'a>> {
    if !only.wants(RowKind::Clause) {
        return Vec::new();
    }
    let all = target.clauses.clause.iter();
    let all = all.flat_map(|clause| clause.violation.iter().map(move |violation| (clause, violation)));
    let mut wanted: Vec<_> = all
        .map(|(clause, violation)| (clause.row_name(violation), clause, violation))
        .filter(|(name, clause, _)| {
            only.wants_row(RowKind::Clause, name) || only.wants_row(RowKind::Clause, &clause.id)
        })
        .collect();
    let identity = target.task.identity();
    let seed = Seed(0).derive(&["clauses", identity]);
    if wanted.len() > extent.violations {
        // Two clauses show more than one clause twice.
        let mut seen = BTreeSet::new();
        wanted.sort_by_key(|(name, ..)| seed.derive(&[name]).0);
        // If no check quotes a clause, only its violations show which checks demand it. So such
        // clauses come first.
        wanted.sort_by_cached_key(|(_, clause, _)| {
            (!seen.insert(clause.id.clone()), !clause.checks.is_empty())
        });
        wanted.truncate(extent.violations);
        wanted.sort_by(|one, other| one.0.cmp(&other.0));
    }
    let mut drawn = Vec::new();
    for (name, clause, violation) in wanted {
        match violation.apply(solution) {
            Ok(files) => drawn.push(Drawn { name, clause, violation, files }),
            Err(error) => table.row(RowKind::Clause, &name, false, &error.to_string()),
        }
    }
    drawn
}

/// Rejects clauses that do not fit the task. Clauses of a recipe were checked when the recipe was
/// rendered.
pub(super) fn declared(clauses: &Clauses, instruction: &str, solution: Option<&FileTree>, table: &mut Table) {
    let nothing = FileTree::default();
    for problem in clauses.misfits(instruction, solution.unwrap_or(&nothing)) {
        table.row(RowKind::Clause, "declaration", false, &format!("`clauses.toml`: {problem}"));
    }
}

/// The record of each clause, from the rows.
pub(super) fn records(clauses: &Clauses, table: &Table) -> Vec<ClauseRecord> {
    let record = |clause: &Clause| {
        let rows = rows_of(clause, &table.rows);
        let noticed = rows.iter().filter_map(|row| table.noticed.get(&(row.kind, row.name.clone())));
        let noticed: BTreeSet<_> = noticed.flatten().cloned().collect();
        let none = rows.is_empty().then(|| "this rigor executed no violation of it".to_owned());
        let untested = clause.untested.clone().or(none);
        ClauseRecord {
            id: clause.id.clone(),
            says: clause.says.clone(),
            violations: tally(&rows),
            noticed_by: noticed.into_iter().collect(),
            untested,
        }
    };
    clauses.clause.iter().map(record).collect()
}

/// Sentences that no clause quotes. Empty if no clauses were declared.
pub(super) fn uncovered(clauses: &Clauses, instruction: &str) -> Vec<String> {
    if clauses.quotes_nothing() { Vec::new() } else { clauses.uncovered(instruction) }
}

/// `rates`, with known wrong solutions counted among the violations of the clauses that they
/// violate.
pub(super) fn with_wrong(rates: Rates, clauses: &Clauses, rows: &[Row]) -> Rates {
    let named: BTreeSet<&String> = clauses.clause.iter().flat_map(|clause| &clause.wrong).collect();
    let wrong: Vec<&Row> = rows
        .iter()
        .filter(|row| row.kind == RowKind::WrongSolution && row.counts && named.contains(&row.name))
        .collect();
    let Tally { good, counted } = tally(&wrong);
    let clauses = Tally { good: rates.clauses.good + good, counted: rates.clauses.counted + counted };
    Rates { clauses, ..rates }
}

fn tally(rows: &[&Row]) -> Tally {
    let killed = rows.iter().filter(|row| row.outcome != Some(Outcome::Pass)).count();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Tally { good: number(killed), counted: number(rows.len()) }
}

/// The rows of a clause's violations. Known wrong solutions are among them.
fn rows_of<'a>(clause: &Clause, rows: &'a [Row]) -> Vec<&'a Row> {
    let names: BTreeSet<String> =
        clause.violation.iter().map(|violation| clause.row_name(violation)).collect();
    let is_one = |row: &&Row| match row.kind {
        RowKind::Clause => row.outcome.is_some() && names.contains(&row.name),
        RowKind::WrongSolution => row.outcome.is_some() && clause.wrong.contains(&row.name),
        _ => false,
    };
    rows.iter().filter(is_one).collect()
}
