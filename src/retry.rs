//! Retries with exponential backoff and full jitter, for model calls and for engine operations.

use std::time::Duration;

use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};

/// How often to try, and how long to wait between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Maximum number of attempts, the first one included.
    pub attempts: u32,
    /// The first pause is drawn between zero and this. The range doubles after each attempt.
    pub base: Duration,
    /// The longest range that a pause is drawn from.
    pub cap: Duration,
}

/// Whether to try again after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    Yes,
    /// Yes, but only after this time, because the other side asked for it, e.g. by `Retry-After`.
    After(Duration),
}

impl Backoff {
    /// The pause after attempt `attempt` (counted from 1). `None` if there is no further attempt.
    pub fn next_pause(&self, seed: &str, attempt: u32, again: Again) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        match again {
            Again::Never => None,
            Again::Yes => Some(self.pause(seed, attempt)),
            Again::After(asked) => Some(self.pause_after(seed, attempt, asked)),
        }
    }

    /// A pause with full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter"). Callers
    /// have different seeds. So those that failed together do not all return at once.
    fn pause(&self, seed: &str, attempt: u32) -> Duration {
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        doubled.min(self.cap).mul_f64(fraction(seed, attempt))
    }

    /// A pause of `asked`, and a jitter of at most [`base`](Self::base).
    fn pause_after(&self, seed: &str, attempt: u32, asked: Duration) -> Duration {
        asked.saturating_add(self.base.mul_f64(fraction(seed, attempt)))
    }
}

/// A number between 0 and 1 that depends only on the arguments.
fn fraction(seed: &str, attempt: u32) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(seed.as_bytes());
    hasher.update(&attempt.to_le_bytes());
    ChaCha20Rng::from_seed(*hasher.finalize().as_bytes()).random_range(0.0..=1.0)
}

/// Calls `attempt` with its number (from 1) until it succeeds. Returns the last error if `classify`
/// says that a further attempt is useless, or if no attempt is left. `pause` sleeps between
/// attempts. An error of `pause` is returned at once.
pub async fn retry<T, E>(
    backoff: &Backoff,
    seed: &str,
    mut attempt: impl AsyncFnMut(u32) -> Result<T, E>,
    classify: impl Fn(&E) -> Again,
    mut pause: impl AsyncFnMut(Duration) -> Result<(), E>,
) -> Result<T, E> {
    let mut number = 1;
    loop {
        let error = match attempt(number).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(time) = backoff.next_pause(seed, number, classify(&error)) else { return Err(error) };
        let pause_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(attempt = number, pause_ms, "retrying");
        pause(time).await?;
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const BACKOFF: Backoff =
        Backoff { attempts: 4, base: Duration::from_millis(500), cap: Duration::from_secs(60) };

    #[test]
    fn pauses_grow_are_bounded_and_differ() {
        for attempt in 1..40 {
            let longest = BACKOFF.base.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(BACKOFF.cap);
            let pauses: Vec<_> = (0..50).map(|seed: u32| BACKOFF.pause(&seed.to_string(), attempt)).collect();
            assert!(pauses.iter().all(|pause| *pause <= longest), "{attempt}");
            // Full jitter puts about half of the pauses into the lower half of the range.
            let short = pauses.iter().filter(|pause| **pause < longest / 2).count();
            assert!((10..40).contains(&short), "{attempt}: {short} of 50");
            assert_eq!(pauses[0], BACKOFF.pause("0", attempt));
            let asked = Duration::from_secs(9);
            let after = BACKOFF.pause_after("0", attempt, asked);
            assert!((asked..=asked + BACKOFF.base).contains(&after), "{attempt}: {after:?}");
        }
    }

    #[test]
    fn attempts_and_pauses() {
        /// Each row: the errors of the first attempts (later ones succeed), the index of the pause
        /// that fails, and what is expected: number of attempts, number of pauses, result.
        fn check(errors: &[Again], broken_pause: Option<usize>, expect: (u32, usize, Result<u32, &str>)) {
            let (mut attempts, mut pauses) = (0, Vec::new());
            let result = retry(
                &BACKOFF,
                "seed",
                async |number| {
                    attempts = number;
                    errors.get(number as usize - 1).map_or(Ok(number), |again| Err((*again, "failed")))
                },
                |(again, _)| *again,
                async |time| {
                    pauses.push(time);
                    match broken_pause {
                        Some(broken) if broken == pauses.len() => Err((Again::Never, "stopped")),
                        Some(_) | None => Ok(()),
                    }
                },
            );
            let result = result.now_or_never().unwrap().map_err(|(_, message)| message);
            assert_eq!((attempts, pauses.len(), result), expect, "{errors:?}");
            for (again, pause) in errors.iter().zip(&pauses) {
                if let Again::After(asked) = again {
                    assert!(pause >= asked, "{errors:?}");
                }
            }
        }
        let long = Again::After(Duration::from_secs(100));
        check(&[], None, (1, 0, Ok(1)));
        check(&[Again::Never], None, (1, 0, Err("failed")));
        check(&[Again::Yes], None, (2, 1, Ok(2)));
        check(&[Again::Yes, Again::Never], None, (2, 1, Err("failed")));
        check(&[Again::Yes, long, Again::Yes], None, (4, 3, Ok(4)));
        check(&[Again::Yes; 9], None, (4, 3, Err("failed")));
        check(&[Again::Yes; 9], Some(2), (2, 2, Err("stopped")));
    }
}
