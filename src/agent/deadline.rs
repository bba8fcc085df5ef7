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

#[derive(Debug)]
struct State {
    /// Reading of the clock at which the time is up.
    end: Duration,
    /// Set during a pause.
    held: Option<Held>,
}

/// A pause. An agent with several conversations can wait for several replies at once: the pause
/// ends with the last of them.
#[derive(Debug)]
struct Held {
    /// Reading of the clock at its start.
    since: Duration,
    /// Number of calls that are under way.
    calls: u32,
    /// The readings of the clock between which a call was not being answered. Calls wait before
    /// they are answered.
    waits: Vec<(Duration, Duration)>,
    /// How much longer a reply counts than the agent waited for it, at most so far. E.g. a reply from
    /// the journal is there at once, and counts the time that it took at first.
    excess: Duration,
}

/// A call during which the time of an episode stands still.
#[derive(Debug)]
#[must_use]
pub(super) struct Pause {
    /// Reading of the clock at its start.
    since: Duration,
}

impl Deadline {
    /// The deadline is `time` from now.
    pub fn after(time: Duration, clock: impl SandboxTime + 'static) -> Self {
        let state = State { end: clock.elapsed().saturating_add(time), held: None };
        Self { clock: Arc::new(clock), state: Mutex::new(state) }
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        let state = self.state();
        let now = state.held.as_ref().map_or_else(|| self.clock.elapsed(), |held| held.since);
        state.end.saturating_sub(now)
    }

    /// Starts anew: from now on, `time` is left.
    pub(super) fn restart(&self, time: Duration) {
        *self.state() = State { end: self.clock.elapsed().saturating_add(time), held: None };
    }

    /// Stops the time until [`Self::resume`].
    pub(super) fn pause(&self) -> Pause {
        let now = self.clock.elapsed();
        let begun = Held { since: now, calls: 0, waits: Vec::new(), excess: Duration::ZERO };
        self.state().held.get_or_insert(begun).calls += 1;
        Pause { since: now }
    }

    /// Lets the time pass again, unless other calls are under way. The call counts as `counted`.
    /// That may be longer than the call: a reply from the journal took its time in an earlier
    /// process. Times at which two calls are answered count once.
    #[expect(clippy::needless_pass_by_value, reason = "a pause ends once")]
    pub(super) fn resume(&self, pause: Pause, counted: Duration) {
        let now = self.clock.elapsed();
        let mut state = self.state();
        let Some(held) = &mut state.held else { return };
        let took = now.saturating_sub(pause.since);
        let answered_at = now.saturating_sub(counted).max(pause.since);
        held.waits.push((pause.since, answered_at));
        held.excess = held.excess.max(counted.saturating_sub(took));
        held.calls = held.calls.saturating_sub(1);
        if held.calls == 0 {
            let (waited, excess) = (covered(std::mem::take(&mut held.waits)), held.excess);
            state.held = None;
            state.end = state.end.saturating_add(waited).saturating_sub(excess);
        }
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

/// The time that spans cover together.
fn covered(mut spans: Vec<(Duration, Duration)>) -> Duration {
    spans.sort_unstable();
    let (mut sum, mut until) = (Duration::ZERO, Duration::ZERO);
    for (start, end) in spans {
        sum += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    sum
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
                let call = deadline.pause();
                clock.pass(40);
                deadline.resume(call, Duration::ZERO);
                clock.pass(1);
            },
            9,
        );
        check(
            |deadline, clock| {
                let call = deadline.pause();
                clock.pass(3);
                deadline.resume(call, seconds(4));
            },
            6,
        );
        check(
            |deadline, _| {
                let call = deadline.pause();
                deadline.resume(call, seconds(1 << 40));
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
                let call = deadline.pause();
                clock.pass(5);
                deadline.extend(seconds(4));
                deadline.resume(call, Duration::ZERO);
            },
            10,
        );
        check(|deadline, _| deadline.restart(seconds(3)), 3);
        // Two calls at once. Both are answered during the same 3 s, and one waited before.
        check(
            |deadline, clock| {
                let one = deadline.pause();
                clock.pass(20);
                let other = deadline.pause();
                clock.pass(3);
                deadline.resume(other, seconds(3));
                assert_eq!(deadline.left(), seconds(10));
                deadline.resume(one, seconds(3));
            },
            7,
        );
        // Both waited at the same time.
        check(
            |deadline, clock| {
                let (one, other) = (deadline.pause(), deadline.pause());
                clock.pass(20);
                deadline.resume(other, seconds(1));
                clock.pass(1);
                deadline.resume(one, seconds(2));
                clock.pass(1);
            },
            7,
        );
    }
}
