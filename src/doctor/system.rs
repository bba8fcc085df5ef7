//! The machine as the doctor sees it: a file system root, the environment, and the one way to run programs.
//!
//! Tests replace the root by a folder and the runner by a function, so that every decision can be tested without a daemon or
//! root.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;
use std::{env, fmt};

use super::error::{FixError, tail};
use crate::sandbox::discovery::Environment;
use crate::syntax::shell_line;

/// How long a daemon that was started may take to answer; a first start on a slow disk takes 10 s.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a program's error output that are kept: the end, which has the reason of a failure.
const MAX_STDERR: usize = 64 << 10;
/// Time between two calls of `on_wait` while a program prints nothing.
const WAIT: Duration = Duration::from_secs(1);
/// Chunks of a program's output that wait to be written, so that memory stays bounded.
const OUTPUT_QUEUE: usize = 4;

/// Runs a program to its end: its standard output goes to the writer, and the function is called at least once per
/// [`WAIT`].
pub(super) type Runner = Box<dyn Fn(&Invocation, &mut dyn Write, &mut dyn FnMut()) -> io::Result<Exit>>;

/// The machine.
pub struct System {
    /// Where the file system starts: `/`, or a folder in tests.
    pub(super) root: PathBuf,
    /// The environment's variables that are valid UTF-8.
    pub(super) env: BTreeMap<String, String>,
    /// Effective user id.
    pub(super) uid: u32,
    /// Runs programs.
    pub(super) runner: Runner,
    /// How long a daemon that was started may take to answer.
    pub(super) start_timeout: Duration,
    /// apt's package lists were fetched in this run.
    pub(super) lists_are_fresh: Cell<bool>,
}

impl System {
    /// The machine that this process runs on.
    pub fn real() -> Self {
        Self {
            root: PathBuf::from("/"),
            env: env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
            uid: rustix::process::geteuid().as_raw(),
            runner: Box::new(run_for_real),
            start_timeout: START_TIMEOUT,
            lists_are_fresh: Cell::new(false),
        }
    }

    /// An absolute path below the root.
    pub(super) fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// A variable that is set and not empty.
    pub(super) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// What decides where engines are looked for.
    pub(super) fn environment(&self) -> Environment {
        Environment::new(self.root.clone(), |name| self.env.get(name).cloned())
    }

    /// A program's path, searched in `PATH` and then in the system's folders, which a user's `PATH` may leave out.
    pub(super) fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = self.var("PATH").unwrap_or_default();
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        let system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        folders
            .chain(system)
            .map(|folder| Path::new(folder).join(name))
            .find(|file| self.path(file).is_file())
    }

    /// Runs a short program and keeps its output.
    pub(super) fn run(&self, invocation: &Invocation) -> io::Result<Output> {
        self.run_waiting(invocation, &mut || {})
    }

    /// Runs a program, keeps its output, and calls `on_wait` while it runs.
    fn run_waiting(&self, invocation: &Invocation, on_wait: &mut dyn FnMut()) -> io::Result<Output> {
        let mut stdout = Vec::new();
        let exit = self.run_into(invocation, &mut stdout, on_wait)?;
        Ok(Output { exit, stdout: String::from_utf8_lossy(&stdout).into_owned() })
    }

    /// Runs a program, writes its output to `stdout`, and calls `on_wait` while it runs.
    pub(super) fn run_into(
        &self,
        invocation: &Invocation,
        stdout: &mut dyn Write,
        on_wait: &mut dyn FnMut(),
    ) -> io::Result<Exit> {
        let result = (self.runner)(invocation, stdout, on_wait);
        match &result {
            Ok(exit) => tracing::debug!(command = %invocation, code = exit.code, "ran a program"),
            Err(error) => tracing::debug!(command = %invocation, %error, "cannot run a program"),
        }
        result
    }

    /// Runs a program that must succeed.
    pub(super) fn run_checked(
        &self,
        invocation: &Invocation,
        on_wait: &mut dyn FnMut(),
    ) -> Result<Output, FixError> {
        let program = invocation.program().to_owned();
        let output =
            self.run_waiting(invocation, on_wait).map_err(|source| FixError::Spawn { program, source })?;
        if output.exit.is_success() {
            return Ok(output);
        }
        // apt explains itself on both streams, the reason last.
        let text = format!("{}\n{}", output.stdout, output.exit.stderr);
        Err(FixError::Failed { command: invocation.to_string(), code: output.exit.code, tail: tail(&text) })
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System").field("root", &self.root).field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invocation(pub Vec<String>);

impl Invocation {
    pub(super) fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self(argv.into_iter().map(Into::into).collect())
    }

    /// The program's name.
    pub(super) fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

/// The command line, quoted so that it can be pasted into a shell.
impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shell_line(self.0.iter().map(String::as_str)))
    }
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exit {
    /// `None` when a signal ended it.
    pub(super) code: Option<i32>,
    /// The end of its error output.
    pub(super) stderr: String,
}

impl Exit {
    pub(super) fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

/// How a program ended, and what it wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) exit: Exit,
    pub(super) stdout: String,
}

/// How this process can act as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// It is root.
    Root,
    /// `sudo` works without a password.
    Sudo,
    None,
}

