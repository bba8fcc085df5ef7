//! Clocks. Tests have one of their own, so that they need not wait.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::{BoxFuture, FutureExt as _};

/// The clock of waits and rate limits.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Time since the run began.
    fn elapsed(&self) -> Duration;
    /// The time of day.
    fn wall(&self) -> SystemTime;
    /// Ends after `time`.
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(time).boxed()
    }
}

/// Whole milliseconds, for logs and records.
pub(super) fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
