//! Progress events of a run.

use serde::Serialize;

use crate::model::{Outcome, RowKind};
use crate::verify::TrialStep;

/// A progress event. People and logs read it, and no decision depends on it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Work began on a blueprint.
    Started { task: String },
    /// A trial of a task's screening began or ended. It belongs to this row of the certificate.
    Trial { task: String, kind: RowKind, name: String, step: TrialStep },
    /// A draft was screened.
    Screened { task: String, certified: bool, rows: usize, reasons: Vec<String>, seconds: f64 },
    /// A rollout was committed, now or in an earlier run.
    RolledOut { task: String, attempt: u32, outcome: Outcome },
    /// The expert's script in a recipe is wrong, so this attempt has no rollout. The task and its
    /// other attempts are not affected.
    ScriptFailed { task: String, attempt: u32, message: String },
    /// A unit ended without a result.
    Failed { task: String, message: String },
    /// A unit is committed.
    Finished { task: String, seconds: f64 },
    /// Containers whose termsmith has ended were removed.
    Swept { containers: usize },
    /// A later stage of the run began, e.g. the export.
    Stage { name: &'static str },
}

/// Receives events.
pub type EventSink<'a> = &'a (dyn Fn(Event) + Send + Sync);
