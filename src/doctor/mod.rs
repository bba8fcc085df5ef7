//! What a machine needs before a run, and how to provide it: `termsmith doctor [--fix]`.
//!
//! Each requirement is a row of `CHECKS`: an inspection of the machine and, where that is possible, a fix. This module prints
//! nothing: callers get [`Event`]s and a [`Report`]. It asks engines through `sandbox::discovery` and bollard, as `run` does.
//! It never installs or starts an engine where one answers, never asks for a password, and removes only files of dead
//! daemons.

mod apt;
mod base;
mod client;
mod clock;
mod daemon;
mod distro;
mod engine;
mod error;
#[cfg(test)]
mod fake;
mod heartbeat;
mod limits;
mod resources;
mod stale;
mod system;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

pub use limits::{By, Limit, table};
pub use resources::memory_mb;
pub use system::System;

use error::FixError;
use system::{Invocation, Privilege};

/// Version of the report's JSON.
const REPORT_VERSION: u32 = 2;

/// One requirement.
struct Check {
    name: &'static str,
    inspect: fn(&Context<'_>) -> Finding,
    /// How to provide it when the inspection finds it missing.
    fix: Option<Fix>,
}

type Fix = fn(&Context<'_>, &mut Events<'_>) -> Result<(), FixError>;

/// In this order, since later ones ask the engine that the first provides.
const CHECKS: [Check; 8] = [
    Check { name: "engine", inspect: engine::inspect, fix: Some(engine::fix) },
    Check { name: "limits", inspect: engine::inspect_limits, fix: None },
    Check { name: "base image", inspect: base::inspect, fix: Some(base::fix) },
    Check { name: "clock", inspect: clock::inspect, fix: Some(clock::fix) },
    Check { name: "output", inspect: resources::inspect_output, fix: None },
    Check { name: "disk", inspect: resources::inspect_disk, fix: None },
    Check { name: "memory", inspect: resources::inspect_memory, fix: None },
    Check { name: "cores", inspect: resources::inspect_cores, fix: None },
];

/// Inspects the machine and changes nothing.
pub fn diagnose(system: &System, out: &Path) -> Report {
    let context = Context { system, out };
    let rows = CHECKS.iter().map(|check| Row::new(check.name, (check.inspect)(&context))).collect();
    Report::new(rows, limits::inspect(&context))
}

/// Inspects the machine and provides what is missing; every change is announced before it is made.
pub fn repair(system: &System, out: &Path, on_event: &mut dyn FnMut(Event)) -> Report {
    repair_with(&CHECKS, &Context { system, out }, &mut Events::new(on_event))
}

fn repair_with(checks: &[Check], context: &Context<'_>, events: &mut Events<'_>) -> Report {
    let repaired = checks.iter().map(|check| {
        let span = tracing::debug_span!("check", name = check.name).entered();
        let found = (check.inspect)(context);
        let row = match check.fix {
            Some(fix) if found.status == Status::Missing => match fix(context, events) {
                Ok(()) => (check.inspect)(context).after_fix(),
                // The inspection's own hint would recommend what has just failed.
                Err(error) => {
                    tracing::warn!(check = check.name, error = error.explain(), "a fix failed");
                    Finding { hint: error.hint(), ..Finding::missing(error.explain()) }
                }
            },
            Some(_) | None => found,
        };
        drop(span);
        Row::new(check.name, row)
    });
    let rows = repaired.collect();
    Report::new(rows, limits::inspect(context))
}

/// What checks inspect.
struct Context<'a> {
    system: &'a System,
    /// Where the run will write.
    out: &'a Path,
}

/// A message while the machine is being changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A change that is about to be made.
    Action(String),
    /// A change in progress, at least every ten seconds.
    Progress { activity: String, elapsed: Duration },
    /// An observation between changes.
    Note(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action(text) | Self::Note(text) => f.write_str(text),
            Self::Progress { activity, elapsed } => {
                write!(f, "  … {activity}, {} s so far", elapsed.as_secs())
            }
        }
    }
}

/// Passes events to the caller.
struct Events<'a>(&'a mut dyn FnMut(Event));

impl<'a> Events<'a> {
    fn new(on_event: &'a mut dyn FnMut(Event)) -> Self {
        Self(on_event)
    }

    fn action(&mut self, text: impl Into<String>) {
        (self.0)(Event::Action(text.into()));
    }

    fn progress(&mut self, activity: &str, elapsed: Duration) {
        (self.0)(Event::Progress { activity: activity.to_owned(), elapsed });
    }

    fn note(&mut self, text: impl Into<String>) {
        (self.0)(Event::Note(text.into()));
    }
}

/// The state of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It was missing, and was provided.
    Fixed,
    /// A run works, but with restrictions.
    Warn,
    /// A run cannot work, or a certificate of full rigor would lack rows.
    Missing,
}

impl Status {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fixed => "fixed",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }
}

/// What an inspection found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    status: Status,
    detail: String,
    hint: Option<String>,
}

impl Finding {
    fn new(status: Status, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), hint: None }
    }

    fn ok(detail: impl Into<String>) -> Self {
        Self::new(Status::Ok, detail)
    }

    fn warn(detail: impl Into<String>) -> Self {
        Self::new(Status::Warn, detail)
    }

    fn missing(detail: impl Into<String>) -> Self {
        Self::new(Status::Missing, detail)
    }

    fn needs_engine() -> Self {
        Self::missing("unknown until an engine answers").hint("see the row `engine`")
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn after_fix(self) -> Self {
        let status = if self.status == Status::Ok { Status::Fixed } else { self.status };
        Self { status, ..self }
    }
}

/// A check's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    pub name: String,
    pub status: Status,
    /// What was found. May end with indented lines of a log.
    pub detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Row {
    fn new(name: &str, finding: Finding) -> Self {
        let Finding { status, detail, hint } = finding;
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
    /// What limits containers here; empty if no engine answers.
    pub limits: Vec<Limit>,
}

impl Report {
    fn new(rows: Vec<Row>, limits: Vec<Limit>) -> Self {
        let healthy = rows.iter().all(|row| row.status != Status::Missing);
        Self { version: REPORT_VERSION, healthy, rows, limits }
    }
}

#[cfg(test)]
mod tests;
