//! Programs outside the shell, with pipes or on a pseudo-terminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::account::{credentials, variables};
use super::frame::{Account, CHUNK, Id, MAX_INPUT, Program, Stream, Termination, ToHost};
use super::head_tail::HeadTail;
use super::spawning;
use super::sys::{self, Exit};
use super::table;
use super::wire::{Interest, Outbound, read_ready, write_ready};

/// Maximum output that a turn reads of a program. It is more than the kernel buffers for a terminal
/// (12 KiB). So a read of this size returns everything that was written before it.
const TURN_BYTES: usize = 16 * CHUNK;
/// Number of rounds that kill the remaining processes of a program: a dying process tree can still
/// fork.
const KILL_ROUNDS: usize = 5;
/// A program on pipes may be stopped for this long. Nothing that tests start continues a stopped
/// process. And a solver's program could stop the program that runs it: without this limit every
/// check would run into its own time limit.
const MAX_STOPPED: Duration = Duration::from_secs(5);
/// The same after one program was killed for it, since checks start many programs.
const MAX_STOPPED_AGAIN: Duration = Duration::from_millis(100);
/// Interval between looks at a terminal that no process has open. `poll` reports such a terminal as
/// ready all the time, so it is left out. It gets readable when a process opens it by name.
const CLOSED_TERMINAL_RETRY: Duration = Duration::from_millis(200);

/// All running programs.
#[derive(Debug, Default)]
pub(super) struct Programs {
    running: Vec<Running>,
    /// Whether a program was killed because it was stopped.
    stopped_before: bool,
}

#[derive(Debug)]
struct Running {
    id: Id,
    /// Also the id of the program's session.
    pid: i32,
    started: Instant,
    deadline: Option<Instant>,
    /// Set while the program is stopped: when it is killed for that.
    stopped_until: Option<Instant>,
    killed: Option<Killed>,
    input: Vec<u8>,
    /// Number of bytes of `input` that were written.
    sent: usize,
    input_ended: bool,
    io: Io,
}

/// Why the guest killed a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    TimedOut,
    Stopped,
}

#[derive(Debug)]
enum Io {
    Pipes { stdin: Option<File>, out: Output, err: Output },
    Terminal { main: File, closed: Option<Instant> },
}

#[derive(Debug)]
struct Output {
    pipe: Option<PipeReader>,
    retained: HeadTail,
}

impl Programs {
    /// Starts a program with three pipes. At most `max_output` bytes of each output are retained.
    pub(super) fn spawn(
        &mut self,
        id: Id,
        timeout: Duration,
        max_output: u64,
        program: &Program,
        now: Instant,
    ) -> io::Result<()> {
        let max_output = usize::try_from(max_output).unwrap_or(usize::MAX);
        let mut command = command(program)?;
        let (stdin, to_stdin) = io::pipe()?;
        let (out, to_out) = io::pipe()?;
        let (err, to_err) = io::pipe()?;
        command.stdin(stdin).stdout(to_out).stderr(to_err);
        sys::in_new_session(&mut command, Vec::new(), None);
        let child = spawning::spawn(&mut command)?;
        let to_stdin = File::from(OwnedFd::from(to_stdin));
        sys::set_nonblocking(&to_stdin)?;
        sys::set_nonblocking(&out)?;
        sys::set_nonblocking(&err)?;
        let output = |pipe| Output { pipe: Some(pipe), retained: HeadTail::new(max_output) };
        let io = Io::Pipes { stdin: Some(to_stdin), out: output(out), err: output(err) };
        let mut running = Running::new(id, child.pid, now, io);
        running.deadline = Some(running.started + timeout);
        if child.was_stopped {
            running.killed = Some(Killed::Stopped);
            self.stopped_before = true;
        }
        self.running.push(running);
        Ok(())
    }

    /// Starts a program on a new terminal.
    pub(super) fn open_terminal(
        &mut self,
        id: Id,
        (rows, cols): (u16, u16),
        program: &Program,
        account: Option<&Account>,
        now: Instant,
    ) -> io::Result<()> {
        let mut command = command(program)?;
        let credentials = account.map(credentials);
        command.envs(account.into_iter().flat_map(variables));
        let (main, other) = sys::open_terminal()?;
        sys::resize_terminal(&main, rows, cols);
        sys::give_terminal(&other, credentials.as_ref())?;
        command.stdin(other.try_clone()?).stdout(other.try_clone()?).stderr(other);
        sys::on_terminal(&mut command, credentials);
        let child = spawning::spawn(&mut command)?;
        self.running.push(Running::new(id, child.pid, now, Io::Terminal { main, closed: None }));
        Ok(())
    }

