//! A clock that advances only by sleeps, or when a test advances it.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use termsmith::llm::Clock;

#[derive(Debug)]
pub(crate) struct TestClock {
    now: watch::Sender<Duration>,
    sleeps: Mutex<Vec<Duration>>,
    /// Whether a sleep advances the time by itself.
    jumps: bool,
}

impl TestClock {
    /// A clock that each sleep advances by its length. Nothing waits.
    pub(crate) fn jumping() -> std::sync::Arc<Self> {
        Self { now: watch::Sender::new(Duration::ZERO), sleeps: Mutex::default(), jumps: true }.into()
    }

    /// A clock that only [`advance`](Self::advance) advances.
    pub(crate) fn still() -> std::sync::Arc<Self> {
        Self { now: watch::Sender::new(Duration::ZERO), sleeps: Mutex::default(), jumps: false }.into()
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.now.send_modify(|now| *now += time);
    }

    /// All sleeps that were requested, in order.
    pub(crate) fn sleeps(&self) -> Vec<Duration> {
        self.sleeps.lock().unwrap().clone()
    }

    /// Waits until `count` sleeps were requested.
    pub(crate) async fn until_sleeping(&self, count: usize) {
        while self.sleeps.lock().unwrap().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

impl Clock for TestClock {
    fn elapsed(&self) -> Duration {
        *self.now.borrow()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.elapsed()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.sleeps.lock().unwrap().push(time);
        let until = self.elapsed() + time;
        async move {
            if self.jumps {
                tokio::task::yield_now().await;
                self.now.send_modify(|now| *now = until.max(*now));
            }
            self.now.subscribe().wait_for(|now| *now >= until).await.unwrap();
        }
        .boxed()
    }
}
