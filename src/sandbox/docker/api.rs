//! Maps Bollard's errors to ours.

use std::error::Error as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::errors::Error;

use crate::retry::{Again, Backoff};
use crate::sandbox::EngineError;

/// Attempts of a request that may be repeated, and the pauses between them. The pauses are short,
/// because callers hold a lock or a slot meanwhile.
const BACKOFF: Backoff =
    Backoff { attempts: 3, base: Duration::from_millis(200), cap: Duration::from_millis(400) };

/// Repeats a request after an answer of an overloaded engine or a proxy: 5xx, a broken connection,
/// or a 404 for an object that existed a moment ago. Only for requests that may be repeated.
pub(super) async fn asked_again<T, F>(mut ask: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    // Requests that fail together get different pauses.
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    let seed = REQUESTS.fetch_add(1, Ordering::Relaxed).to_string();
    // `crate::retry::retry` takes async closures. A future that awaits one is not known to be
    // `Send`, and the engine's boxed futures must be. The decision after each attempt is the same
    // function.
    let mut attempt = 1;
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(pause) = BACKOFF.next_pause(&seed, attempt, again(&error)) else { return Err(error) };
        tracing::debug!(attempt, error = %full_message(&error), "asking the engine again");
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

fn again(error: &Error) -> Again {
    match status(error) {
        Some(status) if status >= 500 || status == 404 || status == 429 => Again::Yes,
        Some(_) => Again::Never,
        None => Again::Yes,
    }
}

/// Whether the engine has the container, but not the path that the request names. It answers 404
/// for both.
pub(super) fn is_missing_path(error: &Error) -> bool {
    match error {
        Error::DockerResponseServerError { status_code: 404, message } => !names_missing_container(message),
        _ => false,
    }
}

fn names_missing_container(message: &str) -> bool {
    message.to_ascii_lowercase().contains("no such container")
}

/// The HTTP status. `None` if the engine did not answer.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The error and its cause. Bollard's own text is often only "error in the client".
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
            if names_missing_container(&message) =>
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

/// The last word of an engine's message, which is the name.
fn last_word(message: &str) -> String {
    message.split_whitespace().next_back().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Blame;

    #[test]
    fn a_missing_container_is_not_a_missing_path() {
        let check = |status_code: u16, message: &str, missing_path: bool, blame: Blame| {
            let error = || Error::DockerResponseServerError { status_code, message: message.to_owned() };
            assert_eq!(is_missing_path(&error()), missing_path, "{status_code} {message}");
            let ours = engine_error("upload files", "unix:///x", error());
            assert_eq!(ours.blame(), blame, "{status_code} {message}");
        };
        check(404, "Could not find the file /srv/ in container termsmith-1", true, Blame::Infra);
        check(404, "No such container: termsmith-1", false, Blame::Infra);
        // Podman's wording.
        check(404, "no container with name or ID \"x\" found: no such container", false, Blame::Infra);
        check(409, "No such container: termsmith-1", false, Blame::Infra);
        check(500, "boom", false, Blame::Infra);
        check(400, "boom", false, Blame::Caller);
    }

    #[tokio::test]
    async fn requests_are_repeated_after_doubtful_answers_only() {
        let check = async |statuses: &[u16], attempts: usize, expect: Result<(), u16>| {
            let mut made = 0;
            let answered = asked_again(|| {
                let answer = match statuses.get(made) {
                    Some(&status_code) => {
                        Err(Error::DockerResponseServerError { status_code, message: "boom".to_owned() })
                    }
                    None => Ok(()),
                };
                made += 1;
                std::future::ready(answer)
            });
            let answered = answered.await.map_err(|error| status(&error).unwrap());
            assert_eq!((made, answered), (attempts, expect), "{statuses:?}");
        };
        check(&[], 1, Ok(())).await;
        check(&[400], 1, Err(400)).await;
        check(&[500, 404], 3, Ok(())).await;
        check(&[503, 429, 500, 500], 3, Err(500)).await;
    }
}
