//! Bollard's errors, sorted into ours.

use std::error::Error as _;

use bollard::errors::Error;

use crate::sandbox::EngineError;

/// The HTTP status, where the engine answered at all.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The error and what caused it: bollard's own text is often only "error in the client".
pub(super) fn full_message(error: &Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = error.source();
    }
    message
}

/// Sorts an error of `action`.
pub(super) fn engine_error(action: &'static str, endpoint: &str, error: Error) -> EngineError {
    match error {
        Error::DockerResponseServerError { status_code: 404, message }
            if message.contains("No such container") =>
        {
            EngineError::NoSuchContainer { container: last_word(&message) }
        }
        Error::DockerResponseServerError { status_code: 404, message }
            if message.contains("No such image") =>
        {
            EngineError::MissingImage { base: last_word(&message), message }
        }
        Error::DockerResponseServerError { status_code, message } => {
            EngineError::Refused { action, status: status_code, message }
        }
        Error::SocketNotFoundError(_) => unreachable(endpoint, &error),
        Error::HyperLegacyError { ref err } if err.is_connect() => unreachable(endpoint, &error),
        other => EngineError::Transport { action, message: full_message(&other) },
    }
}

fn unreachable(endpoint: &str, error: &Error) -> EngineError {
    EngineError::Unreachable {
        endpoint: endpoint.to_owned(),
        message: full_message(error),
        hint: "is the engine still running?",
    }
}

/// The engine ends such messages with the name.
fn last_word(message: &str) -> String {
    message.split_whitespace().next_back().unwrap_or_default().to_owned()
}
