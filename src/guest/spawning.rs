//! Starts children. `Command::spawn` returns when the child has executed its program. Another
//! process of the same user can stop the child before that, and so block the guest for ever. A
//! second thread kills such a child, and does nothing else.

use std::fs;
use std::io;
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::sys;
use super::table;

/// A child may be stopped for this long before it executes its program. It has no reason to be.
const MAX_STOPPED: Duration = Duration::from_secs(1);
/// Interval between looks at a start that takes long.
const INTERVAL: Duration = Duration::from_millis(250);
/// Stack of the second thread. It reads a few small files.
const STACK_BYTES: usize = 128 * 1024;

static STATE: Mutex<State> = Mutex::new(State { since: None, killed: false, waits: false });
/// Held during a start. The guest starts one child at a time, but its tests run in many threads.
static TURN: Mutex<()> = Mutex::new(());
static STARTED: Condvar = Condvar::new();

#[derive(Debug)]
struct State {
    /// When the current start began.
    since: Option<Instant>,
    /// Whether the child was killed.
    killed: bool,
    /// Whether the thread waits for the next start. Only then it is woken: starts are short, so one
    /// wake-up for each would cost too much.
    waits: bool,
}

/// A child that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) pid: i32,
    /// It was stopped before it executed its program, and so was killed.
    pub(super) was_stopped: bool,
}

/// Starts the thread. It lasts as long as the process. To be called before other processes can use
/// up the sandbox's limit.
pub(super) fn watch() -> io::Result<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(kill_stopped).map(drop)
}

/// Starts a child. Starts wait for each other, since [`STATE`] describes one.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut state = state();
    (state.since, state.killed) = (Some(Instant::now()), false);
    if state.waits {
        STARTED.notify_one();
    }
    drop(state);
    let spawned = command.spawn();
    let mut state = self::state();
    state.since = None;
    Ok(Child { pid: spawned?.id().cast_signed(), was_stopped: state.killed })
}

fn kill_stopped() {
    let mut state = state();
    loop {
        let Some(since) = state.since else {
            state.waits = true;
            state = STARTED.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waits = false;
            continue;
        };
        if since.elapsed() >= MAX_STOPPED {
            for pid in stopped_copies() {
                sys::send(pid, sys::SIGKILL);
                state.killed = true;
            }
        }
        state = STARTED.wait_timeout(state, INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Children that were stopped before they executed their program. They still have this process's
/// command line, which `exec` replaces.
fn stopped_copies() -> impl Iterator<Item = i32> {
    let own = std::process::id().cast_signed();
    let command_line = fs::read("/proc/self/cmdline").ok();
    table::processes().into_iter().filter_map(move |entry| {
        let is_copy = || fs::read(format!("/proc/{}/cmdline", entry.pid)).ok() == command_line;
        (entry.parent == own && table::is_stopped(entry.pid) && is_copy()).then_some(entry.pid)
    })
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_stopped_before_it_runs_blocks_nobody() {
        watch().unwrap();
        let mut command = Command::new("/bin/true");
        sys::stop_before_exec(&mut command);
        for _ in 0..2 {
            let child = spawn(&mut command).unwrap();
            assert!(child.was_stopped);
            // SIGKILL ended it.
            assert_eq!(sys::wait_for(child.pid), sys::Change::Ended(sys::Exit::Signal(sys::SIGKILL)));
        }
        assert!(!spawn(&mut Command::new("/bin/true")).unwrap().was_stopped);
    }
}
