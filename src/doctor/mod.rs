//! What a machine needs before a run, and how to provide it: `termsmith doctor [--fix]`.
//!
//! Everything is a row of `CHECKS`: a look at the machine, and where that is possible a fix. The room stands on its own:
//! it prints nothing (callers get [`Event`]s and a [`Report`]), knows nothing of tasks, and talks to engines by a few
//! plain HTTP calls, since it must work where nothing else does yet. It never installs anything where an engine answers,
//! never asks for a password, and removes only what a dead daemon left.

mod apt;
mod base;
mod distro;
mod endpoint;
mod engine;
mod error;
#[cfg(test)]
mod fake;
mod http;
mod leftover;
mod machine;
mod start;
mod system;

use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

pub use machine::memory_mb;
pub use system::System;

use error::FixError;
use system::{Invocation, Privilege};

/// Version of the report's JSON.
const REPORT_VERSION: u32 = 1;

/// One thing that a machine needs.
struct Check {
    name: &'static str,
    look: fn(&Context<'_>) -> Finding,
    /// What to try when the look finds it missing.
    fix: Option<Fix>,
}

type Fix = fn(&Context<'_>, &mut Events<'_>) -> Result<(), FixError>;

/// In this order: later ones ask the engine that the first provides.
const CHECKS: [Check; 7] = [
    Check { name: "engine", look: engine::look, fix: Some(engine::fix) },
    Check { name: "limits", look: engine::look_at_limits, fix: None },
    Check { name: "base image", look: base::look, fix: Some(base::fix) },
    Check { name: "output", look: machine::look_at_output, fix: None },
    Check { name: "disk", look: machine::look_at_disk, fix: None },
    Check { name: "memory", look: machine::look_at_memory, fix: None },
    Check { name: "cores", look: machine::look_at_cores, fix: None },
];

/// Looks at the machine and changes nothing.
pub fn diagnose(system: &System, out: &Path) -> Report {
    let context = Context { system, out };
    Report::new(CHECKS.iter().map(|check| Row::new(check.name, (check.look)(&context))).collect())
}

/// Looks at the machine and provides what is missing; every change is announced before it is made.
pub fn treat(system: &System, out: &Path, on_event: &mut dyn FnMut(Event)) -> Report {
    treat_with(&CHECKS, &Context { system, out }, &mut Events::new(on_event))
}

fn treat_with(checks: &[Check], context: &Context<'_>, events: &mut Events<'_>) -> Report {
    let treated = checks.iter().map(|check| {
        let found = (check.look)(context);
        let row = match check.fix {
            Some(fix) if found.status == Status::Missing => match fix(context, events) {
                Ok(()) => (check.look)(context).after_fix(),
                // The look's own hint would say to do what has just failed.
                Err(error) => Finding { hint: error.hint(), ..Finding::missing(error.explain()) },
            },
            _ => found,
        };
        Row::new(check.name, row)
    });
    Report::new(treated.collect())
}

/// What checks look at.
struct Context<'a> {
    system: &'a System,
    /// Where the run will write.
    out: &'a Path,
}

/// Something that happens while the machine is being changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This is about to be done.
    Action(String),
    /// This was learnt on the way.
    Note(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action(text) | Self::Note(text) => f.write_str(text),
        }
    }
}

/// Tells the caller what happens.
struct Events<'a>(&'a mut dyn FnMut(Event));

impl<'a> Events<'a> {
    fn new(on_event: &'a mut dyn FnMut(Event)) -> Self {
        Self(on_event)
    }

    fn action(&mut self, text: impl Into<String>) {
        (self.0)(Event::Action(text.into()));
    }

    fn note(&mut self, text: impl Into<String>) {
        (self.0)(Event::Note(text.into()));
    }
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It was missing, and is there now.
    Fixed,
    /// A run works, but not as well as it could.
    Warn,
    /// A run cannot work.
    Missing,
}

impl Status {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fixed => "fixed",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }
}

/// What a look found.
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
        Self::missing("unknown while no engine answers").hint("see the row `engine`")
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
    /// What is there, or what is wrong. May end with indented lines of a log.
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
}

impl Report {
    fn new(rows: Vec<Row>) -> Self {
        let healthy = rows.iter().all(|row| row.status != Status::Missing);
        Self { version: REPORT_VERSION, healthy, rows }
    }
}

#[cfg(test)]
mod tests;
