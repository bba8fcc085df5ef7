//! The limits of an endpoint: concurrent requests, and requests and tokens in a minute.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::clock::{Clock, millis};

/// Providers limit every window of this length.
const MINUTE: Duration = Duration::from_secs(60);

/// The limits of an endpoint. All roles that use it share them.
#[derive(Debug)]
pub(super) struct Limiter {
    slots: Semaphore,
    /// The next caller to be granted holds this. tokio's mutex is fair: first come, first served.
    queue: tokio::sync::Mutex<()>,
    window: Mutex<Window>,
    /// Notified when a grant is returned or settled.
    freed: Notify,
}

/// One of the endpoint's concurrent requests. It is free again when dropped.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    limiter: &'a Limiter,
    _permit: SemaphorePermit<'a>,
}

/// The right to send one request now. It is returned if it is dropped before [`RateGrant::sent`].
#[derive(Debug)]
#[must_use]
pub(super) struct RateGrant<'a> {
    limiter: &'a Limiter,
    number: u64,
    sent: bool,
}

impl Limiter {
    pub(super) fn new(
        concurrency: u32,
        requests_per_minute: Option<u32>,
        tokens_per_minute: Option<u64>,
    ) -> Self {
        Self {
            slots: Semaphore::new(concurrency as usize),
            queue: tokio::sync::Mutex::default(),
            window: Mutex::new(Window::new(requests_per_minute.map(u64::from), tokens_per_minute)),
            freed: Notify::new(),
        }
    }

    /// Waits for a slot. `None` cannot happen: the semaphore is never closed.
    pub(super) async fn slot(&self) -> Option<Slot<'_>> {
        let permit = self.slots.acquire().await.ok()?;
        Some(Slot { limiter: self, _permit: permit })
    }

    /// Grants nothing before `until`. The server asked one caller to wait, but it limits all.
    pub(super) fn hold(&self, until: Duration) {
        self.window(|window| window.hold = window.hold.max(until));
    }

    fn window<T>(&self, f: impl FnOnce(&mut Window) -> T) -> T {
        f(&mut self.window.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<'a> Slot<'a> {
    /// Waits until the current minute has room for a request of `tokens`. This must be the last
    /// wait before sending. Otherwise the grant counts in an earlier minute than its request. A
    /// cancelled wait has no effect.
    pub(super) async fn grant(&self, clock: &dyn Clock, tokens: u64) -> RateGrant<'a> {
        let limiter = self.limiter;
        let _turn = limiter.queue.lock().await;
        loop {
            let freed = limiter.freed.notified();
            tokio::pin!(freed);
            // Registered before the window is read, so that no notification is missed.
            freed.as_mut().enable();
            let now = clock.elapsed();
            match limiter.window(|window| window.try_grant(now, tokens)) {
                Ok(number) => return RateGrant { limiter, number, sent: false },
                Err(until) => {
                    let wait = until.saturating_sub(now);
                    tracing::debug!(wait_ms = millis(wait), "waiting for the rate limit");
                    tokio::select! {
                        () = clock.sleep(wait) => {}
                        () = freed => {}
                    }
                }
            }
        }
    }
}

impl RateGrant<'_> {
    /// The request is sent at `now`. From now on the grant counts, even if the request fails.
    pub(super) fn sent(&mut self, now: Duration) {
        self.sent = true;
        self.limiter.window(|window| window.stamp(self.number, now));
    }

    /// The request used `tokens`, instead of the upper bound.
    pub(super) fn settle(self, tokens: u64) {
        self.limiter.window(|window| window.settle(self.number, tokens));
        self.limiter.freed.notify_waiters();
    }
}

impl Drop for RateGrant<'_> {
    fn drop(&mut self) {
        if !self.sent {
            self.limiter.window(|window| window.give_back(self.number));
            self.limiter.freed.notify_waiters();
        }
    }
}

/// A sliding window of a minute, with the requests that were sent in it.
#[derive(Debug)]
struct Window {
    requests: Option<u64>,
    tokens: Option<u64>,
    grants: Vec<Granted>,
    next_number: u64,
    /// Grants nothing before this time.
    hold: Duration,
}

#[derive(Debug)]
struct Granted {
    number: u64,
    at: Duration,
    tokens: u64,
}

impl Window {
    fn new(requests: Option<u64>, tokens: Option<u64>) -> Self {
        Self { requests, tokens, grants: Vec::new(), next_number: 0, hold: Duration::ZERO }
    }

    /// The number of a grant for `tokens`, or the time at which to ask again.
    fn try_grant(&mut self, now: Duration, tokens: u64) -> Result<u64, Duration> {
        if now < self.hold {
            return Err(self.hold);
        }
        let number = self.next_number;
        self.next_number += 1;
        if self.requests.is_none() && self.tokens.is_none() {
            return Ok(number);
        }
        self.grants.retain(|grant| grant.at + MINUTE > now);
        // A request that is larger than the limit would wait for ever. It goes alone in its minute,
        // and the server decides.
        let tokens = tokens.min(self.tokens.unwrap_or(u64::MAX));
        let fits = |count: u64, sum: u64| {
            self.requests.is_none_or(|most| count < most)
                && self.tokens.is_none_or(|most| sum.saturating_add(tokens) <= most)
        };
        let mut count = self.grants.len() as u64;
        let mut sum: u64 = self.grants.iter().map(|grant| grant.tokens).sum();
        if fits(count, sum) {
            self.grants.push(Granted { number, at: now, tokens });
            return Ok(number);
        }
        self.grants.sort_by_key(|grant| grant.at);
        for grant in &self.grants {
            count -= 1;
            sum -= grant.tokens;
            if fits(count, sum) {
                return Err(grant.at + MINUTE);
            }
        }
        Err(now + MINUTE)
    }