    /// Queues input for a program. `false` if it has ended.
    pub(super) fn data(&mut self, id: Id, bytes: &[u8]) -> bool {
        let Some(running) = self.find(id) else { return false };
        running.input.drain(..running.sent);
        running.sent = 0;
        // The host keeps to the bound. Another one loses its input, and does not exhaust the guest.
        if running.input.len() + bytes.len() <= MAX_INPUT {
            running.input.extend_from_slice(bytes);
        }
        true
    }

    /// Closes a program's input once the queued input is written.
    pub(super) fn end(&mut self, id: Id) -> bool {
        self.find(id).map(|running| running.input_ended = true).is_some()
    }

    /// Changes a terminal's size.
    pub(super) fn resize(&mut self, id: Id, rows: u16, cols: u16) {
        if let Some(Running { io: Io::Terminal { main, .. }, .. }) = self.find(id) {
            sys::resize_terminal(main, rows, cols);
        }
    }

    /// Reports the state of a terminal's program, after its output up to now.
    pub(super) fn report_state(&mut self, id: Id, out: &mut Outbound) {
        let Some(running) = self.find(id) else { return };
        let Io::Terminal { main, .. } = &mut running.io else { return };
        let typed = running.sent < running.input.len();
        // A sleep proves nothing if input is still on its way, or if the program has just started a
        // command.
        let awaits_key = || sys::awaits_key(main, running.pid);
        let at_prompt = !typed && awaits_key() && table::sleeps(running.pid) && awaits_key();
        // Read after the checks: output from before them must precede the report.
        read_ready(main, TURN_BYTES, |bytes| out.send_bytes(id, Stream::Out, bytes));
        let session = table::session(running.pid);
        let others = session.iter().filter(|entry| entry.pid != running.pid);
        let youngest = others.map(|entry| entry.started).max().unwrap_or(0);
        out.send(&ToHost::PtyState { id, at_prompt, youngest });
    }

    /// Kills a program, as if its time were up.
    pub(super) fn cancel(&mut self, id: Id, now: Instant) {
        if let Some(running) = self.find(id) {
            running.deadline = Some(now);
        }
    }

    /// Adds the descriptors and the deadlines that the programs wait for.
    pub(super) fn interest(&self, interest: &mut Interest, out: &Outbound) {
        for running in &self.running {
            let waiting = running.sent < running.input.len();
            match &running.io {
                Io::Pipes { stdin, out, err } => {
                    if let Some(stdin) = stdin.as_ref().filter(|_| waiting) {
                        interest.write(stdin);
                    }
                    for pipe in [out, err].into_iter().filter_map(|output| output.pipe.as_ref()) {
                        interest.read(pipe);
                    }
                }
                Io::Terminal { closed: Some(since), .. } => {
                    if out.has_room() {
                        interest.until(*since + CLOSED_TERMINAL_RETRY);
                    }
                }
                Io::Terminal { main, closed: None } => {
                    if waiting {
                        interest.write(main);
                    }
                    if out.has_room() {
                        interest.read(main);
                    }
                }
            }
            for (until, _) in running.ends().filter(|_| running.killed.is_none()) {
                interest.until(until);
            }
        }
    }

    /// Does all work that does not block.
    pub(super) fn turn(&mut self, now: Instant, out: &mut Outbound) {
        for running in &mut self.running {
            running.write_input();
            running.read_output(TURN_BYTES, now, out);
            if running.killed.is_none()
                && let Some((_, why)) = running.ends().find(|(until, _)| now >= *until)
            {
                running.killed = Some(why);
                self.stopped_before |= why == Killed::Stopped;
                running.kill_family();
            }
        }
    }

    /// Handles the exit of a process. `false` if it is none of these programs.
    pub(super) fn exited(&mut self, pid: i32, exit: Exit, now: Instant, out: &mut Outbound) -> bool {
        let Some(place) = self.running.iter().position(|running| running.pid == pid) else { return false };
        self.running.swap_remove(place).finish(exit, now, out);
        true
    }

    /// A process was stopped at an instant, or continued (`None`). Ignored unless it is one of
    /// these programs.
    pub(super) fn stopped(&mut self, pid: i32, at: Option<Instant>) {
        let most = if self.stopped_before { MAX_STOPPED_AGAIN } else { MAX_STOPPED };
        if let Some(running) = self.running.iter_mut().find(|running| running.pid == pid) {
            running.stopped_until = at.map(|at| at + most);
        }
    }

    fn find(&mut self, id: Id) -> Option<&mut Running> {
        self.running.iter_mut().find(|running| running.id == id)
    }
}

impl Running {
    fn new(id: Id, pid: i32, now: Instant, io: Io) -> Self {
        Self {
            id,
            pid,
            started: now,
            deadline: None,
            stopped_until: None,
            killed: None,
            input: Vec::new(),
            sent: 0,
            input_ended: false,
            io,
        }
    }

