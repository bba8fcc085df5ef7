//! Why something could not be provided, and what the person at the machine can do.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Lines of a program's or daemon's output that an error quotes.
const TAIL_LINES: usize = 12;

/// A fix that failed.
#[derive(Debug, Error)]
pub(super) enum FixError {
    #[error("this needs root, and `sudo` asks for a password or is not installed")]
    NeedsRoot {
        /// What to run as root.
        command: String,
    },
    #[error("{system} is not based on Debian, so its package names are unknown")]
    UnknownSystem { system: String, what: String },
    #[error("cannot run `{program}`")]
    Spawn { program: String, source: io::Error },
    #[error("`{command}` ended with {}{}", describe_code(*code), indent(tail))]
    Failed { command: String, code: Option<i32>, tail: String },
    #[error("dockerd was started but does not answer on `{}` after {seconds} s{}", socket.display(), indent(tail))]
    StartTimedOut { socket: PathBuf, seconds: u64, tail: String },
    #[error("dockerd runs (process {pid}) but does not answer on `{}`{}", socket.display(), indent(tail))]
    Unresponsive { pid: u32, socket: PathBuf, tail: String },
    #[error(
        "DOCKER_HOST is {endpoint}, which the doctor cannot start: it starts only the engine of this machine"
    )]
    NotLocal { endpoint: String },
    #[error("access to `{}` is denied", socket.display())]
    Denied { socket: PathBuf },
    #[error("cannot remove the stale file `{}`", path.display())]
    Unremovable { path: PathBuf, source: io::Error },
    #[error("no engine answers")]
    NoEngine,
    #[error("no reply from {endpoint} to a request to {action}: {reason}")]
    NoReply { endpoint: String, action: &'static str, reason: String },
    #[error("the engine failed to {action}: {message}")]
    Refused { action: &'static str, message: String },
}

impl FixError {
    /// What to do about it.
    pub(super) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NeedsRoot { command } => format!("run as root: `{command}`; then run the doctor again"),
            Self::UnknownSystem { what, .. } => {
                format!("install {what} yourself (names of Debian), then run the doctor again")
            }
            Self::StartTimedOut { .. } | Self::Unresponsive { .. } => {
                "read the daemon's log (`/var/log/docker.log`, or `journalctl -u docker`), stop the daemon, and run the doctor \
                 again"
                    .to_owned()
            }
            Self::Failed { .. } => "fix the error above, then run the doctor again".to_owned(),
            Self::NotLocal { .. } => "start the engine there, or unset DOCKER_HOST".to_owned(),
            Self::Denied { .. } => {
                "run `sudo usermod -aG docker \"$USER\"`, then log in again (members of that group are as powerful as root)"
                    .to_owned()
            }
            Self::Unremovable { .. } => "remove it as root".to_owned(),
            Self::NoEngine => "see the row `engine`".to_owned(),
            Self::Spawn { .. } | Self::NoReply { .. } | Self::Refused { .. } => return None,
        })
    }

    /// The error and its causes in one line, and the quoted log, if there is one.
    pub(super) fn explain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// The last lines of a text, without empty ones at either end.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().trim_start_matches('\n').lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn describe_code(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".to_owned(), |code| format!("status {code}"))
}

fn indent(tail: &str) -> String {
    tail.lines().fold(String::new(), |text, line| text + "\n  | " + line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_quote_the_end_of_the_log() {
        let log: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let error = FixError::Failed { command: "apt-get update".into(), code: Some(100), tail: tail(&log) };
        let text = error.explain();
        assert!(text.starts_with("`apt-get update` ended with status 100\n  | line 9\n"), "{text}");
        assert!(text.ends_with("  | line 20"), "{text}");
    }

    #[test]
    fn causes_are_named() {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let error = FixError::Spawn { program: "apt-get".into(), source };
        assert_eq!(error.explain(), "cannot run `apt-get`: entity not found");
    }
}
