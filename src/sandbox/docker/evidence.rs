//! Why a container no longer answers: evidence from the engine, the host and the guest's exit.
//!
//! There are two possible mistakes. If a loss that the solver caused is blamed on the
//! infrastructure, a failure gets a second attempt. That must be impossible. If a loss that the
//! host caused is blamed on the solver, an honest solver fails. That must be rare. So where the
//! evidence has two readings, it counts against the solver, or blames nobody ([`Evidence::blame`]
//! is `None`).

use std::fs;
use std::time::Duration;

use bollard::models::ContainerState;
use bollard::query_parameters::{TopOptionsBuilder, WaitContainerOptionsBuilder};
use chrono::DateTime;
use futures_util::StreamExt as _;

use crate::guest::ending;
use crate::sandbox::connection::{Closed, Symptom};
use crate::sandbox::{ContainerId, EngineError, Evidence, Loss, SandboxError};

use super::state::EXIT_NOTED;
use super::{DockerEngine, watchdog};

/// Exit status of a process that was killed.
const KILLED: i64 = 128 + 9;
/// The engine's exit status for a container whose end it missed, because it was down itself.
const UNKNOWN_STATUS: i64 = 255;
/// Maximum time between an out-of-memory event and the exit that it caused. It is some 50 ms, and
/// longer for a busy engine.
const OOM_BEFORE_EXIT: Duration = Duration::from_secs(5);
/// Number of process listings of a silent container, and the time between two of them.
const LOOKS: usize = 4;
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// Load of the host's processors from which on a process with a low share may not run for seconds.
const SATURATED: f64 = 0.95;

impl DockerEngine {
    /// Finds out why a sandbox ended, if the host observed its end as `closed`.
    pub(in crate::sandbox) async fn why_lost(&self, id: &ContainerId, closed: Closed) -> SandboxError {
        let shared = &self.shared;
        let lost = |evidence, detail| SandboxError::Lost(Loss { evidence, detail });
        // A kill of ours, for the container's own limits, comes before all other evidence.
        if let Some(loss) = shared.live().get(id).and_then(|watched| watched.killed.clone()) {
            return SandboxError::Lost(loss);
        }
        if closed.symptom == Symptom::StreamEnded {
            // The stream ends a moment before the engine has recorded the exit.
            let options = WaitContainerOptionsBuilder::new().condition("not-running").build();
            let mut exit = Box::pin(shared.docker.wait_container(id.as_str(), Some(options)));
            // The answer is not needed, since the state is requested next.
            let _ = tokio::time::timeout(EXIT_NOTED, exit.next()).await;
        }
        let state = match shared.inspect_state(id.as_str()).await {
            Ok(state) => state,
            Err(EngineError::NoSuchContainer { .. }) => return lost(Evidence::Removed, closed.detail),
            Err(error) => return SandboxError::Engine(error),
        };
        // The watchdog may have killed the container meanwhile.
        if let Some(loss) = shared.live().get(id).and_then(|watched| watched.killed.clone()) {
            return SandboxError::Lost(loss);
        }
        let evidence = if state.paused == Some(true) {
            Evidence::Paused
        } else if state.running == Some(true) {
            match closed.symptom {
                Symptom::StreamEnded | Symptom::ClosedByUs => Evidence::StreamBroken,
                Symptom::Protocol => Evidence::Protocol,
                Symptom::Silent if self.host_is_busy(id, state.pid.unwrap_or_default()).await => {
                    Evidence::HostBusy
                }
                Symptom::Silent => Evidence::Silent,
            }
        } else {
            let events = match state.exit_code {
                Some(KILLED) => shared.oom_times(id).await,
                _ => Vec::new(),
            };
            match of_exit(&state, &events) {
                // The host promised the containers more memory than it has. This one may have
                // stayed within its own limit.
                Evidence::OutOfMemory if self.lacked_memory_of_host(id).await => Evidence::Unexplained,
                evidence => evidence,
            }
        };
        let status = state.exit_code.filter(|_| state.running != Some(true));
        let detail = match status {
            Some(status) => format!("exit status {status}; {}", closed.detail),
            None => closed.detail,
        };
        lost(evidence, detail)
    }