    /// When and why the program will be killed. On a terminal, a user may continue a stopped
    /// program.
    fn ends(&self) -> impl Iterator<Item = (Instant, Killed)> + use<> {
        let deadline = self.deadline.map(|deadline| (deadline, Killed::TimedOut));
        let stopped = self.stopped_until.filter(|_| matches!(self.io, Io::Pipes { .. }));
        deadline.into_iter().chain(stopped.map(|until| (until, Killed::Stopped)))
    }

    fn write_input(&mut self) {
        let readable = match &mut self.io {
            Io::Terminal { main, .. } => write_ready(main, &self.input, &mut self.sent),
            Io::Pipes { stdin: Some(stdin), .. } => write_ready(stdin, &self.input, &mut self.sent),
            Io::Pipes { stdin: None, .. } => false,
        };
        let through = self.input_ended && self.sent == self.input.len();
        if let Io::Pipes { stdin, .. } = &mut self.io
            && (through || !readable)
        {
            *stdin = None;
        }
        if !readable {
            self.sent = self.input.len();
        }
    }

    /// Reads the output that is available, at most `limit` bytes of each stream.
    fn read_output(&mut self, limit: usize, now: Instant, to_host: &mut Outbound) {
        match &mut self.io {
            Io::Pipes { out, err, .. } => {
                out.read(limit);
                err.read(limit);
            }
            Io::Terminal { main, closed } => {
                // One chunk per turn: so the queue to the host limits how fast a terminal is read.
                if to_host.has_room() {
                    let open =
                        read_ready(main, CHUNK, |bytes| to_host.send_bytes(self.id, Stream::Out, bytes));
                    *closed = (!open).then_some(now);
                }
            }
        }
    }

    /// Kills the program's session and all descendants.
    fn kill_family(&self) {
        for _ in 0..KILL_ROUNDS {
            let family = table::family(self.pid, &[self.pid]);
            // The program itself may be a zombie that nobody has reaped.
            if family.iter().all(|entry| entry.pid == self.pid) {
                sys::send(self.pid, sys::SIGKILL);
                return;
            }
            family.iter().for_each(|entry| sys::send(entry.pid, sys::SIGKILL));
        }
    }

    /// The program has ended: its session is killed, and the rest of its output is read.
    fn finish(mut self, exit: Exit, now: Instant, to_host: &mut Outbound) {
        for _ in 0..KILL_ROUNDS {
            let session = table::session(self.pid);
            if session.is_empty() {
                break;
            }
            session.iter().for_each(|entry| sys::send(entry.pid, sys::SIGKILL));
        }
        let how = match (self.killed, exit) {
            (Some(Killed::TimedOut), _) => Termination::TimedOut,
            (Some(Killed::Stopped) | None, Exit::Status(status)) => Termination::Exited(status),
            (Some(Killed::Stopped) | None, Exit::Signal(signal)) => Termination::Signaled(signal),
        };
        let micros =
            u64::try_from(now.saturating_duration_since(self.started).as_micros()).unwrap_or(u64::MAX);
        let (mut stdout, mut stderr) = (0, 0);
        match &mut self.io {
            Io::Pipes { out, err, .. } => {
                stdout = out.send(self.id, Stream::Out, to_host);
                stderr = err.send(self.id, Stream::Err, to_host);
            }
            Io::Terminal { main, .. } => {
                read_ready(main, TURN_BYTES, |bytes| to_host.send_bytes(self.id, Stream::Out, bytes));
            }
        }
        to_host.send(&ToHost::ProcessDone { id: self.id, how, stdout, stderr, micros });
    }
}

impl Output {
    fn read(&mut self, limit: usize) {
        if let Some(pipe) = &mut self.pipe
            && !read_ready(pipe, limit, |bytes| self.retained.push(bytes))
        {
            self.pipe = None;
        }
    }

    /// Sends the retained output, after reading the rest from the pipe. Returns the length of all
    /// output.
    fn send(&mut self, id: Id, stream: Stream, to_host: &mut Outbound) -> u64 {
        let waiting = self.pipe.as_ref().map_or(0, sys::readable_bytes);
        self.read(waiting);
        let total = self.retained.total();
        let retained = std::mem::replace(&mut self.retained, HeadTail::new(0));
        to_host.send_bytes(id, stream, &retained.into_bytes());
        total
    }
}

/// A command with exactly this environment.
fn command(program: &Program) -> io::Result<Command> {
    let [name, args @ ..] = program.argv.as_slice() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "empty argument vector"));
    };
    let mut command = Command::new(OsStr::from_bytes(name));
    command.args(args.iter().map(|arg| OsStr::from_bytes(arg)));
    command.current_dir(OsStr::from_bytes(&program.cwd)).env_clear();
    for entry in &program.env {
        let (name, value) =
            entry.split_at(entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len()));
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value.get(1..).unwrap_or_default()));
    }
    Ok(command)
}
