//! The event loop: sleep until a descriptor is ready, then run a turn of each service.

use std::io::{self, PipeReader};
use std::time::Duration;

use super::clock::Clock;
use super::ending;
use super::files::Files;
use super::frame::{Id, ToGuest, ToHost, VERSION};
use super::pools::Start;
use super::program::Programs;
use super::relay::Relay;
use super::shell::{Home, Shell};
use super::spawning;
use super::sys::{self, Change};
use super::table;
use super::wire::{Interest, Wire, read_ready};

/// Number of rounds that kill remaining processes after the host has closed the connection.
const FAREWELL_ROUNDS: usize = 20;
/// Number of rounds that kill processes if the kernel cannot kill all at once: a dying process tree
/// can still fork.
const KILL_ROUNDS: usize = 5;
/// As a pid for `kill(2)`: every process of the PID namespace but the caller.
const EVERY_PROCESS: i32 = -1;
/// Id of the boot operation.
const BOOT: Id = 0;

/// Serves requests until the host closes the connection. Returns the exit status.
///
/// # Safety
/// Only for `main` of the guest binary, as its first call and on its only thread:
/// - It closes all descriptors but the standard streams, and replaces those. So no object of the
///   caller may own a descriptor.
/// - It changes signal handlers, and reaps all children of the process.
#[expect(unsafe_code, reason = "a caller must own the whole process")]
pub(crate) unsafe fn run() -> i32 {
    let ended = Guest::start().and_then(|mut guest| guest.serve());
    farewell();
    match ended {
        Ok(()) => ending::HUNG_UP,
        Err(error) => {
            // The last answers may fail to be written: a host that closed the connection does not
            // read them.
            let _ = io::Write::write_all(&mut io::stderr(), format!("guest: {error}\n").as_bytes());
            ending::status_of(&error)
        }
    }
}

struct Guest {
    wire: Wire,
    child_exits: PipeReader,
    clock: Clock,
    shell: Shell,
    programs: Programs,
    files: Files,
    relay: Relay,
}

