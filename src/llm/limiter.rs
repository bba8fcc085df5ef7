//! What an endpoint bears: requests and tokens a minute, and calls at once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::Clock;

/// The window that "a minute" means: providers refuse what goes beyond the limit within any minute.
const MINUTE: Duration = Duration::from_secs(60);

/// The limits of one endpoint, shared by all roles that use it.
#[derive(Debug)]
pub(super) struct Limiter {
    slots: Semaphore,
    window: Mutex<Window>,
}

/// Leave to send one request. The slot is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    limiter: &'a Limiter,
    grant: u64,
    _slot: SemaphorePermit<'a>,
}

impl Limiter {
    pub(super) fn new(
        concurrency: u32,
        requests_per_minute: Option<u32>,
        tokens_per_minute: Option<u64>,
    ) -> Self {
        Self {
            slots: Semaphore::new(concurrency as usize),
            window: Mutex::new(Window::new(requests_per_minute.map(u64::from), tokens_per_minute)),
        }
    }

    /// Waits for a slot, then until the minute has room for a request of `tokens`.
    pub(super) async fn enter(&self, clock: &dyn Clock, tokens: u64) -> Option<Pass<'_>> {
        let slot = self.slots.acquire().await.ok()?;
        let (grant, mut until) = self.window(|window| window.grant(clock.elapsed(), tokens));
        let pass = Pass { limiter: self, grant, _slot: slot };
        while let Some(wait) = until.checked_sub(clock.elapsed()).filter(|wait| !wait.is_zero()) {
            clock.sleep(wait).await;
            // Another call may have been told to wait longer meanwhile.
            until = until.max(self.window(|window| window.hold));
        }
        Some(pass)
    }

    /// Nobody sends before `until`: the server asked one caller to wait, and means all.
    pub(super) fn hold(&self, until: Duration) {
        self.window(|window| window.hold = window.hold.max(until));
    }

    fn window<T>(&self, f: impl FnOnce(&mut Window) -> T) -> T {
        f(&mut self.window.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pass<'_> {
    /// The request came to `tokens`, not to what was thought.
    pub(super) fn settle(&self, tokens: u64) {
        self.limiter.window(|window| window.settle(self.grant, tokens));
    }
}

/// A sliding minute: what was sent and when, so that no minute has more than its share wherever it begins.
#[derive(Debug)]
struct Window {
    requests: Option<u64>,
    tokens: Option<u64>,
    /// Time and tokens of each grant, in order of time. Grants of the future are queued callers.
    grants: VecDeque<(Duration, u64)>,
    /// Number of the first grant that is kept.
    first: u64,
    /// Nothing starts before.
    hold: Duration,
}

impl Window {
    fn new(requests: Option<u64>, tokens: Option<u64>) -> Self {
        Self { requests, tokens, grants: VecDeque::new(), first: 0, hold: Duration::ZERO }
    }

    /// The number of a grant for `tokens`, and when it begins: first come, first served.
    fn grant(&mut self, now: Duration, tokens: u64) -> (u64, Duration) {
        if self.requests.is_none() && self.tokens.is_none() {
            return (u64::MAX, self.hold);
        }
        while self.grants.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            self.grants.pop_front();
            self.first += 1;
        }
        // One request beyond the limit would wait for ever; alone in its minute it is the server's to refuse.
        let tokens = tokens.min(self.tokens.unwrap_or(u64::MAX));
        let last = self.grants.back().map_or(Duration::ZERO, |(at, _)| *at);
        let mut start = now.max(last).max(self.hold);
        let mut count = self.grants.len() as u64;
        let mut sum: u64 = self.grants.iter().map(|(_, tokens)| tokens).sum();
        for (at, weight) in &self.grants {
            let over = *at + MINUTE <= start;
            let full = self.requests.is_some_and(|most| count >= most)
                || self.tokens.is_some_and(|most| sum + tokens > most);
            if !over && !full {
                break;
            }
            start = start.max(*at + MINUTE);
            count -= 1;
            sum -= weight;
        }
        self.grants.push_back((start, tokens));
        (self.first + self.grants.len() as u64 - 1, start)
    }

    fn settle(&mut self, grant: u64, tokens: u64) {
        let place = grant.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some((_, weight)) = place.and_then(|place| self.grants.get_mut(place)) {
            *weight = tokens;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn grants() {
        let check = |requests, tokens, calls: &[(u64, u64, u64)]| {
            let mut window = Window::new(requests, tokens);
            for (now, weight, expected) in calls {
                let (_, at) = window.grant(seconds(*now), *weight);
                assert_eq!(at.max(seconds(*now)), seconds(*expected), "{requests:?} {tokens:?} {calls:?}");
            }
        };
        check(None, None, &[(0, 9, 0), (0, 9, 0), (5, 9, 5)]);
        check(
            Some(2),
            None,
            &[(0, 9, 0), (10, 9, 10), (20, 9, 60), (20, 9, 70), (20, 9, 120), (130, 9, 130)],
        );
        check(None, Some(100), &[(0, 60, 0), (1, 40, 1), (2, 1, 60), (2, 99, 61), (2, 1, 120)]);
        // More than the limit allows goes alone.
        check(None, Some(100), &[(0, 500, 0), (1, 500, 60), (1, 1, 120)]);
        check(Some(1), Some(100), &[(0, 10, 0), (0, 10, 60), (0, 100, 120)]);
    }

    #[test]
    fn what_was_not_used_is_given_back() {
        let mut window = Window::new(None, Some(100));
        let (first, _) = window.grant(seconds(0), 100);
        window.settle(first, 10);
        assert_eq!(window.grant(seconds(0), 90).1, seconds(0));
        assert_eq!(window.grant(seconds(0), 1).1, seconds(60));
        window.hold = seconds(300);
        assert_eq!(window.grant(seconds(0), 1).1, seconds(300));
    }

    proptest! {
        #[test]
        fn no_minute_has_more_than_its_share(
            requests in 1_u64..6,
            tokens in 1_u64..200,
            calls in proptest::collection::vec((0_u64..40, 0_u64..120), 1..60),
        ) {
            let mut window = Window::new(Some(requests), Some(tokens));
            let mut now = 0;
            let mut sent: Vec<(Duration, u64)> = Vec::new();
            for (pause, weight) in calls {
                now += pause;
                let (_, at) = window.grant(seconds(now), weight);
                prop_assert!(at >= seconds(now));
                sent.push((at, weight.min(tokens)));
            }
            for (begin, _) in &sent {
                let minute: Vec<_> = sent.iter().filter(|(at, _)| at >= begin && *at < *begin + MINUTE).collect();
                prop_assert!(minute.len() as u64 <= requests);
                prop_assert!(minute.iter().map(|(_, weight)| weight).sum::<u64>() <= tokens);
            }
        }
    }
}
