//! Progress events of a run.

use serde::Serialize;

use crate::model::{Outcome, RowKind};
use crate::verify::TrialStep;

/// A progress event, for people and logs only.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Work began on a blueprint.
    Started { task: String },
    /// A step of the screening of a task, at one row of its certificate.
    Trial { task: String, kind: RowKind, name: String, step: TrialStep },
    /// A draft was screened.
    Screened { task: String, certified: bool, rows: usize, reasons: Vec<String>, seconds: f64 },
    /// A rollout was committed, now or in an earlier run.
    RolledOut { task: String, attempt: u32, outcome: Outcome },
    /// The expert's script of a recipe is wrong, so an attempt has no rollout; the task and its other attempts stay.
    ScriptFailed { task: String, attempt: u32, message: String },
    /// A unit ended without a result.
    Failed { task: String, message: String },
    /// A unit is committed.
    Finished { task: String, seconds: f64 },
    /// Leftovers of dead owners were removed.
    Swept { containers: usize },
    /// A later stage began.
    Stage { name: &'static str },
}

/// Receives events.
pub type EventSink<'a> = &'a (dyn Fn(Event) + Send + Sync);
