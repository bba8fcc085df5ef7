//! How long to wait before a request is sent again.

use std::time::{Duration, SystemTime};

use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};

use super::http_date;
use crate::model::Key;

/// Longest text of a header that is looked at.
const MAX_HEADER: usize = 64;

/// When to try again, and when no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Requests sent for one call at most.
    pub attempts: u32,
    /// The first wait is drawn from zero to this; it doubles with every attempt.
    pub base: Duration,
    /// No wait of ours is drawn from a longer range.
    pub cap: Duration,
    /// No wait that a server asks for is longer: a run must not hang on a header.
    pub retry_after_cap: Duration,
}

impl Default for RetryPolicy {
    /// Eight attempts bear about two minutes of an endpoint's absence, a restart of a local server included.
    fn default() -> Self {
        Self {
            attempts: 8,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(60),
            retry_after_cap: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// The wait after attempt `attempt` (from 1) of the call `key`: full jitter, as in "Exponential Backoff And Jitter" of the
    /// AWS Architecture Blog, on top of what the server asked for, so that callers who were refused together do not come
    /// back together. Drawn from the key, so that no random state is shared.
    pub(super) fn wait(&self, key: &Key, attempt: u32, asked: Option<Duration>) -> Duration {
        let mut hasher = blake3::Hasher::new();
        hasher.update(key.as_str().as_bytes());
        hasher.update(&attempt.to_le_bytes());
        let mut rng = ChaCha20Rng::from_seed(*hasher.finalize().as_bytes());
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        let range = match asked {
            // The server's own wait is long enough; only the crowd must be spread.
            Some(_) => self.base,
            None => doubled.min(self.cap),
        };
        let jitter = range.mul_f64(rng.random_range(0.0..=1.0));
        asked.unwrap_or_default().min(self.retry_after_cap) + jitter
    }
}

/// The wait that a `Retry-After` header asks for: seconds, or a date, which is held against the server's own clock where the
/// response has one (`date`) and against ours (`now`) otherwise.
pub(super) fn retry_after(header: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let header = header.get(..MAX_HEADER.min(header.len()))?.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = http_date::parse(header)?;
    let now = date.and_then(http_date::parse).unwrap_or(now);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = http_date::parse("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (header, date, expected) in [
            ("0", None, Some(0.0)),
            ("7", None, Some(7.0)),
            (" 1.5 ", None, Some(1.5)),
            ("-1", None, None),
            ("nan", None, None),
            ("1e400", None, None),
            ("soon", None, None),
            ("Sun, 06 Nov 1994 08:49:57 GMT", None, Some(20.0)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some("Sun, 06 Nov 1994 08:49:52 GMT"), Some(5.0)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some("nonsense"), Some(20.0)),
            ("Sun, 06 Nov 1994 08:40:00 GMT", None, Some(0.0)),
        ] {
            let expected = expected.map(Duration::from_secs_f64);
            assert_eq!(retry_after(header, date, now), expected, "{header} {date:?}");
        }
    }

    #[test]
    fn waits_grow_are_bounded_and_differ() {
        let policy = RetryPolicy::default();
        let key = |i: u32| Key::parse(format!("{i:064x}")).unwrap();
        for attempt in 1..40 {
            let longest = policy.base.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(policy.cap);
            let waits: Vec<_> = (0..50).map(|i| policy.wait(&key(i), attempt, None)).collect();
            assert!(waits.iter().all(|wait| *wait <= longest), "{attempt}");
            // Full jitter: half of the range is used by half of the calls, more or less.
            let short = waits.iter().filter(|wait| **wait < longest / 2).count();
            assert!((10..40).contains(&short), "{attempt}: {short} of 50");
            assert_eq!(waits[0], policy.wait(&key(0), attempt, None));
            let asked = policy.wait(&key(0), attempt, Some(Duration::from_secs(9)));
            assert!((Duration::from_secs(9)..=Duration::from_secs(9) + policy.base).contains(&asked));
        }
        let bounded = policy.wait(&key(0), 1, Some(Duration::from_secs(86_400)));
        assert!(bounded <= policy.retry_after_cap + policy.base);
    }
}
