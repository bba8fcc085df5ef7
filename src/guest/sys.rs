//! All foreign calls of the guest, some twenty. The guest has no dependencies, so it does not use
//! the crate `libc`.

#![expect(unsafe_code, reason = "system calls that the standard library does not offer")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

pub(super) const SIGKILL: i32 = 9;
/// The last real-time signal. It has no standard use. Here it interrupts the shell's driver.
pub(super) const SIGRTMAX: i32 = 64;
const SIGBUS: i32 = 7;
const SIGSEGV: i32 = 11;
const SIGPIPE: i32 = 13;
const SIGCHLD: i32 = 17;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

pub(super) const POLLIN: i16 = 1;
pub(super) const POLLOUT: i16 = 4;

pub(super) const ELOOP: i32 = 40;
pub(super) const O_NONBLOCK: i32 = 0o4000;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
pub(super) const O_NOFOLLOW: i32 = 0o400_000;
#[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
pub(super) const O_NOFOLLOW: i32 = 0o100_000;

const O_RDWR: i32 = 2;
const O_NOCTTY: i32 = 0o400;
const O_CLOEXEC: i32 = 0o2_000_000;
const F_GETFL: i32 = 3;
const F_SETFL: i32 = 4;
const F_DUPFD_CLOEXEC: i32 = 1030;
const WNOHANG: i32 = 1;
const WUNTRACED: i32 = 2;
const WCONTINUED: i32 = 8;
const PR_SET_DUMPABLE: i32 = 4;
const PR_SET_CHILD_SUBREAPER: i32 = 36;
const FIONREAD: u64 = 0x541B;
const TCGETS: u64 = 0x5401;
const TIOCGPGRP: u64 = 0x540F;
/// `c_lflag`: canonical mode (input by line).
const ICANON: u32 = 2;
const TIOCSCTTY: u64 = 0x540E;
const TIOCSWINSZ: u64 = 0x5414;
const TIOCSPTLCK: u64 = 0x4004_5431;
const TIOCGPTPEER: u64 = 0x5441;

/// The first descriptor after the standard streams.
const FIRST_UNUSUAL_FD: u32 = 3;
/// For `setresgid`: leave this id as it is.
const UNCHANGED: u32 = u32::MAX;
/// Any group but the guest's own.
const GUEST_SAVED_GROUP: u32 = 65_534;
/// The guest's own streams get at least this number, since children need 0, 1 and 2.
const LOWEST_OWN_FD: i32 = 10;

/// `oom_score_adj` of children: the kernel kills them before the guest. Raising it needs no
/// privilege.
const CHILD_OOM_SCORE: &[u8] = b"500";

/// `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct PollFd {
    pub(super) fd: RawFd,
    pub(super) events: i16,
    pub(super) revents: i16,
}

/// `struct winsize`.
#[repr(C)]
struct WinSize {
    rows: u16,
    cols: u16,
    x_pixels: u16,
    y_pixels: u16,
}

/// The kernel's `struct termios`.
#[repr(C)]
#[derive(Default)]
struct Termios {
    input: u32,
    output: u32,
    control: u32,
    local: u32,
    line: u8,
    characters: [u8; 19],
}

unsafe extern "C" {
    fn poll(fds: *mut PollFd, count: u64, timeout_ms: i32) -> i32;
    fn prctl(option: i32, ...) -> i32;
    fn fcntl(fd: i32, command: i32, ...) -> i32;
    fn ioctl(fd: i32, request: u64, ...) -> i32;
    fn open(path: *const std::ffi::c_char, flags: i32, ...) -> i32;
    fn close(fd: i32) -> i32;
    fn write(fd: i32, bytes: *const u8, count: usize) -> isize;
    fn close_range(first: u32, last: u32, flags: u32) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
    fn setsid() -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn signal(number: i32, handler: usize) -> usize;
    fn umask(mask: u32) -> u32;
    fn _exit(status: i32) -> !;
    fn setgroups(count: usize, groups: *const u32) -> i32;
    fn setgid(gid: u32) -> i32;
    fn setuid(uid: u32) -> i32;
    fn setresgid(real: u32, effective: u32, saved: u32) -> i32;
    fn __errno_location() -> *mut i32;
    fn fchown(fd: i32, uid: u32, gid: u32) -> i32;
}

