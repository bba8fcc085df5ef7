//! The time limit of an episode, and what counts against it.
//!
//! Commands of the agent and replies of its model take time from the limit. A reply takes the time
//! of the request that was answered. Queues, rate limits, failed attempts and the pauses between
//! them do not count: they are the infrastructure's. An error of a call leaves the rollout open.
//! The clock is the sandbox's. It stands still while the agent's programs cannot run, e.g. during a
//! `docker pause`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sandbox::SandboxTime;

/// Interval at which [`Deadline::passed`] looks again: the deadline may move meanwhile.
const LOOK: Duration = Duration::from_millis(500);

/// When an episode's time is up.
#[derive(Debug)]
pub struct Deadline {
    clock: Arc<dyn SandboxTime>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Reading of the clock at which the time is up.
    end: Duration,
    /// Set during a pause: the reading of the clock at its start.
    held: Option<Duration>,
}

impl Deadline {
    /// The deadline is `time` from now.
    pub fn after(time: Duration, clock: impl SandboxTime + 'static) -> Self {
        let state = State { end: clock.elapsed().saturating_add(time), held: None };
        Self { clock: Arc::new(clock), state: Mutex::new(state) }
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        let State { end, held } = *self.state();
        end.saturating_sub(held.unwrap_or_else(|| self.clock.elapsed()))
    }

    /// Starts anew: from now on, `time` is left.
    pub(super) fn restart(&self, time: Duration) {
        *self.state() = State { end: self.clock.elapsed().saturating_add(time), held: None };
    }

    /// Stops the time until [`Self::resume`].
    pub(super) fn pause(&self) {
        self.state().held.get_or_insert_with(|| self.clock.elapsed());
    }

    /// Lets the time pass again. The pause counts as `counted`. That may be longer than the pause:
    /// a reply from the journal took its time in an earlier process.
    pub(super) fn resume(&self, counted: Duration) {
        let mut state = self.state();
        let Some(since) = state.held.take() else { return };
        let waited = self.clock.elapsed().saturating_sub(since);
        state.end = state.end.saturating_add(waited).saturating_sub(counted);
    }

    /// Moves the deadline by `time`, e.g. because a busy host ran nothing of the agent's. Does
    /// nothing during a pause, which moves the deadline itself.
    pub fn extend(&self, time: Duration) {
        let mut state = self.state();
        if state.held.is_none() {
            state.end = state.end.saturating_add(time);
        }
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

    /// A poisoned lock has a valid state: no change panics halfway.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Seconds of a clock that the test sets.
    #[derive(Clone, Debug, Default)]
    struct Seconds(Arc<AtomicU64>);

    impl Seconds {
        fn pass(&self, seconds: u64) {
            self.0.fetch_add(seconds, Ordering::Relaxed);
        }
    }

    impl SandboxTime for Seconds {
        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Rows: what happens to a deadline of ten seconds, and the seconds left after it.
    #[test]
    fn only_what_is_counted_passes() {
        let check = |change: fn(&Deadline, &Seconds), expect: u64| {
            let clock = Seconds::default();
            clock.pass(100);
            let deadline = Deadline::after(seconds(10), clock.clone());
            change(&deadline, &clock);
            assert_eq!(deadline.left(), seconds(expect));
        };
        check(|_, _| {}, 10);
        check(|_, clock| clock.pass(4), 6);
        check(|_, clock| clock.pass(40), 0);
        check(
            |deadline, clock| {
                deadline.pause();
                clock.pass(40);
                deadline.resume(Duration::ZERO);
                clock.pass(1);
            },
            9,
        );
        check(
            |deadline, clock| {
                deadline.pause();
                clock.pass(3);
                deadline.resume(seconds(4));
            },
            6,
        );
        check(
            |deadline, _| {
                deadline.pause();
                deadline.resume(seconds(1 << 40));
            },
            0,
        );
        check(
            |deadline, clock| {
                clock.pass(5);
                deadline.extend(seconds(4));
            },
            9,
        );
        check(
            |deadline, clock| {
                deadline.pause();
                clock.pass(5);
                deadline.extend(seconds(4));
                deadline.resume(Duration::ZERO);
            },
            10,
        );
        // No pause was open.
        check(|deadline, _| deadline.resume(seconds(4)), 10);
        check(|deadline, _| deadline.restart(seconds(3)), 3);
    }
}
