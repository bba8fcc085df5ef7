//! Why something could not be provided, and what the person at the machine can do.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::http::HttpError;

/// Lines of a program's or daemon's output that an error carries.
const TAIL_LINES: usize = 12;

/// A fix that failed.
#[derive(Debug, Error)]
pub(super) enum FixError {
    #[error("this needs root, and sudo is not to be had without a password")]
    NeedsRoot {
        /// What a person would type.
        command: String,
    },
    #[error("{system} is not made from Debian, so its packages are not known here")]
    UnknownSystem { system: String, what: &'static str },
    #[error("cannot run `{program}`")]
    Spawn { program: String, source: io::Error },
    #[error("`{command}` ended with {}{}", describe_code(*code), indent(tail))]
    Failed { command: String, code: Option<i32>, tail: String },
    #[error("{daemon} was started but does not answer on `{}` after {seconds} s{}", socket.display(), indent(tail))]
    Silent { daemon: &'static str, socket: PathBuf, seconds: u64, tail: String },
    #[error("dockerd runs (process {pid}) but does not answer on `{}`{}", socket.display(), indent(tail))]
    Hung { pid: u32, socket: PathBuf, tail: String },
    #[error("DOCKER_HOST names {endpoint}, where nothing of this machine can be started")]
    Elsewhere { endpoint: String },
    #[error("access to `{}` is denied", socket.display())]
    Denied { socket: PathBuf },
    #[error("cannot remove the stale file `{}`", path.display())]
    Unremovable { path: PathBuf, source: io::Error },
    #[error("no engine answers")]
    NoEngine,
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the engine refused to {what} (status {status}): {message}")]
    Refused { what: &'static str, status: u16, message: String },
}

impl FixError {
    /// What to do about it.
    pub(super) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NeedsRoot { command } => format!("run this as root: `{command}`; then run the doctor again"),
            Self::UnknownSystem { what, .. } => format!("install {what} yourself, then run the doctor again"),
            Self::Silent { .. } | Self::Hung { .. } => {
                "read the daemon's log (`/var/log/docker.log`, or `journalctl -u docker`), stop what is left of it, and run \
                 the doctor again"
                    .to_owned()
            }
            Self::Failed { .. } => "mend what it complains of, then run the doctor again".to_owned(),
            Self::Elsewhere { .. } => "start the engine there, or unset DOCKER_HOST".to_owned(),
            Self::Denied { .. } => {
                "run `sudo usermod -aG docker \"$USER\"`, then log in anew (members of that group are as powerful as root)"
                    .to_owned()
            }
            Self::Unremovable { .. } => "remove it as root".to_owned(),
            Self::NoEngine | Self::Http(HttpError::Connect { .. }) => "see the row `engine`".to_owned(),
            Self::Spawn { .. } | Self::Http(_) | Self::Refused { .. } => return None,
        })
    }

    /// The error and its causes in one line (and the tail of a log, if it carries one).
    pub(super) fn explain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let said = error.to_string();
            // Transparent errors repeat what stands there already.
            if !text.ends_with(&said) {
                text.push_str(": ");
                text.push_str(&said);
            }
            cause = error.source();
        }
        text
    }
}

/// The last lines of a text, without empty ones at its ends.
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
    use super::super::http::Endpoint;
    use super::*;

    #[test]
    fn errors_carry_the_end_of_the_log() {
        let log: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let error = FixError::Failed { command: "apt-get update".into(), code: Some(100), tail: tail(&log) };
        let text = error.explain();
        assert!(text.starts_with("`apt-get update` ended with status 100\n  | line 9\n"), "{text}");
        assert!(text.ends_with("  | line 20"), "{text}");
    }

    #[test]
    fn causes_are_named_once() {
        let source = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = FixError::from(HttpError::Connect { endpoint: Endpoint::Tcp("h:1".into()), source });
        assert_eq!(error.explain(), "cannot connect to tcp://h:1: connection refused");
    }
}