/// Writes a line to standard error and ends the guest. It allocates nothing, since there may be no
/// memory.
pub(super) fn exit_with(words: &[u8], status: i32) -> ! {
    // SAFETY: plain calls. The bytes are valid for the call. A failed write cannot be reported.
    unsafe {
        write(2, words.as_ptr(), words.len());
        _exit(status)
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes this process the first process of a sandbox. No other code may have run before.
pub(super) fn become_guest() -> io::Result<()> {
    // SAFETY: plain calls with integer arguments. `SIG_IGN` is a valid disposition.
    unsafe {
        // Root in the container lacks SYS_PTRACE. So it cannot open `/proc/1/fd` or `/proc/1/mem`
        // of a process that is not dumpable.
        check(prctl(PR_SET_DUMPABLE, 0u64, 0u64, 0u64, 0u64))?;
        // Without a PID namespace (process engine), orphans must get the guest as their parent too.
        check(prctl(PR_SET_CHILD_SUBREAPER, 1u64, 0u64, 0u64, 0u64))?;
        // Descriptors of the parent must not reach children. An old kernel refuses the call; that
        // is tolerated.
        close_range(FIRST_UNUSUAL_FD, u32::MAX, 0);
        // A reader that disconnects is an error of that write. It must not end the sandbox.
        signal(SIGPIPE, SIG_IGN);
        // The runtime handles these two to report stack overflows. Inside a namespace, a signal
        // that process 1 handles can be sent to it. The kernel discards the others.
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        // Root in the container could set `RLIMIT_CPU` of process 1 by `prlimit(2)`. The kernel
        // would then end it by a SIGKILL that looks like one from outside. `prlimit` demands that
        // the caller's group equals all three groups of the target. The guest has two different
        // groups, so no caller matches. Children are not affected: `exec` copies the effective
        // group to the saved one. Without CAP_SETGID (process engine of an ordinary user) the call
        // fails, and nothing depends on it.
        setresgid(UNCHANGED, UNCHANGED, GUEST_SAVED_GROUP);
    }
    Ok(())
}

/// Moves a standard stream to a descriptor that children do not inherit, and returns it.
pub(super) fn take_stream(fd: RawFd) -> io::Result<File> {
    // SAFETY: F_DUPFD_CLOEXEC returns a new descriptor that nobody else owns.
    let file = unsafe { File::from_raw_fd(check(fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_OWN_FD))?) };
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open. The standard library treats 0 to 2 as borrowed, so
    // replacing one is sound.
    check(unsafe { dup2(null.as_raw_fd(), fd) })?;
    set_nonblocking(&file)?;
    Ok(file)
}

/// Makes reads and writes return `WouldBlock` instead of blocking.
pub(super) fn set_nonblocking(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: plain calls on an open descriptor.
    unsafe {
        let flags = check(fcntl(fd.as_raw_fd(), F_GETFL))?;
        check(fcntl(fd.as_raw_fd(), F_SETFL, flags | O_NONBLOCK))?;
    }
    Ok(())
}

/// Number of bytes that can be read now. 0 after an error.
pub(super) fn readable_bytes(fd: &impl AsRawFd) -> usize {
    let mut count: i32 = 0;
    // SAFETY: FIONREAD writes one int. The pointer is valid for the call.
    let result = unsafe { ioctl(fd.as_raw_fd(), FIONREAD, &raw mut count) };
    if result < 0 { 0 } else { usize::try_from(count).unwrap_or(0) }
}

/// Sleeps until a descriptor is ready, or until `until`.
pub(super) fn wait(fds: &mut [PollFd], until: Option<Instant>) {
    let timeout = match until {
        None => -1,
        Some(until) => {
            // Rounded up. Otherwise the loop would spin during the last millisecond.
            let left = until.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
            i32::try_from(left.as_millis()).unwrap_or(i32::MAX)
        }
    };
    // SAFETY: the slice is valid for its length. After a failure (a signal) the caller checks
    // everything again, as after success.
    unsafe { poll(fds.as_mut_ptr(), fds.len() as u64, timeout) };
}

/// Write end of the pipe of [`on_child_exit`].
static CHILD_EXIT_PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn child_exited(_signal: i32) {
    // SAFETY: `write` is async-signal-safe, and `errno` is thread-local. The pipe does not block:
    // if it is full, the loop wakes up anyway. The interrupted code may be about to read its own
    // `errno`, so that is restored.
    unsafe {
        let errno = *__errno_location();
        write(CHILD_EXIT_PIPE.load(Ordering::Relaxed), b"c".as_ptr(), 1);
        *__errno_location() = errno;
    }
}

/// A descriptor that becomes readable when a child ends, stops or continues.
pub(super) fn on_child_exit() -> io::Result<io::PipeReader> {
    let (reader, writer) = io::pipe()?;
    set_nonblocking(&reader)?;
    set_nonblocking(&writer)?;
    // The handler writes to it until the process ends, so nobody owns it.
    CHILD_EXIT_PIPE.store(OwnedFd::from(writer).into_raw_fd(), Ordering::Relaxed);
    // SAFETY: the handler only calls `write`, which is async-signal-safe.
    unsafe { signal(SIGCHLD, child_exited as extern "C" fn(i32) as usize) };
    Ok(reader)
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Status(i32),
    Signal(i32),
}

/// A change in the state of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Ended(Exit),
    /// It is stopped (e.g. by `SIGSTOP`), and does nothing until it is continued.
    Stopped,
    Continued,
}

