//! Maps Bollard's errors to ours.

use std::error::Error as _;
use std::time::Duration;

use bollard::errors::Error;

use crate::sandbox::EngineError;

/// Maximum attempts of a request without side effects.
const ATTEMPTS: usize = 3;
/// Delay before the second attempt; doubled before each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Repeats a request after an answer that an overloaded engine, or a proxy before it, may have produced: 5xx, a broken connection, or a 404
/// for an object that existed a moment ago. Only for requests that may be repeated. Success costs nothing.
pub(super) async fn asked_again<T, F>(mut ask: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = PAUSE;
    for attempt in 1..ATTEMPTS {
        match ask().await {
            Err(error) if is_doubtful(&error) => {
                tracing::debug!(attempt, error = %full_message(&error), "asking the engine again");
            }
            answer => return answer,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    ask().await
}

fn is_doubtful(error: &Error) -> bool {
    match status(error) {
        Some(status) => status >= 500 || status == 404 || status == 429,
        None => true,
    }
}

/// The HTTP status, if the engine answered at all.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The error and its cause: bollard's own text is often only "error in the client".
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

/// Classifies an error of `action`.
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

/// The engine's message ends with the name.
fn last_word(message: &str) -> String {
    message.split_whitespace().next_back().unwrap_or_default().to_owned()
}
