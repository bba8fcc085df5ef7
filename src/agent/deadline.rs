//! The time limit of an episode, and what counts against it.
//!
//! An agent's time is that of its commands and of the model's replies. A reply takes the time of the request that was answered. Queues, rate limits,
//! pauses between attempts, and attempts that failed are the infrastructure's: however long an endpoint is out of order, no episode ends by its
//! time limit meanwhile. It waits until the call has a reply or an error, and an error leaves the rollout open.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which the end of the time is looked for: it may be moved while it is awaited.
const LOOK: Duration = Duration::from_millis(500);

/// When an episode's time is up.
#[derive(Debug)]
pub struct Deadline(Mutex<State>);

#[derive(Clone, Copy, Debug)]
struct State {
    end: Instant,
    /// Since when the time does not pass.
    paused: Option<Instant>,
}

impl Deadline {
    /// After `time` from now.
    pub fn after(time: Duration) -> Self {
        Self(Mutex::new(State { end: Instant::now() + time, paused: None }))
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        let State { end, paused } = *self.state();
        end.saturating_duration_since(paused.unwrap_or_else(Instant::now))
    }

    /// Begins again: `time` is left from now on.
    pub(super) fn restart(&self, time: Duration) {
        *self.state() = State { end: Instant::now() + time, paused: None };
    }

    /// The time does not pass until [`Self::resume`].
    pub(super) fn pause(&self) {
        self.state().paused.get_or_insert_with(Instant::now);
    }

    /// The time passes again, and `counted` of it has passed meanwhile. That may be more than was waited for: a reply from the journal took
    /// its time in an earlier process.
    pub(super) fn resume(&self, counted: Duration) {
        let mut state = self.state();
        let Some(since) = state.paused.take() else { return };
        let end = state.end + since.elapsed();
        // Before the clock's first instant: the time is up in any case.
        state.end = end.checked_sub(counted).unwrap_or(since);
    }

    /// Waits until the time is up.
    pub(super) async fn passed(&self) {
        loop {
            let left = self.left();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// A poisoned lock only means that another task panicked between two complete changes.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// `expect` is what is left of ten seconds, to the second.
    #[test]
    fn only_what_is_counted_passes() {
        let check = |change: fn(&Deadline), expect: u64| {
            let deadline = Deadline::after(seconds(10));
            change(&deadline);
            let left = deadline.left();
            assert_eq!(left.as_secs_f64().round() as u64, expect, "{left:?}");
        };
        check(|_| {}, 10);
        check(
            |deadline| {
                deadline.pause();
                std::thread::sleep(Duration::from_millis(1100));
                deadline.resume(Duration::ZERO);
            },
            10,
        );
        check(
            |deadline| {
                deadline.pause();
                deadline.resume(seconds(4));
            },
            6,
        );
        check(
            |deadline| {
                deadline.pause();
                deadline.resume(seconds(1 << 40));
            },
            0,
        );
        // It was not paused.
        check(|deadline| deadline.resume(seconds(4)), 10);
        check(|deadline| deadline.restart(seconds(3)), 3);
    }
}