    /// Whether the kernel killed processes of the container because the host lacked memory, and
    /// none because of the container's own limit.
    async fn lacked_memory_of_host(&self, id: &ContainerId) -> bool {
        match self.shared.docker.inspect_container(id.as_str(), None).await {
            Ok(inspected) => self.shared.lacked_memory_of_host(&inspected.id.unwrap_or_default()).await,
            Err(_) => false,
        }
    }

    /// Why a write failed with ENOSPC. `None` if neither the container's own limit nor the host's
    /// disk is the cause. Then a file system in memory was full, which is the container's own.
    pub(in crate::sandbox) async fn why_full(&self, id: &ContainerId) -> Option<Loss> {
        let loss = watchdog::why_full(&self.shared, id).await?;
        tracing::warn!(container = %id, %loss, "disk full");
        Some(loss)
    }

    /// Whether the host lacks even the little processor time that the guest needs.
    async fn host_is_busy(&self, id: &ContainerId, guest: i64) -> bool {
        // The load of a remote host is unknown here.
        if !self.shared.is_on_this_host() {
            return false;
        }
        let Some(before) = processor_time() else { return false };
        let mut looks = Vec::new();
        for _ in 0..LOOKS {
            // One row for each thread. The main thread of a process may sleep while others work.
            let options = TopOptionsBuilder::new().ps_args("-eLo pid,stat,ni,cls").build();
            let Ok(top) = self.shared.docker.top_processes(id.as_str(), Some(options)).await else {
                return false;
            };
            looks.push(top.processes.unwrap_or_default());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let Some(after) = processor_time() else { return false };
        is_host_busy(before, after, guest, &looks)
    }
}

/// The evidence of the guest's exit. `oom_events` are the times of known out-of-memory events.
fn of_exit(state: &ContainerState, oom_events: &[i64]) -> Evidence {
    match state.exit_code {
        Some(KILLED) if ended_by_oom(state, oom_events) => Evidence::OutOfMemory,
        // Nothing inside a PID namespace can signal its process 1, or set its limits (see
        // `become_guest`).
        Some(KILLED | UNKNOWN_STATUS) => Evidence::KilledFromOutside,
        Some(status) if status == i64::from(ending::LIMIT) => Evidence::GuestLimit,
        Some(status) if status == i64::from(ending::PROTOCOL) => Evidence::Protocol,
        // The guest's input ended. Only the engine holds it, so the connection to the engine broke.
        Some(status) if status == i64::from(ending::HUNG_UP) => Evidence::StreamBroken,
        Some(_) | None => Evidence::Unexplained,
    }
}

/// Whether the kernel sent the SIGKILL because the container was at its memory limit.
///
/// The engine's flag only says that the OOM killer ever killed some process of the container.
/// Nothing in the container can send the SIGKILL that ended it. So if all recorded events are long
/// before the end, the signal came from outside. Without any event the flag decides. If a child's
/// event is within seconds of a kill from outside, the solver is blamed.
fn ended_by_oom(state: &ContainerState, oom_events: &[i64]) -> bool {
    let flagged = state.oom_killed == Some(true);
    let Some(last) = oom_events.iter().max() else { return flagged };
    let ended = state.finished_at.as_deref().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    match ended {
        Some(ended) => last + OOM_BEFORE_EXIT.as_secs().cast_signed() >= ended.timestamp(),
        None => true,
    }
}

/// Clock ticks of all processors since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessorTime {
    busy: u64,
    total: u64,
}

fn processor_time() -> Option<ProcessorTime> {
    parse_processor_time(&fs::read_to_string("/proc/stat").ok()?)
}

/// Reads the first line of `/proc/stat`: `cpu user nice system idle iowait irq softirq steal guest
/// guest_nice`. The last two are part of the first two.
fn parse_processor_time(stat: &str) -> Option<ProcessorTime> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = fields.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let total = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(ProcessorTime { busy: total - idle, total })
}