/// The next child that ended, stopped or continued. Orphans that became children count too.
///
/// No other place calls `waitpid`. The caller passes the status to the service that owns the
/// process. An orphan has no owner. (`Command::spawn` waits for a child only if its `exec` failed.)
pub(super) fn reap() -> Option<(i32, Change)> {
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    let pid = unsafe { waitpid(-1, &raw mut status, WNOHANG | WUNTRACED | WCONTINUED) };
    (pid > 0).then(|| (pid, change(status)))
}

/// The meaning of a status of `waitpid(2)`.
fn change(status: i32) -> Change {
    match (status, status & 0x7f) {
        (0xffff, _) => Change::Continued,
        (_, 0x7f) => Change::Stopped,
        (_, 0) => Change::Ended(Exit::Status((status >> 8) & 0xff)),
        (_, signal) => Change::Ended(Exit::Signal(signal)),
    }
}

/// Sends a signal. It is no error if the process has ended.
pub(super) fn send(pid: i32, number: i32) {
    // SAFETY: plain call with integer arguments.
    unsafe { kill(pid, number) };
}

/// Runs `action` with `mask` as the umask.
pub(super) fn with_umask<T>(mask: u32, action: impl FnOnce() -> T) -> T {
    // SAFETY: cannot fail. The thread of `spawning` creates no files, so none is created meanwhile.
    let before = unsafe { umask(mask) };
    let result = action();
    // SAFETY: as above.
    unsafe { umask(before) };
    result
}

/// The ids that the kernel knows a user by.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
}

/// Changes the user for good. Groups come first, since only root can set them.
fn become_user(credentials: Option<&Credentials>) -> io::Result<()> {
    let Some(Credentials { uid, gid, groups }) = credentials else { return Ok(()) };
    // SAFETY: async-signal-safe calls. `groups` outlives them.
    unsafe {
        check(setgroups(groups.len(), groups.as_ptr()))?;
        check(setgid(*gid))?;
        check(setuid(*uid))?;
    }
    Ok(())
}

/// Gives a terminal to the user, as `login` does, so that it can be opened by name.
pub(super) fn give_terminal(terminal: &impl AsRawFd, credentials: Option<&Credentials>) -> io::Result<()> {
    let Some(Credentials { uid, gid, .. }) = credentials else { return Ok(()) };
    // SAFETY: the descriptor is open for the call.
    check(unsafe { fchown(terminal.as_raw_fd(), *uid, *gid) }).map(drop)
}

/// Starts `command` in a session of its own. Only `fds` (from, to) are open in it, and no signal is
/// ignored.
pub(super) fn in_new_session(
    command: &mut Command,
    fds: Vec<(RawFd, RawFd)>,
    credentials: Option<Credentials>,
) {
    // SAFETY: between fork and exec there are only async-signal-safe calls, and no allocation.
    unsafe {
        command.pre_exec(move || {
            check(setsid())?;
            prefer_for_oom();
            signal(SIGPIPE, SIG_DFL);
            for &(from, to) in &fds {
                check(dup2(from, to))?;
            }
            become_user(credentials.as_ref())
        });
    }
}

/// Makes `command` stop before it executes its program.
#[cfg(test)]
pub(super) fn stop_before_exec(command: &mut Command) {
    const SIGSTOP: i32 = 19;
    // SAFETY: as in `in_new_session`.
    unsafe {
        command.pre_exec(|| check(kill(std::process::id().cast_signed(), SIGSTOP)).map(drop));
    }
}

/// Waits for the child `pid`, and returns what happened to it.
#[cfg(test)]
pub(super) fn wait_for(pid: i32) -> Change {
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    unsafe { waitpid(pid, &raw mut status, 0) };
    change(status)
}

