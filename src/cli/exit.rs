//! Exit statuses. `termsmith --help` lists them. They are from sysexits.h if it has a fitting one.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything was done.
    Ok,
    /// The command ran, and a check failed, e.g. a task was rejected, a verdict is no pass, or
    /// something is missing.
    Failed,
    /// The command line is wrong. Clap uses the same status.
    Usage,
    /// A spec, recipe or task is malformed.
    BadInput,
    /// No container engine answers.
    NoEngine,
    /// Files could not be read or written.
    Io,
    /// Work was left open, because infrastructure failed or a budget was reached. The same command
    /// completes it (EX_TEMPFAIL).
    TryAgain,
    /// An agent program cannot be used (EX_CONFIG).
    Unusable,
    /// Interrupted by Ctrl-C.
    Interrupted,
}

impl Status {
    /// Name, number and meaning of every status.
    pub const TABLE: [(Self, u8, &'static str); 9] = [
        (Self::Ok, 0, "everything was done"),
        (Self::Failed, 1, "a check failed: a task was rejected, a verdict is no pass, something is missing"),
        (Self::Usage, 2, "the command line is wrong"),
        (Self::BadInput, 65, "a spec, recipe, template, task or settings file is missing or malformed"),
        (Self::NoEngine, 69, "no container engine answers (termsmith doctor --fix)"),
        (Self::Io, 74, "files could not be read or written"),
        (
            Self::TryAgain,
            75,
            "work was left open: infrastructure failed or a budget was reached; the same command completes it",
        ),
        (
            Self::Unusable,
            78,
            "an agent program is not installed, does not start, or its conversations cannot be recorded",
        ),
        (Self::Interrupted, 130, "interrupted; the same command continues"),
    ];

    /// The process's exit status.
    pub fn code(self) -> u8 {
        Self::TABLE.iter().find(|(status, _, _)| *status == self).map_or(1, |(_, code, _)| *code)
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status.code())
    }
}
