//! Whether other work of the host kept a subject's programs from running, so that their time limits say nothing about them.
//!
//! Tests give programs seconds of wall-clock time. On a machine with many more runnable processes than processors, a program that
//! needs a tenth of its limit can meet it, which would turn the load of the host into a failure of the solver. A failed
//! verification of that kind is made once more on the same state, with more time.

use std::fs;
use std::future::Future;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::sandbox::{Engine, Sandbox};

/// Factor for all time limits of a verification that is made again.
pub(super) const PATIENCE: u32 = 5;

/// Time between two looks at the number of runnable processes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Mean number of runnable processes per processor from which on time limits mean nothing. Four trials at once on two processors
/// stay below it.
const CONTENDED: f64 = 4.0;
/// No test gives a program less time than this, so that none met its limit where each ended sooner.
const SHORTEST_LIMIT: Duration = Duration::from_secs(5);
/// Share of one processor. A container that had more was not kept from running, whatever the load; so no program can get more time
/// by making the host busy itself.
const SERVED: f64 = 0.5;
/// Used processor time in control groups of version 2 and 1 (kernel documentation, `cgroup-v2.rst` and `cpuacct.rst`).
const PROCESSOR_TIME: [&str; 2] = ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpuacct/cpuacct.usage"];
/// Larger than either.
const MAX_STAT: u64 = 4 << 10;

/// Times of the programs that tests started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    pub(super) total: Duration,
    pub(super) longest: Duration,
}

impl Calls {
    pub(super) fn add(&mut self, took: Duration) {
        self.total += took;
        self.longest = self.longest.max(took);
    }
}

/// What was seen of the host's processors during a verification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contention {
    /// Mean number of runnable processes of the host per processor.
    pub(super) runnable: f64,
    /// Processor time of the programs' container.
    pub(super) used: Duration,
}

impl Contention {
    /// Whether a program of `calls` may have met its time limit because it was kept from running. `cpus` is the container's share.
    pub(super) fn starved(self, calls: Calls, cpus: f64) -> bool {
        let share = self.used.as_secs_f64() / calls.total.as_secs_f64().max(f64::EPSILON);
        calls.longest >= SHORTEST_LIMIT && self.runnable >= CONTENDED && share < SERVED * cpus.min(1.0)
    }
}

/// Runs `work`, and looks at the host's processors meanwhile. `None` for an engine on another host, and where the kernel does not show
/// what is needed.
pub(super) async fn observed<T>(
    engine: &Engine,
    programs: &Sandbox,
    work: impl Future<Output = T>,
) -> (T, Option<Contention>) {
    if !engine.is_on_this_host() {
        return (work.await, None);
    }
    let before = processor_time(programs).await;
    let mut looks = Vec::new();
    let looking = async {
        loop {
            looks.extend(fs::read_to_string("/proc/loadavg").ok().and_then(|text| runnable(&text)));
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let result = tokio::select! {
        result = work => result,
        never = looking => never,
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let contention = match (before, processor_time(programs).await, mean(&looks)) {
        (Some(before), Some(after), Some(runnable)) => {
            Some(Contention { runnable: runnable / processors as f64, used: after.saturating_sub(before) })
        }
        _ => None,
    };
    (result, contention)
}

fn mean(looks: &[u32]) -> Option<f64> {
    let sum: f64 = looks.iter().copied().map(f64::from).sum();
    (!looks.is_empty()).then(|| sum / looks.len() as f64)
}

/// The number of runnable processes and threads in `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206`, its fourth field (proc(5)).
fn runnable(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

/// Processor time that a container has used.
async fn processor_time(sandbox: &Sandbox) -> Option<Duration> {
    for file in PROCESSOR_TIME {
        if let Ok(bytes) = sandbox.get(file, MAX_STAT).await {
            return parse_processor_time(&String::from_utf8(bytes).ok()?);
        }
    }
    None
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
    fn only_programs_that_were_kept_from_running_get_more_time() {
        let check = |runnable: f64, used: f64, longest: f64, cpus: f64, expect: bool| {
            let mut calls = Calls::default();
            calls.add(Duration::from_secs(1));
            calls.add(Duration::from_secs_f64(longest));
            let contention = Contention { runnable, used: Duration::from_secs_f64(used) };
            assert_eq!(contention.starved(calls, cpus), expect, "{contention:?}, {calls:?}, {cpus} cpus");
        };
        check(12.0, 1.0, 20.0, 1.0, true);
        // An ordinary load.
        check(3.0, 1.0, 20.0, 1.0, false);
        // It had a processor, and the load may be its own.
        check(12.0, 19.0, 20.0, 1.0, false);
        check(50.0, 15.0, 20.0, 4.0, false);
        // Half of half a processor.
        check(12.0, 6.0, 20.0, 0.5, false);
        check(12.0, 4.0, 20.0, 0.5, true);
        // No limit was met.
        check(12.0, 0.1, 4.0, 1.0, false);
        check(12.0, 0.0, 0.0, 1.0, false);
    }

    #[test]
    fn files_of_the_kernel_are_read() {
        let check = |text: &str, expect: Option<u32>| assert_eq!(runnable(text), expect, "{text:?}");
        check("0.20 0.18 0.12 1/80 11206\n", Some(1));
        check("24.01 9.18 0.12 57/812 11206\n", Some(57));
        check("", None);
        check("0.20 0.18 0.12 x/80 11206\n", None);

        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(parse_processor_time(text), expect.map(Duration::from_micros), "{text:?}");
        };
        check("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n", Some(1500));
        check("1500000\n", Some(1500));
        check("user_usec 1000\n", None);
        check("", None);
    }
}
