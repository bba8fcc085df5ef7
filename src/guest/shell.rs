//! The long-lived bash. A socket carries commands to it, and pipes carry statuses and output back.
//!
//! So no prompt, echo or marker has to be parsed. A status is written after all output of its
//! command. When it arrives, the bytes in the output pipe are the rest of that output. The guest
//! reads exactly these, even if background jobs continue to write.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, PipeReader, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::account::{credentials, variables};
use super::frame::{Account, CHUNK, Id, Stream, Termination, ToHost};
use super::head_tail::HeadTail;
use super::pools::Start;
use super::spawning;
use super::sys::{self, Exit};
use super::table::{self, Entry};
use super::wire::{Interest, Outbound, read_ready, write_ready};

/// The script that the shell runs. It uses descriptors 200 and 201: commands hardly use these.
///
/// - A command is sent as `length NUL bytes token NUL`. Bash reads a known number of bytes in
///   blocks, but reads byte by byte up to a delimiter. `LC_ALL=C` makes it count bytes.
/// - The shell reads the token after the command, and reports it with the status. Until then the
///   token waits in a socket, which `/proc/PID/fd` cannot open. So no child can report a status,
///   e.g. by `printf '0\0' >/proc/$$/fd/201`.
/// - Before a command, the driver restores `$?` of the previous one. This triggers neither `set -e`
///   nor an `ERR` trap.
/// - The driver's own lines are in `{ … } 2>/dev/null`, so that `set -x` does not trace them.
/// - The real-time signal is the time-out. Its trap runs as soon as the foreground process is dead.
///   It makes bash skip all commands up to the one that reads the token, which the trap knows by
///   its redirection. So `sleep 50; echo no` never prints `no`, and folder and variables survive. A
///   loop without commands (`while :; do :; done`) has nothing to skip: the guest then kills the
///   shell.
/// - `__r` is 1 while a command runs: a late signal must not skip the next command.
const DRIVER: &str = concat!(
    r#"trap '((__r)) && { shopt -s extdebug; trap '\''case $BASH_COMMAND in *">&201") shopt -u extdebug; trap - DEBUG;; *) ! :;; esac'\'' DEBUG; }' RTMAX; "#,
    r#"__s=0; while { IFS= builtin read -r -d '' -u 200 __l && LC_ALL=C builtin read -r -N "$__l" -u 200 __c; } 2>/dev/null; do "#,
    r#"if { __r=1; ((__s == 0)); } 2>/dev/null; then eval "$__c" </dev/null 200<&- 201>&-; "#,
    r#"elif { (exit "$__s"); } 2>/dev/null; then :; else eval "$__c" </dev/null 200<&- 201>&-; fi; "#,
    r#"{ __s=$?; IFS= builtin read -r -d '' -u 200 __t >&201; __r=0; builtin printf '%s %s\0' "$__t" "$__s" >&201; } 2>/dev/null; done"#,
);

/// The shell's command line, as `ps` shows it. The driver comes through the command socket.
const LOADER: &str = r#"read -rd '' -u 200 __c; eval "$__c""#;
/// The shell's end of the command socket.
const COMMAND_FD: i32 = 200;
/// The shell's end of the status pipe.
const STATUS_FD: i32 = 201;

/// Time for an interrupted shell to report. After it, the shell is killed.
const GRACE: Duration = Duration::from_secs(1);
/// Interval between looks for processes of an interrupted command: a dying process tree can still
/// fork.
const KILL_ROUND: Duration = Duration::from_millis(20);
/// Maximum output that a turn reads, so that a fast writer does not hold up the event loop.
const TURN_BYTES: usize = 16 * CHUNK;
/// Maximum length of a report: a token of 16 digits, and a status of at most 20.
const MAX_REPORT: usize = 64;
/// Background jobs may print between two commands. At most this much is shown with the next one.
const MAX_IDLE_OUTPUT: usize = 8 * 1024;

/// Where shells start.
#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    pub(super) workdir: String,
    pub(super) home: String,
    /// The user of shells. `None` is root.
    pub(super) account: Option<Account>,
}

/// The shell and its queued commands.
#[derive(Debug)]
pub(super) struct Shell {
    /// Opened before any command runs. Later the name may be a FIFO, and opening that would block.
    null: File,
    home: Home,
    live: Option<Live>,
    queue: VecDeque<Order>,
    current: Option<Current>,
    output: HeadTail,
    tokens: Tokens,
    /// The shell died between two commands. The next result says so.
    died_idle: bool,
}