impl Privilege {
    /// Asks the machine.
    pub(super) fn of(system: &System) -> Self {
        if system.uid == 0 {
            return Self::Root;
        }
        if system.find_program("sudo").is_none() {
            return Self::None;
        }
        // `-n` never asks, so this cannot hang on a prompt.
        match system.run(&Invocation::new(["sudo", "-n", "true"])) {
            Ok(output) if output.exit.is_success() => Self::Sudo,
            Ok(_) | Err(_) => Self::None,
        }
    }

    /// The command as root; `None` where that is out of reach.
    pub(super) fn apply(self, invocation: Invocation) -> Option<Invocation> {
        match self {
            Self::Root => Some(invocation),
            Self::Sudo => {
                Some(Invocation::new(["sudo", "-n"].map(str::to_owned).into_iter().chain(invocation.0)))
            }
            Self::None => None,
        }
    }
}

fn run_for_real(
    invocation: &Invocation,
    stdout: &mut dyn Write,
    on_wait: &mut dyn FnMut(),
) -> io::Result<Exit> {
    let mut child = Command::new(invocation.program())
        .args(invocation.0.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let stderr = scope.spawn(|| errors.map(read_tail).unwrap_or_default());
        let (sender, chunks) = sync_channel(OUTPUT_QUEUE);
        let reader = scope.spawn(move || {
            let Some(mut output) = output else { return Ok(()) };
            let mut buffer = [0; 64 << 10];
            loop {
                match output.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                    // Without a receiver the output is of no use, and the program is being killed.
                    Ok(read) if read == 0 || sender.send(buffer[..read].to_owned()).is_err() => return Ok(()),
                    Ok(_) => {}
                }
            }
        });
        let written = loop {
            match chunks.recv_timeout(WAIT) {
                Ok(chunk) => match stdout.write_all(&chunk) {
                    Ok(()) => {}
                    Err(error) => break Err(error),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
            on_wait();
        };
        drop(chunks);
        if written.is_err()
            && let Err(error) = child.kill()
        {
            tracing::warn!(program = invocation.program(), %error, "cannot kill a program whose output has no reader");
        }
        let status = child.wait()?;
        let stderr = stderr.join().unwrap_or_default();
        written?;
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked")))?;
        Ok(Exit { code: status.code(), stderr })
    })
}

/// Reads to the end and keeps the last bytes.
fn read_tail(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                kept.extend_from_slice(&buffer[..read]);
                let excess = kept.len().saturating_sub(MAX_STDERR);
                kept.drain(..excess);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::debug!(%error, "cannot read a program's error output");
                break;
            }
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_quoted_for_a_shell() {
        for (argv, expected) in [
            (&["apt-get", "install", "-y", "docker.io"][..], "apt-get install -y docker.io"),
            (&["sh", "-c", "echo it's"], r"sh -c 'echo it'\''s'"),
            (&["x", ""], "x ''"),
        ] {
            assert_eq!(Invocation::new(argv.iter().copied()).to_string(), expected);
        }
    }

    #[test]
    fn programs_run_to_their_end() {
        let system = System::real();
        for (script, code, stdout, stderr) in [
            ("echo out; echo err >&2", Some(0), "out\n", "err\n"),
            ("exit 3", Some(3), "", ""),
            ("kill -9 $$", None, "", ""),
        ] {
            let output = system.run(&Invocation::new(["sh", "-c", script])).unwrap();
            let exit = Exit { code, stderr: stderr.to_owned() };
            assert_eq!(output, Output { exit, stdout: stdout.to_owned() }, "{script}");
        }
    }

    #[test]
    fn progress_is_reported_while_a_silent_program_runs() {
        let mut calls = 0;
        let silent = Invocation::new(["sleep", "2"]);
        let exit = run_for_real(&silent, &mut Vec::new(), &mut || calls += 1).unwrap();
        assert!(exit.is_success() && calls > 0, "{exit:?}, {calls} calls");
    }

    #[test]
    fn long_error_output_keeps_its_end() {
        let text = "x".repeat(MAX_STDERR) + "the reason";
        let kept = read_tail(text.as_bytes());
        assert_eq!(kept.len(), MAX_STDERR);
        assert!(kept.ends_with("xthe reason"));
    }

    #[test]
    fn a_program_is_killed_when_its_output_cannot_be_written() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let endless = Invocation::new(["sh", "-c", "while :; do echo y; done"]);
        let error = run_for_real(&endless, &mut Full, &mut || {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn privilege_comes_from_the_user_or_from_sudo() {
        let dir = tempfile::tempdir().unwrap();
        let system = |uid, sudo: Option<i32>| {
            let bin = dir.path().join(format!("{uid}-{}/usr/bin", sudo.is_some()));
            std::fs::create_dir_all(&bin).unwrap();
            if sudo.is_some() {
                std::fs::write(bin.join("sudo"), "").unwrap();
            }
            System {
                root: bin.join("../.."),
                env: BTreeMap::new(),
                uid,
                runner: Box::new(move |_, _, _| Ok(Exit { code: sudo, stderr: String::new() })),
                start_timeout: Duration::ZERO,
                lists_are_fresh: Cell::new(false),
            }
        };
        for (system, expected) in [
            (system(0, None), Privilege::Root),
            (system(1000, Some(0)), Privilege::Sudo),
            (system(1000, Some(1)), Privilege::None),
            (system(1000, None), Privilege::None),
        ] {
            assert_eq!(Privilege::of(&system), expected);
        }
    }
}
