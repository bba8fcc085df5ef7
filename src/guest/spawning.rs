//! Starting a child. `Command::spawn` returns when the child has executed its program, so a child that another process stops before that would
//! block the guest for ever: a process of the same user can, and one that stops everything again and again does. A second thread, which
//! does nothing else, kills such a child.

use std::fs;
use std::io;
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::sys;
use super::table;

/// Time for which a child may be stopped before it executes its program. There is no reason to stop it there.
const MAX_STOPPED: Duration = Duration::from_secs(1);
/// Interval at which a start that lasts is looked at.
const INTERVAL: Duration = Duration::from_millis(250);
/// Stack of the thread: it reads a few small files.
const STACK_BYTES: usize = 128 * 1024;

static STATE: Mutex<State> = Mutex::new(State { since: None, killed: false, waits: false });
/// Held during a start. The guest starts one child at a time. Its tests are threads of one process.
static TURN: Mutex<()> = Mutex::new(());
static BEGUN: Condvar = Condvar::new();

#[derive(Debug)]
struct State {
    /// When the current start began.
    since: Option<Instant>,
    /// Whether its child was killed.
    killed: bool,
    /// Whether the thread waits for the next start. It is woken only then: a start is too short for one wake-up each.
    waits: bool,
}

/// A child that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) pid: i32,
    /// It was stopped before it executed its program, and killed.
    pub(super) was_stopped: bool,
}

/// Starts the thread, which lasts as long as the process. To be called before any other process could use up the sandbox's limit.
pub(super) fn watch() -> io::Result<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(kill_stopped).map(drop)
}

/// Starts a child. Starts follow each other, since [`STATE`] describes one.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut state = state();
    (state.since, state.killed) = (Some(Instant::now()), false);
    if state.waits {
        BEGUN.notify_one();
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
            state = BEGUN.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waits = false;
            continue;
        };
        if since.elapsed() >= MAX_STOPPED {
            for pid in stopped_copies() {
                sys::send(pid, sys::SIGKILL);
                state.killed = true;
            }
        }
        state = BEGUN.wait_timeout(state, INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Children of this process that are stopped and still have its command line: `exec` replaces that.
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
            // SIGKILL is what ended it.
            assert_eq!(sys::wait_for(child.pid), sys::Change::Ended(sys::Exit::Signal(sys::SIGKILL)));
        }
        assert!(!spawn(&mut Command::new("/bin/true")).unwrap().was_stopped);
    }
}