/// A running bash.
#[derive(Debug)]
struct Live {
    pid: i32,
    commands: File,
    /// `None` once every writer has closed its end: `poll` would report such a pipe all the time.
    statuses: Option<PipeReader>,
    output: Option<PipeReader>,
    /// A part of a report.
    partial: Vec<u8>,
}

#[derive(Debug)]
struct Order {
    id: Id,
    timeout: Duration,
    max_output: usize,
    command: Vec<u8>,
}

/// The running command.
#[derive(Debug)]
struct Current {
    id: Id,
    input: Vec<u8>,
    /// The shell reports this with the status of the command.
    token: String,
    /// Number of bytes of `input` that the shell's socket has taken.
    sent: usize,
    started: Instant,
    deadline: Instant,
    /// Members of the session before the command, e.g. services. They survive its time-out.
    before: Vec<Entry>,
    interrupted: Option<Interrupted>,
    restarted: bool,
}

/// The command has timed out.
#[derive(Debug)]
struct Interrupted {
    give_up: Instant,
    next_round: Instant,
    killed_shell: bool,
}

impl Shell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            null: File::options().read(true).write(true).open("/dev/null")?,
            home: Home::default(),
            live: None,
            queue: VecDeque::new(),
            current: None,
            output: HeadTail::new(MAX_IDLE_OUTPUT),
            tokens: Tokens::default(),
            died_idle: false,
        })
    }

    /// Sets where shells start. The first shell starts with the first command.
    pub(super) fn set_home(&mut self, home: Home) {
        self.home = home;
    }

    /// Sets the user of shells that start after this. A running shell keeps its user.
    pub(super) fn set_account(&mut self, account: Account) {
        self.home.account = Some(account);
    }

    /// The user of shells. `None` is root.
    pub(super) fn account(&self) -> Option<&Account> {
        self.home.account.as_ref()
    }

    /// Queues a command.
    pub(super) fn order(&mut self, id: Id, timeout: Duration, max_output: u64, command: Vec<u8>) {
        let max_output = usize::try_from(max_output).unwrap_or(usize::MAX);
        self.queue.push_back(Order { id, timeout, max_output, command });
    }

    /// Cancels a command. `false` if no command has this `id`.
    pub(super) fn cancel(&mut self, id: Id, now: Instant) -> bool {
        if let Some(place) = self.queue.iter().position(|order| order.id == id) {
            self.queue.remove(place);
            return true;
        }
        match &mut self.current {
            Some(current) if current.id == id => {
                current.deadline = now;
                true
            }
            _ => false,
        }
    }

    /// Adds the descriptors and the deadline that the shell waits for.
    pub(super) fn interest(&self, interest: &mut Interest) {
        let Some(live) = &self.live else { return };
        for pipe in [&live.statuses, &live.output].into_iter().flatten() {
            interest.read(pipe);
        }
        let Some(current) = &self.current else { return };
        if current.sent < current.input.len() {
            interest.write(&live.commands);
        }
        interest.until(match &current.interrupted {
            None => current.deadline,
            Some(interrupted) => interrupted.next_round.min(interrupted.give_up),
        });
    }

    /// Does all work that does not block.
    pub(super) fn turn(&mut self, now: Instant, out: &mut Outbound) {
        self.start_next(now, out);
        let Some(live) = &mut self.live else { return };
        if let Some(current) = &mut self.current {
            if !write_ready(&mut live.commands, &current.input, &mut current.sent) {
                // Nobody reads commands any more. The shell has ended, or its time limit will end
                // it.
                current.sent = current.input.len();
            }
            if let Some(status) = live.status(&current.token) {
                self.drain();
                self.finish(Termination::Exited(status), now, out);
                return self.start_next(now, out);
            }
        }
        self.read_output(TURN_BYTES);
        self.keep_time(now);
    }

    /// Handles the exit of a process. `false` if it is not the shell.
    pub(super) fn exited(&mut self, pid: i32, exit: Exit, now: Instant, out: &mut Outbound) -> bool {
        if self.live.as_ref().is_none_or(|live| live.pid != pid) {
            return false;
        }
        self.drain();
        self.live = None;
        match &mut self.current {
            Some(current) => {
                current.restarted = true;
                let status = match exit {
                    Exit::Status(status) => status,
                    Exit::Signal(signal) => 128 + signal,
                };
                self.finish(Termination::ShellDied(status), now, out);
            }
            None => self.died_idle = true,
        }
        true
    }

    fn start_next(&mut self, now: Instant, out: &mut Outbound) {
        while self.current.is_none() {
            let Some(order) = self.queue.pop_front() else { return };
            let live = match self.live.take().map_or_else(|| Live::start(&self.home, &self.null), Ok) {
                Ok(live) => self.live.insert(live),
                Err(error) => {
                    out.fail_start(order.id, "`bash`", &error, Start::Process);
                    continue;
                }
            };
            let token = self.tokens.next();
            // Bash cannot read NUL bytes. An empty command becomes one that does nothing.
            let command: &[u8] = if order.command.is_empty() { b":" } else { &order.command };
            let mut input = format!("{}\0", command.len()).into_bytes();
            input.extend_from_slice(command);
            input.extend_from_slice(format!("{token}\0").as_bytes());
            let pid = live.pid;
            self.drain();
            let idle = std::mem::replace(&mut self.output, HeadTail::new(order.max_output));
            self.output.push(&idle.into_bytes());
            let mut current = Current {
                id: order.id,
                input,
                token,
                sent: 0,
                started: now,
                deadline: now + order.timeout,
                before: table::session(pid),
                interrupted: None,
                restarted: std::mem::take(&mut self.died_idle),
            };
            if let Some(live) = &mut self.live {
                write_ready(&mut live.commands, &current.input, &mut current.sent);
            }
            self.current = Some(current);
        }
    }

    /// Interrupts the command at its deadline, and kills the shell if that does not help.
    fn keep_time(&mut self, now: Instant) {
        let (Some(live), Some(current)) = (&self.live, &mut self.current) else { return };
        if current.interrupted.is_none() && now >= current.deadline {
            // The signal goes first: the trap must be pending when bash notices that its child is
            // dead.
            sys::send(live.pid, sys::SIGRTMAX);
            current.interrupted =
                Some(Interrupted { give_up: now + GRACE, next_round: now, killed_shell: false });
        }
        let Some(interrupted) = &mut current.interrupted else { return };
        if now >= interrupted.give_up && !interrupted.killed_shell {
            sys::send(live.pid, sys::SIGKILL);
            interrupted.killed_shell = true;
        }
        if now >= interrupted.next_round {
            interrupted.next_round = now + KILL_ROUND;
            for entry in table::session(live.pid) {
                if entry.pid != live.pid && !current.before.contains(&entry) {
                    sys::send(entry.pid, sys::SIGKILL);
                }
            }
        }
    }

    /// Reads the bytes that are now in the output pipe.
    fn drain(&mut self) {
        let output = self.live.as_ref().and_then(|live| live.output.as_ref());
        self.read_output(output.map_or(0, sys::readable_bytes));
    }

    fn read_output(&mut self, limit: usize) {
        let Some(live) = &mut self.live else { return };
        let Some(pipe) = &mut live.output else { return };
        // Output after the time-out is dropped: it is about the killed processes.
        let listening = self.current.as_ref().is_none_or(|current| current.interrupted.is_none());
        let output = &mut self.output;
        let open = read_ready(pipe, limit, |bytes| {
            if listening {
                output.push(bytes);
            }
        });
        if !open {
            live.output = None;
        }
    }

    fn finish(&mut self, how: Termination, now: Instant, out: &mut Outbound) {
        let Some(current) = self.current.take() else { return };
        let output = std::mem::replace(&mut self.output, HeadTail::new(MAX_IDLE_OUTPUT));
        let (id, bytes) = (current.id, output.total());
        out.send_bytes(id, Stream::Out, &output.into_bytes());
        out.send(&ToHost::ShellDone {
            id,
            how: if current.interrupted.is_some() { Termination::TimedOut } else { how },
            restarted: current.restarted,
            bytes,
            micros: u64::try_from((now - current.started).as_micros()).unwrap_or(u64::MAX),
        });
    }
}

