//! Coverage: how many tasks of a plan are in each cell of the grid of axes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::{Operation, Specs};
use crate::model::{Blueprint, Difficulty, DomainId, EngineeringKind};

/// Tasks by domain, operation, kind and difficulty. A task counts once in each of its operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// Number of blueprints.
    pub tasks: u32,
    /// Cells with tasks, sorted.
    pub cells: Vec<CoverageCell>,
    /// All domains of the grid, also those without tasks.
    pub domains: Vec<DomainCoverage>,
}

/// A cell with tasks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CoverageCell {
    pub domain: DomainId,
    pub operation: String,
    pub kind: EngineeringKind,
    pub difficulty: Difficulty,
    pub tasks: u32,
}

/// The tasks of one domain along each axis. A value without tasks has no entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DomainCoverage {
    pub domain: DomainId,
    pub tasks: u32,
    pub recipes: u32,
    pub kinds: BTreeMap<EngineeringKind, u32>,
    pub difficulties: BTreeMap<Difficulty, u32>,
    pub operations: BTreeMap<String, u32>,
    /// Operations of the domain's skills that no task exercises.
    pub missing_operations: Vec<Operation>,
}

/// Counts `blueprints` over the domains of `specs`.
pub fn coverage<'a>(specs: &Specs, blueprints: impl IntoIterator<Item = &'a Blueprint>) -> Coverage {
    let blueprints: Vec<_> = blueprints.into_iter().collect();
    let mut cells: BTreeMap<_, u32> = BTreeMap::new();
    for blueprint in &blueprints {
        for operation in &blueprint.operations {
            let cell = (&blueprint.domain, operation, blueprint.kind, blueprint.difficulty);
            *cells.entry(cell).or_default() += 1;
        }
    }
    let cells = cells.into_iter().map(|((domain, operation, kind, difficulty), tasks)| CoverageCell {
        domain: domain.clone(),
        operation: operation.clone(),
        kind,
        difficulty,
        tasks,
    });
    let domains = specs.iter().map(|(id, spec)| {
        let own: Vec<_> = blueprints.iter().filter(|blueprint| blueprint.domain == *id).copied().collect();
        let operations = tally(own.iter().flat_map(|blueprint| blueprint.operations.iter().cloned()));
        let wanted: BTreeSet<_> = spec.skills.iter().flat_map(|skill| &skill.operations).copied().collect();
        DomainCoverage {
            domain: id.clone(),
            tasks: count(own.len()),
            recipes: count(
                own.iter().filter_map(|blueprint| blueprint.recipe()).collect::<BTreeSet<_>>().len(),
            ),
            kinds: tally(own.iter().map(|blueprint| blueprint.kind)),
            difficulties: tally(own.iter().map(|blueprint| blueprint.difficulty)),
            missing_operations: wanted
                .into_iter()
                .filter(|operation| !operations.contains_key(operation.as_str()))
                .collect(),
            operations,
        }
    });
    Coverage { tasks: count(blueprints.len()), cells: cells.collect(), domains: domains.collect() }
}

fn tally<T: Ord>(items: impl Iterator<Item = T>) -> BTreeMap<T, u32> {
    let mut tally = BTreeMap::new();
    for item in items {
        *tally.entry(item).or_default() += 1;
    }
    tally
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Coverage {
    /// The grid as text: a table of domains, then a table of operations by domain. A dot marks an
    /// empty cell. A blank marks a cell that the domain does not ask for.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let mut rows = vec![head(
            ["domain", "tasks", "recipes"],
            EngineeringKind::ALL
                .map(EngineeringKind::as_str)
                .into_iter()
                .chain(Difficulty::ALL.map(Difficulty::as_str)),
        )];
        for domain in &self.domains {
            let mut row = vec![domain.domain.to_string(), dot(domain.tasks), dot(domain.recipes)];
            row.extend(EngineeringKind::ALL.iter().map(|kind| dot(get(&domain.kinds, kind))));
            row.extend(Difficulty::ALL.iter().map(|level| dot(get(&domain.difficulties, level))));
            rows.push(row);
        }
        write_table(&mut out, &rows);
        out.push('\n');
        // Domains are the rows of this table too. Sixteen long names do not fit into a terminal, so
        // columns are numbered, and a key follows.
        let numbers: Vec<String> = (1..=Operation::ALL.len()).map(|number| number.to_string()).collect();
        let mut rows = vec![head(["operation"], numbers.iter().map(String::as_str))];
        for domain in &self.domains {
            let mut row = vec![domain.domain.to_string()];
            row.extend(Operation::ALL.iter().map(
                |operation| match domain.operations.get(operation.as_str()) {
                    Some(tasks) => tasks.to_string(),
                    None if domain.missing_operations.contains(operation) => ".".to_owned(),
                    None => String::new(),
                },
            ));
            rows.push(row);
        }
        write_table(&mut out, &rows);
        for (number, operation) in numbers.iter().zip(Operation::ALL) {
            let end = if number.parse::<usize>().is_ok_and(|number| number % 4 == 0) { "\n" } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(out, "{:<28}{end}", format!("{number:>2} {}", operation.as_str()));
        }
        trim_line_ends(&out)
    }
}

fn head<'a, const N: usize>(first: [&str; N], rest: impl Iterator<Item = &'a str>) -> Vec<String> {
    first.into_iter().map(str::to_owned).chain(rest.map(str::to_owned)).collect()
}

fn get<T: Ord>(tally: &BTreeMap<T, u32>, key: &T) -> u32 {
    tally.get(key).copied().unwrap_or_default()
}

fn dot(tasks: u32) -> String {
    if tasks == 0 { ".".to_owned() } else { tasks.to_string() }
}

/// Pads each column to its widest entry. The first column is aligned left.
fn write_table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a String cannot fail.
            let _ = if column == 0 { write!(out, "{cell:<width$}") } else { write!(out, "  {cell:>width$}") };
        }
        out.push('\n');
    }
}

fn trim_line_ends(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
