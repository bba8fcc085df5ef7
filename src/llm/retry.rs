//! Retries of requests.

use std::time::{Duration, SystemTime};

use httpdate::parse_http_date;

use crate::retry::Backoff;

/// Longest `Retry-After` that is read. A date has 29 characters.
const MAX_HEADER: usize = 64;

/// How often a request is tried, and how long the pauses are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    pub backoff: Backoff,
    /// Longest wait that a server may ask for: a run must not hang on a header.
    pub retry_after_cap: Duration,
}

impl Default for RetryPolicy {
    /// Eight attempts take about two minutes. A local server can restart in that time.
    fn default() -> Self {
        Self {
            backoff: Backoff { attempts: 8, base: Duration::from_millis(500), cap: Duration::from_secs(60) },
            retry_after_cap: Duration::from_secs(300),
        }
    }
}

/// The wait that a `Retry-After` header asks for. It has seconds, or a date. A date is compared
/// with the server's clock (`date`) if the response has it, else with this machine's (`now`).
pub(super) fn retry_after(header: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let header = header.get(..MAX_HEADER.min(header.len()))?.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = parse_http_date(header).ok()?;
    let now = date.and_then(|date| parse_http_date(date).ok()).unwrap_or(now);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (header, date, expected) in [
            ("0", None, Some(0.0)),
            ("7", None, Some(7.0)),
            (" 1.5 ", None, Some(1.5)),
            ("-1", None, None),
            ("nan", None, None),
            ("1e400", None, None),
            ("soon", None, None),
            ("", None, None),
            ("Sun, 06 Nov 1994 08:49:57 GMT", None, Some(20.0)),
            ("Sunday, 06-Nov-94 08:49:57 GMT", None, Some(20.0)),
            ("Sun Nov  6 08:49:57 1994", None, Some(20.0)),
            ("Sun, 06 Nov 1994 24:49:57 GMT", None, None),
            ("Sun, 06 Nov 1994 08:49:57 CET", None, None),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some("Sun, 06 Nov 1994 08:49:52 GMT"), Some(5.0)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some("nonsense"), Some(20.0)),
            ("Sun, 06 Nov 1994 08:40:00 GMT", None, Some(0.0)),
        ] {
            let expected = expected.map(Duration::from_secs_f64);
            assert_eq!(retry_after(header, date, now), expected, "{header} {date:?}");
        }
    }
}
