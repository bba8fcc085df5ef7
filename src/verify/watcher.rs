//! Who is told about the trials of a screening as they run.

use std::fmt;

use serde::Serialize;

use crate::model::RowKind;

/// A step of a screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStep {
    /// The screening makes about this many trials, those that were made included.
    Expected { trials: usize },
    /// The result of a trial was in the store.
    Recalled,
    /// A trial begins.
    Began,
    /// A trial ended, with a result or without.
    Ended,
}

/// The row that a trial is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName<'a> {
    pub task: &'a str,
    pub kind: RowKind,
    pub name: &'a str,
}

/// What is told about steps.
type Sink<'a> = dyn Fn(RowName<'_>, TrialStep) + Send + Sync + 'a;

/// Is told about trials. No decision depends on it.
#[derive(Clone, Copy, Default)]
pub struct Watcher<'a> {
    sink: Option<&'a Sink<'a>>,
    /// The row of the next trial.
    row: Option<RowName<'a>>,
}

impl<'a> Watcher<'a> {
    /// Tells `sink`.
    pub fn telling(sink: &'a Sink<'a>) -> Self {
        Self { sink: Some(sink), row: None }
    }

    /// The watcher of the trials of one row.
    pub fn of(self, row: RowName<'a>) -> Self {
        Self { row: Some(row), ..self }
    }

    /// Tells a step of the row.
    pub fn tell(self, step: TrialStep) {
        if let (Some(sink), Some(row)) = (self.sink, self.row) {
            sink(row, step);
        }
    }
}

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("row", &self.row).finish_non_exhaustive()
    }
}
