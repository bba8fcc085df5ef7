//! The clock of a sandbox. It counts the time in which programs of the sandbox could run. It stands
//! still while the engine pauses the container, and while termsmith is stopped.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::running;

/// Maximum length of a pause. After a longer one the sandbox counts as lost, with
/// [`super::Evidence::Paused`].
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Minimum length of a repeated wait. A wait is repeated if a pause made it too short.
const SHORTEST_WAIT: Duration = Duration::from_millis(20);
/// Pauses of this total length disturb no program, e.g. those of quick commits.
const HARMLESS: Duration = Duration::from_secs(1);

/// The pauses of a container, as its engine reports them. No process in a container can pause it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Total length of the pauses that have ended.
    ended: Duration,
    /// Start of the present pause.
    since: Option<Duration>,
}

impl Pauses {
    /// A pause begins at `now` of [`running::elapsed`]. Returns false if the container was already
    /// paused.
    pub fn begin(&mut self, now: Duration) -> bool {
        let is_new = self.since.is_none();
        self.since.get_or_insert(now);
        is_new
    }

    /// The pause ends. Returns false if there was none.
    pub fn end(&mut self, now: Duration) -> bool {
        let Some(since) = self.since.take() else { return false };
        self.ended += now.saturating_sub(since);
        true
    }

    /// Whether the container is paused.
    pub fn is_paused(&self) -> bool {
        self.since.is_some()
    }

    /// Total length of pauses up to `now`.
    fn total(&self, now: Duration) -> Duration {
        self.ended + self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

/// Time that passes for the programs of a sandbox.
pub trait SandboxTime: std::fmt::Debug + Send + Sync {
    fn elapsed(&self) -> Duration;
}

/// The clock of one sandbox.
#[derive(Clone, Debug)]
pub struct SandboxClock {
    /// `None` for an engine that never pauses.
    pauses: Option<watch::Receiver<Pauses>>,
}

impl SandboxTime for SandboxClock {
    fn elapsed(&self) -> Duration {
        self.without_pauses(Duration::MAX)
    }
}

impl SandboxClock {
    pub(super) fn new(pauses: Option<watch::Receiver<Pauses>>) -> Self {
        Self { pauses }
    }

    /// Total time of pauses and of stops of termsmith.
    pub fn disturbed(&self) -> Duration {
        let now = running::elapsed();
        self.paused(now) + running::stopped()
    }

    /// Whether programs were disturbed since [`Self::disturbed`] returned `before`.
    pub fn is_disturbed_since(&self, before: Duration) -> bool {
        self.disturbed().saturating_sub(before) > HARMLESS
    }

    /// Waits for `time`. Pauses do not count.
    pub async fn sleep(&self, time: Duration) {
        self.wait(time, Duration::MAX).await;
    }

    /// The result of `answer`. `None` if it takes longer than `time`. Pauses of up to
    /// [`LONGEST_PAUSE`] do not count.
    pub(crate) async fn timeout<T>(&self, time: Duration, answer: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = self.wait(time, LONGEST_PAUSE) => None,
        }
    }

    async fn wait(&self, time: Duration, longest_pause: Duration) {
        let end = self.without_pauses(longest_pause).saturating_add(time);
        let mut least = Duration::ZERO;
        loop {
            let left = end.saturating_sub(self.without_pauses(longest_pause));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.max(least)).await;
            least = SHORTEST_WAIT;
        }
    }

    fn without_pauses(&self, longest_pause: Duration) -> Duration {
        let now = running::elapsed();
        now.saturating_sub(self.paused(now).min(longest_pause))
    }

    fn paused(&self, now: Duration) -> Duration {
        self.pauses.as_ref().map_or(Duration::ZERO, |pauses| pauses.borrow().total(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_added_up() {
        #[derive(Clone, Copy)]
        enum Event {
            Begin,
            End,
        }
        use Event::{Begin, End};
        let check = |events: &[(u64, Event)], at_100: u64| {
            let mut pauses = Pauses::default();
            for &(second, event) in events {
                let now = Duration::from_secs(second);
                match event {
                    Begin => pauses.begin(now),
                    End => pauses.end(now),
                };
            }
            assert_eq!(pauses.total(Duration::from_secs(100)), Duration::from_secs(at_100));
        };
        check(&[], 0);
        check(&[(10, Begin)], 90);
        check(&[(10, Begin), (43, End)], 33);
        check(&[(10, Begin), (20, Begin), (43, End), (44, End)], 33);
        check(&[(10, Begin), (43, End), (50, Begin), (60, End), (99, Begin)], 44);
    }

    #[tokio::test]
    async fn a_wait_is_longer_by_a_pause() {
        let (sender, receiver) = watch::channel(Pauses::default());
        let clock = SandboxClock::new(Some(receiver));
        let pause = Duration::from_millis(400);
        let wait = Duration::from_millis(200);
        sender.send_modify(|pauses| {
            pauses.begin(running::elapsed());
        });
        let began = std::time::Instant::now();
        let ends = async {
            tokio::time::sleep(pause).await;
            sender.send_modify(|pauses| {
                pauses.end(running::elapsed());
            });
        };
        tokio::join!(clock.sleep(wait), ends);
        assert!(began.elapsed() >= pause + wait, "{:?}", began.elapsed());
        assert!(clock.is_disturbed_since(Duration::ZERO) == (clock.disturbed() > HARMLESS));
    }
}
