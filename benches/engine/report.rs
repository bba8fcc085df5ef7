//! The measurements, before formatting.

use std::time::Duration;

use serde::Serialize;

use crate::machine::Machine;
use crate::sample::Sample;

/// Version of the JSON.
const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    version: u32,
    pub(crate) machine: Machine,
    pub(crate) sections: Vec<Section>,
    pub(crate) seconds: f64,
    /// Load average when everything had been measured.
    pub(crate) load_after: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) about: String,
    /// Groups of rows. A group has a measurement of termsmith, and those that it is compared with.
    pub(crate) groups: Vec<Vec<Line>>,
    pub(crate) notes: Vec<String>,
    pub(crate) seconds: f64,
}

/// One row of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) who: Who,
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) min: f64,
    /// Number of measurements.
    pub(crate) n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) aim: Option<Aim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Who {
    Termsmith,
    Engine,
    Harbor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "1/h")]
    PerHour,
    #[serde(rename = "MiB")]
    Mebibytes,
    #[serde(rename = "count")]
    Count,
}

/// A comparison of two lines, by medians unless stated otherwise.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ratio {
    /// Ours is so many times lower, by medians and at the 99th percentile.
    TimesLower { p50: f64, p99: f64 },
    /// Ours as a multiple of this line.
    Multiple(f64),
    /// This line as a multiple of the group's first.
    OfFirst(f64),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Aim {
    pub(crate) text: &'static str,
    pub(crate) met: bool,
}

impl Report {
    pub(crate) fn new(machine: Machine, sections: Vec<Section>, took: Duration) -> Self {
        let load_after = crate::machine::load();
        Self { version: VERSION, machine, sections, seconds: took.as_secs_f64(), load_after }
    }
}

impl Section {
    pub(crate) fn new(name: &'static str, about: impl Into<String>) -> Self {
        Self { name, about: about.into(), groups: Vec::new(), notes: Vec::new(), seconds: 0.0 }
    }
}

impl Line {
    pub(crate) fn new(who: Who, what: impl Into<String>, unit: Unit, sample: &Sample) -> Self {
        Self {
            who,
            what: what.into(),
            unit,
            p50: sample.p50(),
            p99: sample.p99(),
            min: sample.min(),
            n: sample.len(),
            ratio: None,
            aim: None,
        }
    }

    /// A single figure.
    pub(crate) fn single(who: Who, what: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self::new(who, what, unit, &Sample::of([value]))
    }

    /// Adds how many times lower `ours` is.
    pub(crate) fn times_lower(mut self, ours: &Self) -> Self {
        self.ratio = Some(Ratio::TimesLower { p50: self.p50 / ours.p50, p99: self.p99 / ours.p99 });
        self
    }

    /// Compares `ours` as a multiple of this line.
    pub(crate) fn multiple(mut self, ours: &Self) -> Self {
        self.ratio = Some(Ratio::Multiple(ours.p50 / self.p50));
        self
    }

    /// Compares this line with the group's `first`.
    pub(crate) fn of_first(mut self, first: &Self) -> Self {
        self.ratio = Some(Ratio::OfFirst(self.p50 / first.p50));
        self
    }

    /// Adds an aim. `holds` gets the median, or the ratio if there is one, and says whether it
    /// meets the aim.
    pub(crate) fn aim(mut self, text: &'static str, holds: impl FnOnce(f64) -> bool) -> Self {
        let value = match self.ratio {
            Some(Ratio::TimesLower { p50: ratio, .. } | Ratio::Multiple(ratio) | Ratio::OfFirst(ratio)) => {
                ratio
            }
            None => self.p50,
        };
        self.aim = Some(Aim { text, met: holds(value) });
        self
    }
}
