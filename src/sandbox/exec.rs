//! Commands and programs: requests to a sandbox and their results.

use std::ffi::OsString;
use std::time::Duration;

use crate::model::ShellOutcome;

/// Limits of one shell command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecLimit {
    pub timeout: Duration,
    /// Maximum bytes of output that are returned: the first half and the last half of it. The bytes
    /// between are counted and dropped.
    pub max_output: usize,
}

impl Default for ExecLimit {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), max_output: DEFAULT_MAX_OUTPUT }
    }
}

/// Observations for a model are far smaller. Logs that are worth reading are rarely larger.
const DEFAULT_MAX_OUTPUT: usize = 64 * 1024;

/// How one command of the long-lived shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellResult {
    pub outcome: ShellOutcome,
    /// Standard output and error in the order of writing. Output of background jobs since the last
    /// command comes first. A line `… N bytes omitted …` stands for dropped bytes.
    pub output: Vec<u8>,
    /// Number of bytes written, returned or not.
    pub bytes: u64,
    /// The shell had to be restarted. So its folder, variables and functions are lost.
    pub shell_restarted: bool,
    /// Measured in the guest.
    pub took: Duration,
}

/// A program that runs outside the shell. It has a session of its own, and only the given
/// environment.
#[derive(Clone, Debug)]
pub struct Process {
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// Absolute path.
    pub cwd: String,
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    /// Maximum bytes of each of the two outputs, as in [`ExecLimit::max_output`].
    pub max_output: usize,
}

impl Process {
    /// A program, by absolute path or by the `PATH` of its own environment. It runs in `/`, without
    /// input.
    pub fn new(program: impl Into<OsString>) -> Self {
        let limit = ExecLimit::default();
        Self {
            argv: vec![program.into()],
            env: Vec::new(),
            cwd: "/".to_owned(),
            stdin: Vec::new(),
            timeout: limit.timeout,
            max_output: limit.max_output,
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds one environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// How a program of [`Process`] ended. A failed program is data, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessOutcome {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    /// The program could not be started, e.g. because it does not exist.
    NotStarted(String),
}

/// The result of a program of [`Process`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessResult {
    pub outcome: ProcessOutcome,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Number of bytes written, returned or not.
    pub stdout_bytes: u64,
    /// Number of bytes written, returned or not.
    pub stderr_bytes: u64,
    /// Measured in the guest.
    pub took: Duration,
}

impl ProcessResult {
    /// Whether the program exited with status 0.
    pub fn success(&self) -> bool {
        self.outcome == ProcessOutcome::Exited(0)
    }
}