    fn stamp(&mut self, number: u64, at: Duration) {
        if let Some(grant) = self.find(number) {
            grant.at = at;
        }
    }

    fn settle(&mut self, number: u64, tokens: u64) {
        if let Some(grant) = self.find(number) {
            grant.tokens = tokens;
        }
    }

    fn give_back(&mut self, number: u64) {
        self.grants.retain(|grant| grant.number != number);
    }

    fn find(&mut self, number: u64) -> Option<&mut Granted> {
        self.grants.iter_mut().find(|grant| grant.number == number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A clock that stands still, so that sleeps never end.
    #[derive(Debug)]
    struct FixedClock(Duration);

    impl Clock for FixedClock {
        fn elapsed(&self) -> Duration {
            self.0
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
            std::future::pending().boxed()
        }
    }

    /// Asks until it is granted, as callers do. Returns the number and the time of the grant.
    fn granted(window: &mut Window, mut now: Duration, tokens: u64) -> (u64, Duration) {
        loop {
            match window.try_grant(now, tokens) {
                Ok(number) => return (number, now),
                Err(until) => now = until,
            }
        }
    }

    #[test]
    fn grants() {
        let check = |requests, tokens, calls: &[(u64, u64, u64)]| {
            let mut window = Window::new(requests, tokens);
            let mut last = Duration::ZERO;
            for (now, weight, expected) in calls {
                (_, last) = granted(&mut window, seconds(*now).max(last), *weight);
                assert_eq!(last, seconds(*expected), "{requests:?} {tokens:?} {calls:?}");
            }
        };
        check(None, None, &[(0, 9, 0), (0, 9, 0), (5, 9, 5)]);
        check(
            Some(2),
            None,
            &[(0, 9, 0), (10, 9, 10), (20, 9, 60), (20, 9, 70), (20, 9, 120), (130, 9, 130)],
        );
        check(None, Some(100), &[(0, 60, 0), (1, 40, 1), (2, 1, 60), (2, 99, 61), (2, 1, 120)]);
        // A request that exceeds the limit goes alone.
        check(None, Some(100), &[(0, 500, 0), (1, 500, 60), (1, 1, 120)]);
        check(Some(1), Some(100), &[(0, 10, 0), (0, 10, 60), (0, 100, 120)]);
    }

    #[test]
    fn unused_tokens_are_given_back() {
        let mut window = Window::new(None, Some(100));
        let (first, _) = granted(&mut window, seconds(0), 100);
        window.settle(first, 10);
        assert_eq!(granted(&mut window, seconds(0), 90).1, seconds(0));
        assert_eq!(granted(&mut window, seconds(0), 1).1, seconds(60));
        window.hold = seconds(300);
        assert_eq!(granted(&mut window, seconds(0), 1).1, seconds(300));
    }

    /// Rows: what happens to a first grant at 0 s, when a second one is asked for, and whether it
    /// is granted.
    #[test]
    fn a_grant_counts_from_sending_and_only_if_sent() {
        #[derive(Clone, Copy, Debug)]
        enum First {
            DroppedUnsent,
            SentAt(u64),
            SettledAt(u64),
            /// The first one is sent at 0 s, and another caller gave up waiting.
            WaiterDropped,
        }
        let check = |first: First, second_at: u64, expect: bool| {
            let limiter = Limiter::new(8, Some(1), None);
            let slot = limiter.slot().now_or_never().flatten().unwrap();
            let mut grant = slot.grant(&FixedClock(seconds(0)), 10).now_or_never().unwrap();
            match first {
                First::DroppedUnsent => drop(grant),
                First::SentAt(at) => {
                    grant.sent(seconds(at));
                    drop(grant);
                }
                First::SettledAt(at) => {
                    grant.sent(seconds(at));
                    grant.settle(0);
                }
                First::WaiterDropped => {
                    grant.sent(seconds(0));
                    assert!(slot.grant(&FixedClock(seconds(59)), 10).now_or_never().is_none());
                }
            }
            let second = slot.grant(&FixedClock(seconds(second_at)), 10).now_or_never();
            assert_eq!(second.is_some(), expect, "{first:?} {second_at}");
        };
        check(First::DroppedUnsent, 0, true);
        check(First::SentAt(0), 59, false);
        check(First::SentAt(0), 60, true);
        check(First::SentAt(50), 60, false);
        check(First::SentAt(50), 110, true);
        check(First::SettledAt(50), 109, false);
        check(First::WaiterDropped, 59, false);
        check(First::WaiterDropped, 60, true);
    }

    proptest! {
        #[test]
        fn no_minute_exceeds_the_limits(
            requests in 1_u64..6,
            tokens in 1_u64..200,
            calls in proptest::collection::vec((0_u64..40, 0_u64..120), 1..60),
        ) {
            let mut window = Window::new(Some(requests), Some(tokens));
            let mut now = Duration::ZERO;
            let mut sent: Vec<(Duration, u64)> = Vec::new();
            for (pause, weight) in calls {
                now += seconds(pause);
                (_, now) = granted(&mut window, now, weight);
                sent.push((now, weight.min(tokens)));
            }
            for (begin, _) in &sent {
                let minute: Vec<_> = sent.iter().filter(|(at, _)| at >= begin && *at < *begin + MINUTE).collect();
                prop_assert!(minute.len() as u64 <= requests);
                prop_assert!(minute.iter().map(|(_, weight)| weight).sum::<u64>() <= tokens);
            }
        }
    }
}