impl Live {
    fn start(home: &Home, null: &File) -> io::Result<Self> {
        let (commands_in, commands) = UnixStream::pair()?;
        let (statuses, statuses_in) = io::pipe()?;
        let (output, output_in) = io::pipe()?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for program in ["/bin/bash", "/usr/bin/bash", "bash"] {
            let mut command = Command::new(program);
            command.args(["--norc", "--noprofile", "-c", LOADER, "bash"]);
            command.current_dir(&home.workdir).envs(home.variables());
            command.envs(home.account.iter().flat_map(variables));
            command.stdin(null.try_clone()?).stdout(output_in.try_clone()?).stderr(output_in.try_clone()?);
            let fds = vec![(commands_in.as_raw_fd(), COMMAND_FD), (statuses_in.as_raw_fd(), STATUS_FD)];
            sys::in_new_session(&mut command, fds, home.account.as_ref().map(credentials));
            match spawning::spawn(&mut command) {
                Ok(spawning::Child { pid, .. }) => {
                    let mut commands = File::from(OwnedFd::from(commands));
                    // The socket is empty, so the whole driver fits.
                    commands.write_all(&[DRIVER.as_bytes(), b"\0"].concat())?;
                    sys::set_nonblocking(&commands)?;
                    sys::set_nonblocking(&statuses)?;
                    sys::set_nonblocking(&output)?;
                    let (statuses, output) = (Some(statuses), Some(output));
                    return Ok(Self { pid, commands, statuses, output, partial: Vec::new() });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The status that the shell reported with `token`. Other reports are forged, and are dropped.
    fn status(&mut self, token: &str) -> Option<i32> {
        let partial = &mut self.partial;
        if let Some(statuses) = &mut self.statuses
            && !read_ready(statuses, CHUNK, |bytes| partial.extend_from_slice(bytes))
        {
            self.statuses = None;
        }
        let Some(end) = partial.iter().rposition(|byte| *byte == 0) else {
            // Any process of the shell's user can write here. More bytes than a report has are no
            // report.
            partial.drain(..partial.len().saturating_sub(MAX_REPORT));
            return None;
        };
        let complete: Vec<u8> = partial.drain(..=end).collect();
        // Another process may have written a part of a report before the shell's.
        complete.split(|byte| *byte == 0).find_map(|report| {
            let report = String::from_utf8_lossy(report);
            let (before, status) = report.rsplit_once(' ')?;
            before.ends_with(token).then(|| status.parse().ok())?
        })
    }
}

/// Tokens that no process in the sandbox can guess.
#[derive(Debug, Default)]
struct Tokens {
    /// A hash function. Its key is from the kernel.
    key: RandomState,
    given: u64,
}

impl Tokens {
    fn next(&mut self) -> String {
        self.given += 1;
        format!("{:016x}", self.key.hash_one(self.given))
    }
}

/// Debian's default. Images can override it with `ENV PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Home {
    /// Variables of the shell, in addition to the image's.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let unless_set =
            |name, default: &str| std::env::var_os(name).is_none().then(|| (name, default.to_owned()));
        let mut variables =
            vec![("HOME", self.home.clone()), ("TERM", "dumb".to_owned()), ("USER", "root".to_owned())];
        variables.extend(unless_set("PATH", DEFAULT_PATH));
        variables.extend(unless_set("LANG", "C.UTF-8"));
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::clock::Clock;

    /// Reached only if the test fails.
    const LONG: Duration = Duration::from_secs(30);
    /// The guest must be able to sleep this long.
    const NAP: Duration = Duration::from_millis(100);

    /// Otherwise the guest would keep a processor busy until the shell ends.
    #[test]
    fn a_pipe_at_its_end_does_not_wake_the_guest() {
        let check = |command: &str, closed: fn(&Shell) -> bool| {
            let mut shell = Shell::new().unwrap();
            let root = || "/".to_owned();
            shell.set_home(Home { workdir: root(), home: root(), account: None });
            let mut out = Outbound::default();
            shell.order(1, LONG * 2, 1000, command.as_bytes().to_vec());
            let started = Instant::now();
            while !closed(&shell) {
                assert!(started.elapsed() < LONG, "{command}");
                shell.turn(Instant::now(), &mut out);
                std::thread::sleep(Duration::from_millis(5));
            }
            let now = Instant::now();
            let mut interest = Interest::default();
            shell.interest(&mut interest);
            interest.until(now + NAP);
            interest.wait(&Clock::start());
            assert!(now.elapsed() >= NAP, "{command}: {:?}", now.elapsed());
            if let Some(live) = &shell.live {
                sys::send(live.pid, sys::SIGKILL);
            }
        };
        check("exec >/dev/null 2>&1", |shell| {
            shell.current.is_none() && shell.live.as_ref().is_some_and(|live| live.output.is_none())
        });
        // The command runs on, and nothing can report its status.
        check("exec sleep 1000", |shell| shell.live.as_ref().is_some_and(|live| live.statuses.is_none()));
    }
}
