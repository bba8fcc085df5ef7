//! Limits and Linux capabilities of a container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resource and time limits of one task's containers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU cores.
    pub cpus: f64,
    /// Memory in MiB, without swap.
    pub memory_mb: u32,
    /// Disk that the container may write, in MiB.
    pub storage_mb: u32,
    /// Number of processes and threads.
    pub pids: u32,
    /// Seconds for building the image.
    pub build_timeout_sec: u32,
    /// Seconds for one solver.
    pub agent_timeout_sec: u32,
    /// Seconds for one verification.
    pub verifier_timeout_sec: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpus: 1.0,
            memory_mb: 1024,
            storage_mb: 2048,
            pids: 256,
            build_timeout_sec: 900,
            agent_timeout_sec: 600,
            verifier_timeout_sec: 300,
        }
    }
}

/// Which Linux capabilities a solver's container keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID, KILL, NET_BIND_SERVICE.
    #[default]
    Plain,
    /// `plain` and NET_ADMIN, in a network namespace of its own.
    Net,
    /// The engine's default capabilities, including set-user-id programs. Imported tasks may rely
    /// on them.
    Stock,
}
