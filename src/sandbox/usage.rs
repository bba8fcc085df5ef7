//! Reads a container's use of resources, as its own control group counts it.

use std::time::Duration;

use super::Sandbox;

/// Files with the memory's high-water mark, in control groups of version 2 and 1 (kernel
/// documentation, `cgroup-v2.rst` and `memory.rst`).
const PEAK_MEMORY: [&str; 2] =
    ["/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"];
/// Files with the used processor time, in control groups of version 2 and 1 (kernel documentation,
/// `cgroup-v2.rst` and `cpuacct.rst`).
const PROCESSOR_TIME: [&str; 2] = ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpuacct/cpuacct.usage"];
/// Maximum size of these files.
const MAX_BYTES: u64 = 4 << 10;

impl Sandbox {
    /// The kernel's high-water mark of the container's memory in bytes. `None` if the container
    /// does not see its control group.
    pub async fn peak_memory(&self) -> Option<u64> {
        self.first_of(PEAK_MEMORY).await?.trim().parse().ok()
    }

    /// Processor time that the container has used. `None` if the container does not see its control
    /// group.
    pub async fn processor_time(&self) -> Option<Duration> {
        parse_processor_time(&self.first_of(PROCESSOR_TIME).await?)
    }

    async fn first_of(&self, files: [&str; 2]) -> Option<String> {
        for file in files {
            if let Ok(bytes) = self.get(file, MAX_BYTES).await {
                return String::from_utf8(bytes).ok();
            }
        }
        None
    }
}

/// Reads `usage_usec` of version 2, or the nanoseconds of version 1.
fn parse_processor_time(text: &str) -> Option<Duration> {
    match text.lines().find_map(|line| line.strip_prefix("usage_usec ")) {
        Some(micros) => micros.trim().parse().ok().map(Duration::from_micros),
        None => text.trim().parse().ok().map(Duration::from_nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_processor_time_is_read() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(parse_processor_time(text), expect.map(Duration::from_micros), "{text:?}");
        };
        check("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n", Some(1500));
        check("1500000\n", Some(1500));
        check("user_usec 1000\n", None);
        check("", None);
    }
}
