//! A clock that stands still while this process is stopped, e.g. by Ctrl-Z or SIGSTOP.
//!
//! A thread reads the clock every [`STEP`]. A much longer gap between two readings shows that the
//! process was stopped. E.g. a user presses Ctrl-Z and returns after 45 s.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two readings.
const STEP: Duration = Duration::from_millis(100);
/// Only the part of a gap beyond this is a stop. A busy host delays a thread for less.
const LONGEST_GAP: Duration = Duration::from_secs(2);

/// Time since the first reading, without the stops.
pub fn elapsed() -> Duration {
    CLOCK.read().0
}

/// Total length of the stops.
pub fn stopped() -> Duration {
    CLOCK.read().1
}

/// Waits for `time`. Stops do not count.
pub async fn sleep(time: Duration) {
    let end = elapsed() + time;
    loop {
        let left = end.saturating_sub(elapsed());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::start);

#[derive(Debug)]
struct Clock {
    started: Instant,
    /// Whether a thread reads the clock. Without one, gaps mean nothing.
    ticks: bool,
    gaps: Mutex<Gaps>,
}

/// The gaps between readings.
#[derive(Debug, Default)]
struct Gaps {
    last: Duration,
    stopped: Duration,
}

impl Clock {
    fn start() -> Self {
        let ticking = thread::Builder::new().name("clock".to_owned()).spawn(|| {
            loop {
                thread::sleep(STEP);
                CLOCK.read();
            }
        });
        Self { started: Instant::now(), ticks: ticking.is_ok(), gaps: Mutex::default() }
    }

    fn read(&self) -> (Duration, Duration) {
        // A poisoned lock has a valid state: no change panics halfway.
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.started.elapsed();
        if self.ticks {
            gaps.note(now);
        }
        (now.saturating_sub(gaps.stopped), gaps.stopped)
    }
}

impl Gaps {
    fn note(&mut self, now: Duration) {
        self.stopped += now.saturating_sub(self.last).saturating_sub(LONGEST_GAP);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_gaps_between_readings_are_stops() {
        let check = |readings: &[u64], stopped: u64| {
            let mut gaps = Gaps::default();
            readings.iter().for_each(|&reading| gaps.note(Duration::from_millis(reading)));
            assert_eq!(gaps.stopped, Duration::from_millis(stopped), "{readings:?}");
        };
        check(&[], 0);
        check(&[100, 200, 300], 0);
        check(&[100, 2_000, 4_000], 0);
        check(&[100, 45_100], 43_000);
        check(&[100, 45_100, 45_100, 45_200, 50_200], 46_000);
    }

    #[test]
    fn the_clock_runs_without_being_read() {
        let started = (elapsed(), stopped());
        thread::sleep(LONGEST_GAP + Duration::from_secs(1));
        assert!(elapsed() - started.0 >= LONGEST_GAP);
        assert!(stopped() - started.1 < Duration::from_secs(1));
    }
}
