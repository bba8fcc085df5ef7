//! Limits in a spec or a recipe, which override other limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::source::{Source, at};
use crate::model::Limits;

/// The keys of [`Limits`]. Each is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitOverrides {
    /// CPU cores. Must be a whole number, because Harbor 0.24 reads no fractions.
    pub cpus: Option<f64>,
    /// Memory in MiB.
    pub memory_mb: Option<u32>,
    /// Disk space that the container may write, in MiB.
    pub storage_mb: Option<u32>,
    /// Number of processes and threads.
    pub pids: Option<u32>,
    /// Seconds for building the image.
    pub build_timeout_sec: Option<u32>,
    /// Seconds for one solver.
    pub agent_timeout_sec: Option<u32>,
    /// Seconds for one verification.
    pub verifier_timeout_sec: Option<u32>,
}

impl LimitOverrides {
    /// These limits. Values of `base` replace missing ones.
    pub fn over(&self, base: &Limits) -> Limits {
        Limits {
            cpus: self.cpus.unwrap_or(base.cpus),
            memory_mb: self.memory_mb.unwrap_or(base.memory_mb),
            storage_mb: self.storage_mb.unwrap_or(base.storage_mb),
            pids: self.pids.unwrap_or(base.pids),
            build_timeout_sec: self.build_timeout_sec.unwrap_or(base.build_timeout_sec),
            agent_timeout_sec: self.agent_timeout_sec.unwrap_or(base.agent_timeout_sec),
            verifier_timeout_sec: self.verifier_timeout_sec.unwrap_or(base.verifier_timeout_sec),
        }
    }

    /// Reports limits under which nothing can run, and limits that Harbor cannot read.
    pub(super) fn check(&self, source: &Source<'_>) -> Vec<Problem> {
        let whole = [
            ("memory_mb", self.memory_mb),
            ("storage_mb", self.storage_mb),
            ("pids", self.pids),
            ("build_timeout_sec", self.build_timeout_sec),
            ("agent_timeout_sec", self.agent_timeout_sec),
            ("verifier_timeout_sec", self.verifier_timeout_sec),
        ];
        let zero = whole.into_iter().filter(|(_, limit)| *limit == Some(0)).map(|(key, _)| key);
        let is_positive = |cpus: &f64| cpus.is_finite() && *cpus > 0.0;
        let cpus = self.cpus.filter(|cpus| !is_positive(cpus)).map(|_| "cpus");
        let mut problems: Vec<_> = zero
            .chain(cpus)
            .map(|key| {
                source
                    .problem(at!["limits", key], format!("limit `{key}` is not a positive number"))
                    .hint("remove the key to use the default")
            })
            .collect();
        if self.cpus.is_some_and(|cpus| is_positive(&cpus) && cpus.fract() != 0.0) {
            let problem =
                source.problem(at!["limits", "cpus"], "limit `cpus` is not a whole number".to_owned());
            problems.push(problem.hint("Harbor 0.24 reads whole cores only"));
        }
        problems
    }
}
