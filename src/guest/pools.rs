//! Finds out whose limit a failed start met: the container's own, or one that all containers of the
//! host share.

use std::fs;
use std::io;

use super::MAX_TERMINALS;
use super::frame::Limit;

/// The kernel lists a container's terminals here. An entry disappears when the terminal's master
/// end is closed. While the other end is open, the terminal still counts.
const TERMINALS: &str = "/dev/pts";
/// The terminals of the host: how many are in use, the limit, and how many only the host's own
/// `/dev/pts` may use (`Documentation/filesystems/devpts.rst`).
const POOL: [&str; 3] =
    ["/proc/sys/kernel/pty/nr", "/proc/sys/kernel/pty/max", "/proc/sys/kernel/pty/reserve"];
/// This many terminals may have been closed since the host had none left.
const CLOSED_SINCE: u64 = 64;
/// Files that say how often the container met its limit of processes, for cgroup v2 and v1.
const PROCESSES: [&str; 2] = ["/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"];

const EAGAIN: i32 = 11;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

/// The kind of start that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Process,
    /// A process on a new terminal.
    Terminal,
}

/// Whose limit a failed start met.
pub(super) fn limit_of(error: &io::Error, start: Start) -> Limit {
    let terminals =
        || fs::read_dir(TERMINALS).ok().map(|entries| entries.flatten().filter(is_terminal).count());
    let processes = || PROCESSES.iter().find_map(|path| times_met(&fs::read_to_string(path).ok()?));
    let full = || {
        let [used, most, reserved] =
            POOL.map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
        Some(used? + reserved? + CLOSED_SINCE >= most?)
    };
    judge(error.raw_os_error().unwrap_or_default(), start, terminals, full, processes)
}

/// `terminals` counts those of the container. `full` says whether the host has none left.
/// `processes` is how often the container met its limit of processes.
fn judge(
    errno: i32,
    start: Start,
    terminals: impl FnOnce() -> Option<usize>,
    full: impl FnOnce() -> Option<bool>,
    processes: impl FnOnce() -> Option<u64>,
) -> Limit {
    let own = |is_own: Option<bool>| match is_own {
        Some(true) => Limit::Own,
        Some(false) => Limit::Host,
        None => Limit::Unknown,
    };
    match (errno, start) {
        (ENOSPC, Start::Terminal) => own(match terminals() {
            Some(held) if held >= MAX_TERMINALS as usize => Some(true),
            Some(_) => full().map(|full| !full),
            None => None,
        }),
        (EAGAIN, Start::Process | Start::Terminal) => own(processes().map(|met| met > 0)),
        // This is the limit of one process, i.e. of the guest.
        (EMFILE, _) => Limit::Own,
        // This is the limit of the whole host.
        (ENFILE, _) => Limit::Host,
        _ => Limit::Unknown,
    }
}

/// A terminal's name is a number. `ptmx` lies beside them.
fn is_terminal(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

/// Reads a line `max N`.
fn times_met(events: &str) -> Option<u64> {
    events.lines().find_map(|line| line.strip_prefix("max "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_containers_own_or_the_hosts() {
        use Start::{Process, Terminal};
        let check =
            |errno: i32, start: Start, terminals: Option<usize>, processes: Option<u64>, expect: Limit| {
                let found = judge(errno, start, || terminals, || Some(true), || processes);
                assert_eq!(found, expect, "{errno} {start:?} {terminals:?} {processes:?}");
            };
        // Another container took all terminals of the host. This one holds two.
        check(ENOSPC, Terminal, Some(2), Some(0), Limit::Host);
        check(ENOSPC, Terminal, Some(63), Some(0), Limit::Host);
        // The host has terminals left. So the container holds ends of terminals that have no entry.
        let held = |full| judge(ENOSPC, Terminal, || Some(0), || full, || Some(0));
        assert_eq!([Some(false), Some(true), None].map(held), [Limit::Own, Limit::Host, Limit::Unknown]);
        check(ENOSPC, Terminal, Some(64), Some(0), Limit::Own);
        check(ENOSPC, Terminal, Some(3000), Some(0), Limit::Own);
        check(ENOSPC, Terminal, None, Some(0), Limit::Unknown);
        // A full disk.
        check(ENOSPC, Process, Some(2), Some(0), Limit::Unknown);
        check(EAGAIN, Process, Some(2), Some(7), Limit::Own);
        check(EAGAIN, Terminal, Some(2), Some(0), Limit::Host);
        check(EAGAIN, Process, Some(2), None, Limit::Unknown);
        check(EMFILE, Terminal, None, None, Limit::Own);
        check(ENFILE, Process, None, None, Limit::Host);
        // No such program.
        check(2, Process, Some(0), Some(9), Limit::Unknown);
    }

    #[test]
    fn met_limits_are_read() {
        for (events, expect) in [("max 0\n", Some(0)), ("max 12\n", Some(12)), ("", None), ("maxi 3\n", None)]
        {
            assert_eq!(times_met(events), expect, "{events:?}");
        }
    }
}
