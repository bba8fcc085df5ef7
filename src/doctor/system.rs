//! The machine as the doctor sees it: a file system root, the environment, and a way to run programs.
//!
//! Tests put a folder and a function in their place, so that every decision can be tested without a daemon or root.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use std::{env, fmt};

/// How long a daemon that was started may take to answer; a first start on a slow disk takes 10 s.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a program's error output that are kept: its end, where the reason stands.
const MAX_STDERR: usize = 64 << 10;

/// Runs a program to its end, standard output into the writer.
pub(super) type Runner = Box<dyn Fn(&Invocation, &mut dyn Write) -> io::Result<Ran>>;

/// The machine.
pub struct System {
    /// Where the file system starts: `/`, or a folder in tests.
    pub(super) root: PathBuf,
    /// The environment's variables, as far as they are UTF-8.
    pub(super) env: BTreeMap<String, String>,
    /// Effective user id.
    pub(super) uid: u32,
    /// Runs programs.
    pub(super) runner: Runner,
    /// How long a daemon that was started may take to answer.
    pub(super) start_patience: Duration,
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
            start_patience: START_PATIENCE,
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

    /// A program's path, looked for in `PATH` and then where system programs lie, which a user's `PATH` may leave out.
    pub(super) fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = self.var("PATH").unwrap_or_default();
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        let system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        folders
            .chain(system)
            .map(|folder| Path::new(folder).join(name))
            .find(|file| self.path(file).is_file())
    }

    /// Runs a program and keeps its output.
    pub(super) fn run(&self, invocation: &Invocation) -> io::Result<Captured> {
        let mut stdout = Vec::new();
        let ran = (self.runner)(invocation, &mut stdout)?;
        Ok(Captured { ran, stdout: String::from_utf8_lossy(&stdout).into_owned() })
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
        for (index, word) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=+,@%".contains(&byte);
            if !word.is_empty() && word.bytes().all(plain) {
                write!(f, "{separator}{word}")?;
            } else {
                write!(f, "{separator}'{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// `None` when a signal ended it.
    pub(super) code: Option<i32>,
    /// The end of its error output.
    pub(super) stderr: String,
}

impl Ran {
    pub(super) fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

/// How a program ended, and what it wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Captured {
    pub(super) ran: Ran,
    pub(super) stdout: String,
}

/// What lets us change the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// We are root.
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
            Ok(captured) if captured.ran.is_success() => Self::Sudo,
            _ => Self::None,
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

fn run_for_real(invocation: &Invocation, stdout: &mut dyn Write) -> io::Result<Ran> {
    let mut command = Command::new(invocation.program());
    command
        .args(invocation.0.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (pipe, errors) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let stderr = scope.spawn(|| errors.map(read_tail).unwrap_or_default());
        let copied = pipe.map_or(Ok(0), |mut pipe| io::copy(&mut pipe, stdout));
        if copied.is_err() {
            // Whoever reads the output is gone; the program would only run on for nobody.
            let _ = child.kill();
        }
        let status = child.wait()?;
        let stderr = stderr.join().unwrap_or_default();
        copied?;
        Ok(Ran { code: status.code(), stderr })
    })
}

/// Reads to the end and keeps the last bytes.
fn read_tail(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        let excess = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_pasted() {
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
            let captured = system.run(&Invocation::new(["sh", "-c", script])).unwrap();
            let ran = Ran { code, stderr: stderr.to_owned() };
            assert_eq!(captured, Captured { ran, stdout: stdout.to_owned() }, "{script}");
        }
    }

    #[test]
    fn long_error_output_keeps_its_end() {
        let text = "x".repeat(MAX_STDERR) + "the reason";
        let kept = read_tail(text.as_bytes());
        assert_eq!(kept.len(), MAX_STDERR);
        assert!(kept.ends_with("xthe reason"));
    }

    #[test]
    fn a_reader_that_leaves_ends_the_program() {
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
        let error = run_for_real(&endless, &mut Full).unwrap_err();
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
                runner: Box::new(move |_, _| Ok(Ran { code: sudo, stderr: String::new() })),
                start_patience: Duration::ZERO,
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
