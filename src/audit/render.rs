//! The audit as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Audit, Axis, Gap, GapState, Tally, funnel};
use crate::model::{Difficulty, DomainId, EngineeringKind, Scores, floored_percent, one_line};

/// Column headings of the counts of a [`Tally`].
const COUNTS: [&str; 9] =
    ["planned", "certified", "rejected", "solved", "scored", "unscored", "coverage", "passing", "rate"];

/// The audit as text: a table for each axis, then the gaps by name.
pub fn table(audit: &Audit) -> String {
    let mut out = String::new();

    let mut rows = vec![heading("domain", ["skills", "operations"])];
    for (id, domain) in &audit.domains {
        let reached = |axis, tallies| reach(audit, id, axis, tallies);
        let (skills, operations) =
            (reached(Axis::Skill, &domain.skills), reached(Axis::Operation, &domain.operations));
        rows.push(row(id.as_str(), &domain.total, [skills, operations]));
    }
    rows.push(row("all", &audit.total, [String::new(), String::new()]));
    write_table(&mut out, &rows);

    section(
        &mut out,
        "kind",
        audit.kinds.iter().map(|(kind, tally)| (EngineeringKind::as_str(*kind), tally)),
    );
    section(
        &mut out,
        "difficulty",
        audit.difficulties.iter().map(|(level, tally)| (Difficulty::as_str(*level), tally)),
    );
    section(
        &mut out,
        "operation",
        audit.operations.iter().map(|(operation, tally)| (operation.as_str(), tally)),
    );

    if let Some(funnel) = &audit.authoring {
        funnel::section(&mut out, funnel);
    }
    for state in GapState::ALL {
        write_gaps(&mut out, state, audit);
    }
    out
}

fn section<'a>(out: &mut String, name: &str, tallies: impl Iterator<Item = (&'a str, &'a Tally)>) {
    let mut rows = vec![heading(name, [])];
    rows.extend(tallies.map(|(value, tally)| row(value, tally, [])));
    out.push('\n');
    write_table(out, &rows);
}

fn heading<const N: usize>(axis: &str, more: [&str; N]) -> Vec<String> {
    [axis].into_iter().chain(COUNTS).chain(more).map(str::to_owned).collect()
}

fn row<const N: usize>(value: &str, tally: &Tally, more: [String; N]) -> Vec<String> {
    let Scores { scored, unscored, passed } = tally.rollouts;
    let tasks = [tally.planned, tally.certified, tally.rejected, tally.solved].map(|count| count.to_string());
    let rollouts = [
        scored.to_string(),
        unscored.to_string(),
        tally.rollouts.coverage().map_or_else(String::new, floored_percent),
        passed.to_string(),
        tally.rollouts.pass_rate().map_or_else(String::new, |rate| rate.to_string()),
    ];
    [value.to_owned()].into_iter().chain(tasks).chain(rollouts).chain(more).collect()
}

/// E.g. `3/15`: 3 of 15 declared values have a planned task. Empty for a domain without a spec.
fn reach(audit: &Audit, domain: &DomainId, axis: Axis, tallies: &BTreeMap<String, Tally>) -> String {
    let undeclared = |axis: Axis, value: &str| {
        let mut unknown =
            audit.gaps.iter().filter(|gap| gap.state == GapState::Undeclared && gap.domain == *domain);
        unknown.any(|gap| gap.axis == axis && gap.value == value)
    };
    if undeclared(Axis::Domain, domain.as_str()) {
        return String::new();
    }
    let declared = || tallies.iter().filter(|(value, _)| !undeclared(axis, value));
    format!("{}/{}", declared().filter(|(_, tally)| tally.planned > 0).count(), declared().count())
}

fn write_gaps(out: &mut String, state: GapState, audit: &Audit) {
    let gaps: Vec<&Gap> = audit.gaps.iter().filter(|gap| gap.state == state).collect();
    if gaps.is_empty() {
        return;
    }
    let title = match state {
        GapState::Undeclared => "in tasks, but in no domain spec",
        GapState::NeverPlanned => "never planned",
        GapState::NeverCertified => "planned, never certified",
        GapState::NeverSolved => "certified, never solved",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\n{title} ({})", gaps.len());
    for domain in gaps.chunk_by(|one, next| one.domain == next.domain) {
        let axes: Vec<String> = domain
            .chunk_by(|one, next| one.axis == next.axis)
            .filter_map(|axis| {
                let values: Vec<_> = axis.iter().map(|gap| gap.value.as_str()).collect();
                let name = plural(axis.first()?.axis)?;
                Some(format!("{name}: {}", values.join(", ")))
            })
            .collect();
        let what = if axes.is_empty() { "everything".to_owned() } else { axes.join("; ") };
        let _ = writeln!(out, "  {}: {what}", domain[0].domain);
    }
}

/// The plural name of an axis's values. `None` for the axis of domains.
fn plural(axis: Axis) -> Option<&'static str> {
    match axis {
        Axis::Domain => None,
        Axis::Skill => Some("skills"),
        Axis::Operation => Some("operations"),
        Axis::Kind => Some("kinds"),
        Axis::Difficulty => Some("difficulties"),
        Axis::SkillOperation => Some("skill with operation"),
    }
}

/// Aligns the first column to the left, the others to the right.
pub(super) fn write_table(out: &mut String, rows: &[Vec<String>]) {
    // Names of domains may come from foreign files.
    let cells = |row: &Vec<String>| row.iter().map(|cell| one_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use crate::audit::fixture;

    use super::*;

    #[test]
    fn the_table() {
        insta::assert_snapshot!(table(&fixture::audited()));
    }
}