/// Whether the host was busy all the time, and only the guest was runnable in the container. Each
/// look is a table of `pid`, `stat`, `ni` and `cls` of all threads.
///
/// The guest must have the priority that the engine gave it. Root in a container can lower the
/// guest's priority, and then use up the container's processor time. The host is not busy then.
fn is_host_busy(before: ProcessorTime, after: ProcessorTime, guest: i64, looks: &[Vec<Vec<String>>]) -> bool {
    let total = after.total.saturating_sub(before.total);
    let busy = after.busy.saturating_sub(before.busy);
    let saturated = total > 0 && busy as f64 >= SATURATED * total as f64;
    let harmless = |row: &Vec<String>| {
        let [pid, stat, nice, class] = row.as_slice() else { return false };
        if pid.parse() == Ok(guest) {
            nice == "0" && class == "TS"
        } else {
            // The thread sleeps, or is a zombie.
            stat.starts_with(['S', 'Z', 'I'])
        }
    };
    let quiet = looks.iter().all(|look| !look.is_empty() && look.iter().all(harmless));
    saturated && !looks.is_empty() && quiet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_evidence() {
        // The container ended at second 100.
        let check = |exit_code: i64, oom_killed: bool, events: &[i64], expect: Evidence| {
            let state = ContainerState {
                exit_code: Some(exit_code),
                oom_killed: Some(oom_killed),
                finished_at: Some("1970-01-01T00:01:40.5Z".to_owned()),
                ..ContainerState::default()
            };
            assert_eq!(
                of_exit(&state, events),
                expect,
                "status {exit_code}, oom {oom_killed}, events {events:?}"
            );
        };
        check(137, false, &[], Evidence::KilledFromOutside);
        check(137, true, &[], Evidence::OutOfMemory);
        check(137, true, &[100], Evidence::OutOfMemory);
        check(137, true, &[10, 97], Evidence::OutOfMemory);
        check(137, true, &[101], Evidence::OutOfMemory);
        // The engine may set the flag late.
        check(137, false, &[100], Evidence::OutOfMemory);
        // A child ran out of memory, was killed, and the container continued.
        check(137, true, &[10, 60], Evidence::KilledFromOutside);
        check(255, false, &[], Evidence::KilledFromOutside);
        check(0, false, &[], Evidence::StreamBroken);
        check(0, true, &[], Evidence::StreamBroken);
        check(1, false, &[], Evidence::Unexplained);
        check(3, false, &[], Evidence::Protocol);
        check(4, false, &[], Evidence::GuestLimit);
        check(139, false, &[], Evidence::Unexplained);
    }

    #[test]
    fn only_an_idle_container_shows_that_the_host_is_busy() {
        let time = |busy, total| ProcessorTime { busy, total };
        let check = |busy: u64, looks: &[&[[&str; 4]]], expect: bool| {
            let rows = |look: &&[[&str; 4]]| look.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
            let owned: Vec<Vec<Vec<String>>> = looks.iter().map(rows).collect();
            assert_eq!(
                is_host_busy(time(1000, 5000), time(1000 + busy, 5100), 7, &owned),
                expect,
                "{busy} {looks:?}"
            );
        };
        let guest = ["7", "Ss", "0", "TS"];
        let idle = ["8", "S", "0", "TS"];
        check(100, &[&[guest, idle], &[guest]], true);
        check(100, &[&[["7", "R", "0", "TS"]]], true);
        check(50, &[&[guest, idle]], false);
        check(100, &[&[guest, ["8", "R", "0", "TS"]]], false);
        check(100, &[&[guest, idle], &[guest, ["9", "RN", "19", "TS"]]], false);
        check(100, &[&[guest, ["8", "D", "0", "TS"]]], false);
        check(100, &[&[guest, ["8", "Sl", "0", "TS"], ["8", "Dl", "0", "TS"]]], false);
        check(100, &[&[["7", "S", "19", "TS"]]], false);
        check(100, &[&[["7", "S", "-", "IDL"]]], false);
        check(100, &[&[["7", "S", "0", "B"]]], false);
        check(100, &[], false);
        check(100, &[&[]], false);
    }

    #[test]
    fn processor_time_is_read() {
        let stat = "cpu  10 1 20 300 40 5 6 7 2 1\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse_processor_time(stat), Some(ProcessorTime { busy: 49, total: 389 }));
        for bad in ["", "cpu x", "cpu 1 2 3"] {
            assert_eq!(parse_processor_time(bad), None, "{bad:?}");
        }
    }
}