impl Guest {
    fn start() -> io::Result<Self> {
        sys::become_guest()?;
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        super::filter::apply();
        spawning::watch()?;
        let child_exits = sys::on_child_exit()?;
        let mut wire = Wire::take()?;
        // The guest stays in `/`: the work directory may be moved or unmounted.
        std::env::set_current_dir("/")?;
        super::names::ensure_localhost();
        wire.out.send(&ToHost::Hello { version: VERSION });
        Ok(Self {
            wire,
            child_exits,
            clock: Clock::start(),
            shell: Shell::new()?,
            programs: Programs::default(),
            files: Files::default(),
            relay: Relay::default(),
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.wire.flush()?;
            self.sleep();
            if !self.wire.fill()? {
                return Ok(());
            }
            while let Some(message) = self.wire.next_message()? {
                self.take(message)?;
            }
            // Children are reaped first. A zombie counts towards the limit of processes, and the
            // shell may have to be started again.
            self.reap();
            let out = &mut self.wire.out;
            self.shell.turn(self.clock.now(), out);
            self.programs.turn(self.clock.now(), out);
            self.files.turn(out);
            self.relay.turn(out);
            self.clock.turned();
        }
    }

    fn sleep(&self) {
        let mut interest = Interest::default();
        let out = &self.wire.out;
        self.wire.interest(&mut interest);
        interest.read(&self.child_exits);
        self.shell.interest(&mut interest);
        self.programs.interest(&mut interest, out);
        self.relay.interest(&mut interest, out);
        if self.files.is_busy() && out.has_room() {
            interest.at_once();
        }
        interest.wait(&self.clock);
    }

    fn reap(&mut self) {
        read_ready(&mut self.child_exits, usize::MAX, |_| {});
        let out = &mut self.wire.out;
        while let Some((pid, change)) = sys::reap() {
            let now = self.clock.now();
            match change {
                // If no service knows the process, it is an orphan, and reaping it is enough.
                Change::Ended(exit) => {
                    let _ =
                        self.shell.exited(pid, exit, now, out) || self.programs.exited(pid, exit, now, out);
                }
                Change::Stopped => self.programs.stopped(pid, Some(now)),
                Change::Continued => self.programs.stopped(pid, None),
            }
        }
    }

    fn take(&mut self, message: ToGuest) -> io::Result<()> {
        let out = &mut self.wire.out;
        let mut answer = |id, doing: &str, result: io::Result<()>| match result {
            Ok(()) => out.send(&ToHost::Done { id }),
            Err(error) => out.fail(id, doing, &error),
        };
        match message {
            ToGuest::Boot { version, workdir, home } => {
                if version != VERSION {
                    return Err(io::Error::other(format!(
                        "the host speaks version {version}, this guest {VERSION}"
                    )));
                }
                let text = |bytes| String::from_utf8(bytes).map_err(io::Error::other);
                let home = Home { workdir: text(workdir)?, home: text(home)?, account: None };
                answer(BOOT, "cannot make the work directory", std::fs::create_dir_all(&home.workdir));
                self.shell.set_home(home);
            }
            ToGuest::Shell { id, timeout_ms, max_output, command } => {
                self.shell.order(id, Duration::from_millis(timeout_ms), max_output, command);
            }
            ToGuest::Spawn { id, timeout_ms, max_output, program } => {
                let (now, timeout) = (self.clock.now(), Duration::from_millis(timeout_ms));
                if let Err(error) = self.programs.spawn(id, timeout, max_output, &program, now) {
                    out.fail_start(id, &name(&program.argv), &error, Start::Process);
                }
            }
            ToGuest::Pty { id, rows, cols, program } => {
                let (now, account) = (self.clock.now(), self.shell.account());
                match self.programs.open_terminal(id, (rows, cols), &program, account, now) {
                    Ok(()) => out.send(&ToHost::Done { id }),
                    Err(error) => out.fail_start(id, &name(&program.argv), &error, Start::Terminal),
                }
            }
            ToGuest::Account { id, account } => {
                self.shell.set_account(account);
                answer(id, "", Ok(()));
            }
            ToGuest::KillAll { id } => {
                kill_all();
                answer(id, "", Ok(()));
            }
            ToGuest::Resize { id, rows, cols } => self.programs.resize(id, rows, cols),
            ToGuest::PtyStateRequest { id } => self.programs.report_state(id, out),
            ToGuest::PutFile { id, mode, path } => self.files.put(id, mode, &path),
            ToGuest::GetFile { id, max, path } => self.files.get(id, max, &path, out),
            ToGuest::Listen { id, path } => answer(id, "cannot listen", self.relay.listen(id, &path)),
            ToGuest::Reply { id, call, bytes } => self.relay.reply(id, call, &bytes),
            ToGuest::ReplyEnd { id, call } => self.relay.end_reply(id, call),
            // A frame for an operation that has ended is dropped.
            ToGuest::Data { id, bytes } => {
                let _ = self.programs.data(id, &bytes) || self.files.data(id, &bytes);
            }
            ToGuest::End { id } => {
                let _ = self.programs.end(id) || self.files.end(id, out);
            }
            ToGuest::Paused => self.clock.hold(),
            ToGuest::Resumed { micros } => self.clock.release(Duration::from_micros(micros)),
            ToGuest::Cancel { id } => {
                let now = self.clock.now();
                if !self.shell.cancel(id, now) {
                    self.programs.cancel(id, now);
                    self.files.cancel(id);
                    self.relay.cancel(id);
                }
            }
        }
        Ok(())
    }
}

/// The name of a program, for messages.
fn name(argv: &[Vec<u8>]) -> String {
    argv.first().map_or_else(|| "nothing".to_owned(), |name| format!("`{}`", String::from_utf8_lossy(name)))
}

/// Ends a guest that has no memory left, with the exit status for a limit.
pub(crate) fn out_of_memory() -> ! {
    sys::exit_with(b"guest: no memory left for the guest itself\n", ending::LIMIT)
}

/// Kills every process but the guest. The services notice the exits like all others.
fn kill_all() {
    let own = std::process::id().cast_signed();
    // Outside a PID namespace this would kill processes of the host.
    if own == 1 {
        return sys::send(EVERY_PROCESS, sys::SIGKILL);
    }
    for _ in 0..KILL_ROUNDS {
        let family = table::family(own, &[own]);
        family.iter().filter(|entry| entry.pid != own).for_each(|entry| sys::send(entry.pid, sys::SIGKILL));
    }
}

/// Kills all descendants of the guest. In a PID namespace the kernel does so when process 1 ends,
/// but the process engine has none.
fn farewell() {
    let own = std::process::id().cast_signed();
    if own == 1 {
        return;
    }
    for _ in 0..FAREWELL_ROUNDS {
        while sys::reap().is_some() {}
        let left = table::family(own, &[own]);
        if left.iter().all(|entry| entry.pid == own) {
            return;
        }
        left.iter().filter(|entry| entry.pid != own).for_each(|entry| sys::send(entry.pid, sys::SIGKILL));
    }
}
