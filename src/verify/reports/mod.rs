//! Results of single checks, as test runners report them, e.g. in JUnit XML, CTRF, TAP or lines of
//! `cargo test`. They tell which checks pass, and give step scores. A reward never comes from them.

mod lines;
mod structured;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::model::{CheckId, CheckResult};

/// A supported report format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportKind {
    /// pytest's `--junitxml`. Most other runners can write it too.
    Junit,
    /// Common Test Report Format. Harbor's tasks leave it as `ctrf.json`.
    Ctrf,
    /// Test Anything Protocol, versions 12 to 14.
    Tap,
    /// `go test -v`.
    GoTest,
    /// `cargo test`.
    CargoTest,
    /// pytest's own lines with `-v` or `-rA`.
    Pytest,
    /// `md5sum -c` and the like.
    Checksums,
    /// `Score: 3/5`. It names no checks, so each point is a check.
    Score,
}

impl ReportKind {
    /// All formats, the more detailed ones first.
    pub const ALL: [Self; 8] = [
        Self::Junit,
        Self::Ctrf,
        Self::Tap,
        Self::GoTest,
        Self::CargoTest,
        Self::Pytest,
        Self::Checksums,
        Self::Score,
    ];
}

/// Why a report gives no checks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("it is not {0}: {1}")]
    Malformed(&'static str, String),
    #[error("it has a result without a name")]
    Nameless,
    #[error("it names no check")]
    Empty,
    #[error("it names more than {MAX_CHECKS} checks")]
    TooMany,
}

/// Maximum checks of one report. The largest suites have some hundred. A report with many more
/// would fill every table.
pub(super) const MAX_CHECKS: usize = 5_000;

/// The checks of a report, in its order. A name that occurs twice passed only if it passed each
/// time. Skipped checks have not passed.
pub fn parse_report(kind: ReportKind, text: &str) -> Result<Vec<CheckResult>, ReportError> {
    let found = match kind {
        ReportKind::Junit => structured::junit(text)?,
        ReportKind::Ctrf => structured::ctrf(text)?,
        ReportKind::Tap => lines::tap(text),
        ReportKind::GoTest => lines::go_test(text),
        ReportKind::CargoTest => lines::cargo_test(text),
        ReportKind::Pytest => lines::pytest(text),
        ReportKind::Checksums => lines::checksums(text),
        ReportKind::Score => lines::score(text),
    };
    let mut checks: Vec<CheckResult> = Vec::new();
    // A map, since a hostile report can have a million names.
    let mut places: HashMap<String, usize> = HashMap::new();
    for (name, passed) in found {
        match places.entry(name) {
            Entry::Occupied(place) => checks[*place.get()].passed &= passed,
            Entry::Vacant(place) => {
                if checks.len() == MAX_CHECKS {
                    return Err(ReportError::TooMany);
                }
                let id = CheckId::parse(place.key().clone()).map_err(|_| ReportError::Nameless)?;
                checks.push(CheckResult { id, passed });
                place.insert(checks.len() - 1);
            }
        }
    }
    if checks.is_empty() { Err(ReportError::Empty) } else { Ok(checks) }
}

/// The checks of the first format that occurs in a test runner's output.
pub fn find_report(text: &str) -> Option<(ReportKind, Vec<CheckResult>)> {
    ReportKind::ALL.into_iter().find_map(|kind| Some((kind, parse_report(kind, text).ok()?)))
}

#[cfg(test)]
mod tests;
