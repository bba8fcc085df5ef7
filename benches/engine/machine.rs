//! The machine on which the measurements were made.

use std::fmt;
use std::fs;
use std::thread::available_parallelism;

use serde::Serialize;

use crate::bare::Bare;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The build profile: only times of `release` are meaningful.
    profile: &'static str,
    cores: usize,
    memory_mib: f64,
    load: String,
    /// Name and version.
    engine: String,
    storage: String,
    cgroup: String,
}

impl Machine {
    pub(crate) async fn look(bare: &Bare) -> anyhow::Result<Self> {
        let info = bare.docker.info().await?;
        let version = bare.docker.version().await?;
        let is_podman = version
            .components
            .iter()
            .flatten()
            .any(|component| component.name.to_ascii_lowercase().contains("podman"));
        Ok(Self {
            profile: if cfg!(debug_assertions) { "dev" } else { "release" },
            cores: available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: meminfo("MemTotal").unwrap_or(f64::NAN),
            load: load(),
            engine: format!(
                "{} {}",
                if is_podman { "podman" } else { "docker" },
                version.version.unwrap_or_default()
            ),
            storage: info.driver.unwrap_or_default(),
            cgroup: info.cgroup_version.map_or_else(String::new, |version| version.to_string()),
        })
    }

    pub(crate) fn engine_name(&self) -> &str {
        self.engine.split_whitespace().next().unwrap_or("engine")
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "termsmith {} ({} build) · {} cores, {:.1} GiB, load average {} · {}, {}, cgroup v{}",
            env!("CARGO_PKG_VERSION"),
            self.profile,
            self.cores,
            self.memory_mib / 1024.0,
            self.load,
            self.engine,
            self.storage,
            self.cgroup
        )
    }
}

/// The load averages of 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// A line of `/proc/meminfo`, in MiB.
pub(crate) fn meminfo(name: &str) -> Option<f64> {
    kib_line(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// The most memory that process `pid` has held, in MiB; `None` once it has ended.
pub(crate) fn peak_memory(pid: u32) -> Option<f64> {
    kib_line(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM")
}

/// The proportional set size of `pid` in MiB. `None` if it cannot be read.
pub(crate) fn proportional_memory(pid: u32) -> Option<f64> {
    kib_line(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss")
}

/// The processes that `pid` has started and that live.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn kib_line(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: f64 = rest.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib / 1024.0)
}