/// Like [`in_new_session`]. Standard input is the controlling terminal.
pub(super) fn on_terminal(command: &mut Command, credentials: Option<Credentials>) {
    // SAFETY: as in `in_new_session`.
    unsafe {
        command.pre_exec(move || {
            check(setsid())?;
            prefer_for_oom();
            signal(SIGPIPE, SIG_DFL);
            check(ioctl(0, TIOCSCTTY, 0))?;
            become_user(credentials.as_ref())
        });
    }
}

/// Without memory, the kernel kills children before the guest. If this fails, the order is open.
fn prefer_for_oom() {
    // SAFETY: async-signal-safe calls. Path and bytes are static.
    unsafe {
        let fd = open(c"/proc/self/oom_score_adj".as_ptr(), O_RDWR | O_CLOEXEC);
        if fd >= 0 {
            write(fd, CHILD_OOM_SCORE.as_ptr(), CHILD_OOM_SCORE.len());
            close(fd);
        }
    }
}

/// A new pseudo-terminal: the guest's (master) end, and the program's end.
pub(super) fn open_terminal() -> io::Result<(File, File)> {
    let main = File::options().read(true).write(true).open("/dev/ptmx")?;
    let unlocked: i32 = 0;
    // SAFETY: TIOCSPTLCK reads one int. TIOCGPTPEER returns a new descriptor that nobody else owns.
    // It needs no path, so it works even if the sandbox has changed `/dev/pts`.
    let other = unsafe {
        check(ioctl(main.as_raw_fd(), TIOCSPTLCK, &raw const unlocked))?;
        File::from_raw_fd(check(ioctl(main.as_raw_fd(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC))?)
    };
    set_nonblocking(&main)?;
    Ok((main, other))
}

/// Number of bytes in the read queue of one end of a terminal. 0 means that everything that was
/// written to the other end has been read.
///
/// A worker thread of the kernel moves bytes between the ends. On a busy machine it can be
/// milliseconds late. FIONREAD does not count bytes that are still to be moved, but `poll` on an
/// empty queue waits for the worker.
pub(super) fn readable_terminal_bytes(end: &impl AsRawFd) -> usize {
    wait(&mut [PollFd { fd: end.as_raw_fd(), events: POLLIN, revents: 0 }], Some(Instant::now()));
    readable_bytes(end)
}

/// Whether `group` is the foreground process group of a terminal, reads single keys, and has read
/// all input.
pub(super) fn awaits_key(main: &File, group: i32) -> bool {
    let mut foreground: i32 = 0;
    let mut settings = Termios::default();
    // SAFETY: each call writes a value of its pointer's type, and the pointers are valid for it. On
    // the master end they concern the program's end. TIOCGPTPEER is used as in `open_terminal`.
    unsafe {
        if ioctl(main.as_raw_fd(), TIOCGPGRP, &raw mut foreground) < 0
            || ioctl(main.as_raw_fd(), TCGETS, &raw mut settings) < 0
            || foreground != group
            || settings.local & ICANON != 0
        {
            return false;
        }
        // Only the program's end tells how many bytes its input queue has. It is open during this
        // call only.
        let other = ioctl(main.as_raw_fd(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        other >= 0 && readable_terminal_bytes(&File::from_raw_fd(other)) == 0
    }
}

/// Sets the size of a terminal. Its programs get SIGWINCH.
pub(super) fn resize_terminal(terminal: &File, rows: u16, cols: u16) {
    let size = WinSize { rows, cols, x_pixels: 0, y_pixels: 0 };
    // SAFETY: TIOCSWINSZ reads one `struct winsize`.
    unsafe { ioctl(terminal.as_raw_fd(), TIOCSWINSZ, &raw const size) };
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn statuses_of_children() {
        let check = |status: i32, expect: Change| assert_eq!(change(status), expect, "{status:#x}");
        check(0, Change::Ended(Exit::Status(0)));
        check(0x0300, Change::Ended(Exit::Status(3)));
        check(9, Change::Ended(Exit::Signal(9)));
        // With a core dump.
        check(0x8b, Change::Ended(Exit::Signal(11)));
        check(0x137f, Change::Stopped);
        check(0xffff, Change::Continued);
    }

    /// Without the wait for the kernel's worker, most rounds would count no bytes.
    #[test]
    fn typed_bytes_are_counted_at_once() {
        let (mut main, mut other) = open_terminal().unwrap();
        for round in 0..200 {
            main.write_all(b"k\n").unwrap();
            assert_eq!(readable_terminal_bytes(&other), 2, "round {round}");
            other.read_exact(&mut [0; 2]).unwrap();
        }
    }
}
