//! Host CPU load. On a busy host a slow program proves nothing.

use std::fs;

use bollard::query_parameters::TopOptionsBuilder;

use crate::sandbox::{ContainerId, HostLoad};

use super::{DockerEngine, Shared};

impl Shared {
    /// Runnable threads of the host now. `None` if the engine is remote.
    pub(super) fn host_load(&self) -> Option<HostLoad> {
        if !self.is_on_this_host() {
            return None;
        }
        let runnable = runnable(&fs::read_to_string("/proc/loadavg").ok()?)?;
        // `available_parallelism` would be this process's share of the processors.
        let processors = processors(&fs::read_to_string("/proc/stat").ok()?);
        (processors > 0).then_some(HostLoad { runnable, processors })
    }
}

impl DockerEngine {
    /// Runnable threads of a container now.
    pub(in crate::sandbox) async fn runnable_threads(&self, id: &ContainerId) -> Option<u32> {
        // One row for each thread.
        let options = TopOptionsBuilder::new().ps_args("-eLo pid,stat").build();
        let top = self.shared.docker.top_processes(id.as_str(), Some(options)).await.ok()?;
        let rows = top.processes.unwrap_or_default();
        let running = rows.iter().filter(|row| row.get(1).is_some_and(|stat| stat.starts_with('R')));
        u32::try_from(running.count()).ok()
    }
}

/// The runnable threads of the host: the fourth field of `/proc/loadavg`, e.g. `1/80` in
/// `0.20 0.18 0.12 1/80 11206` (proc(5)).
fn runnable(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

/// The number of lines `cpu0`, `cpu1`, … in `/proc/stat`.
fn processors(stat: &str) -> u32 {
    let is_one = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    u32::try_from(stat.lines().filter(is_one).count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let check = |text: &str, expect: Option<u32>| assert_eq!(runnable(text), expect, "{text:?}");
        check("0.20 0.18 0.12 1/80 11206\n", Some(1));
        check("24.01 9.18 0.12 57/812 11206\n", Some(57));
        check("", None);
        check("0.20 0.18 0.12 x/80 11206\n", None);

        let check = |text: &str, expect: u32| assert_eq!(processors(text), expect, "{text:?}");
        check("cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n", 2);
        check("intr 5\n", 0);
    }
}
