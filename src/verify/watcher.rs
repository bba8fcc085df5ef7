//! Reports the progress of a screening's trials, e.g. to the terminal.

use std::fmt;

use serde::Serialize;

use crate::model::RowKind;

/// A step of a screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStep {
    /// The screening makes about this many trials. Those already made are included.
    Expected { trials: usize },
    /// The result of a trial was in the store.
    Recalled,
    /// A trial begins.
    Began,
    /// A trial ended, with a result or without.
    Ended,
}

/// The certificate row of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName<'a> {
    pub task: &'a str,
    pub kind: RowKind,
    pub name: &'a str,
}

/// Receives each step with its row.
type Sink<'a> = dyn Fn(RowName<'_>, TrialStep) + Send + Sync + 'a;

/// Passes the steps of trials on. Results never depend on it.
#[derive(Clone, Copy, Default)]
pub struct Watcher<'a> {
    sink: Option<&'a Sink<'a>>,
    /// The row of the trials that come next.
    row: Option<RowName<'a>>,
}

impl<'a> Watcher<'a> {
    /// A watcher that calls `sink` for each step.
    pub fn telling(sink: &'a Sink<'a>) -> Self {
        Self { sink: Some(sink), row: None }
    }

    /// This watcher for the trials of `row`.
    pub fn of(self, row: RowName<'a>) -> Self {
        Self { row: Some(row), ..self }
    }

    /// Reports a step of the row.
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
