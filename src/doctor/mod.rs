//! `termsmith doctor`: what a machine lacks for a run. This module only looks. The engine's script
//! provides what is missing (`--fix`). A person can read it before it runs as root.
//!
//! This module prints nothing: callers get [`Event`]s and a [`Report`]. The engine's row in
//! `sandbox::ENGINES` answers what concerns the engine. The script never installs or starts an
//! engine where one answers, never asks for a password, and removes only files of dead daemons.

mod clock;
mod fix;
mod resources;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

pub use resources::memory_mb;

use crate::sandbox::{EngineEntry, Finding, Host, Limit, Status};
use fix::FixError;

/// Version of the report's JSON.
const REPORT_VERSION: u32 = 2;

/// The machine that is inspected.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    pub host: &'a Host,
    pub engine: &'a EngineEntry,
    /// Where the run will write.
    pub out: &'a Path,
}

/// Inspects the machine and changes nothing.
pub async fn diagnose(machine: &Machine<'_>) -> Report {
    Inspection::of(machine).await.report(&BTreeMap::new())
}

/// Inspects the machine, and runs the engine's script for each missing part that it can provide.
/// Before a change the script says what it will change.
pub async fn repair(machine: &Machine<'_>, on_event: &mut dyn FnMut(Event)) -> Report {
    let mut tried = BTreeMap::new();
    loop {
        let inspection = Inspection::of(machine).await;
        let next = inspection.rows.iter().find_map(|(name, found)| {
            let part = found.part.filter(|_| found.status == Status::Missing && !tried.contains_key(name))?;
            Some((*name, part))
        });
        let (Some((name, part)), Some(script)) = (next, machine.engine.fix_script) else {
            return inspection.report(&tried);
        };
        let run = fix::Run { script, part, address: inspection.address.as_deref(), host: machine.host };
        let ended = run.to_its_end(on_event).await;
        if let Err(error) = &ended {
            tracing::warn!(row = name, %error, "a fix failed");
        }
        tried.insert(name, ended);
    }
}

/// What an inspection found.
struct Inspection {
    /// In the order of the report.
    rows: Vec<(&'static str, Finding)>,
    limits: Vec<Limit>,
    address: Option<String>,
}

impl Inspection {
    async fn of(machine: &Machine<'_>) -> Self {
        let engine = machine.engine.diagnose(machine.host).await;
        let mut rows = engine.rows;
        rows.extend([
            ("clock", clock::inspect(machine.host)),
            ("output", resources::inspect_output(machine.out)),
            ("disk", resources::inspect_disk(machine.out, engine.image_folder.as_deref())),
            ("memory", resources::inspect_memory(machine.host)),
            ("cores", resources::inspect_cores()),
        ]);
        Self { rows, limits: engine.limits, address: engine.address }
    }

    /// The report. `tried` has the parts that the script was run for, and whether each worked.
    fn report(self, tried: &BTreeMap<&str, Result<(), FixError>>) -> Report {
        let rows = self.rows.into_iter().map(|(name, found)| match (found.status, tried.get(name)) {
            (Status::Ok, Some(_)) => Row::new(name, Finding { status: Status::Fixed, ..found }),
            // The inspection's own hint would recommend `--fix`, which has just failed.
            (Status::Missing, Some(Err(error))) => {
                Row::new(name, Finding { hint: error.hint(), ..Finding::missing(error.to_string()) })
            }
            _ => Row::new(name, found),
        });
        let rows: Vec<Row> = rows.collect();
        let healthy = rows.iter().all(|row| row.status != Status::Missing);
        Report { version: REPORT_VERSION, healthy, rows, limits: self.limits }
    }
}

/// A message while the machine is being changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The script is about to run.
    Script(String),
    /// A line that the script printed, e.g. a change that it is about to make.
    Line(String),
    /// The script still runs. Sent at least every ten seconds.
    Progress(Duration),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(text) | Self::Line(text) => f.write_str(text),
            Self::Progress(elapsed) => write!(f, "  … {} s so far", elapsed.as_secs()),
        }
    }
}

/// The state of one requirement, e.g. of disk space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    pub name: String,
    pub status: Status,
    /// What was found. It may end with indented lines of a log.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Row {
    fn new(name: &str, finding: Finding) -> Self {
        let Finding { status, detail, hint, part: _ } = finding;
        Self { name: name.to_owned(), status, detail, hint }
    }
}

/// The state of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this format.
    pub version: u32,
    /// Nothing is missing.
    pub healthy: bool,
    pub rows: Vec<Row>,
    /// The limits that containers have here. Empty if no engine answers.
    pub limits: Vec<Limit>,
}

#[cfg(test)]
mod tests;
