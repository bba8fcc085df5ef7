//! The guest's clock. It stands still while the engine pauses the container, so a pause takes no
//! time from a program's limit.
//!
//! A pause stops the guest too. The guest cannot tell it from a lack of processor time, which
//! programs of the container can cause. So only the host's word counts: it announces a pause, and
//! later tells its length. The announcement is in the guest's input before the guest continues. The
//! guest reads it before it looks at any time limit.

use std::time::{Duration, Instant};

/// The clock of all time limits.
#[derive(Debug)]
pub(super) struct Clock {
    /// Total length of the pauses that have ended.
    paused: Duration,
    /// The reading at the end of the last turn of the event loop.
    last: Instant,
    /// Set during an announced pause: the reading at which the clock stands.
    held: Option<Instant>,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { paused: Duration::ZERO, last: Instant::now(), held: None }
    }

    /// The current reading.
    pub(super) fn now(&self) -> Instant {
        self.at(Instant::now())
    }

    /// A turn of the event loop ends. Time up to now has passed, even if a pause is announced next.
    pub(super) fn turned(&mut self) {
        self.last = self.now();
    }

    /// The host announces a pause. It may have begun at any time since the last turn.
    pub(super) fn hold(&mut self) {
        self.held.get_or_insert(self.last);
    }

    /// A pause of this length has ended.
    pub(super) fn release(&mut self, length: Duration) {
        self.held = None;
        self.paused += length;
    }

    /// The reading of the machine's clock at the time at which this clock reads `reading`. `None`
    /// while this clock stands still.
    pub(super) fn machine(&self, reading: Instant) -> Option<Instant> {
        match self.held {
            Some(_) => None,
            None => reading.checked_add(self.paused),
        }
    }

    fn at(&self, machine: Instant) -> Instant {
        self.held.or_else(|| machine.checked_sub(self.paused)).unwrap_or(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: events with their seconds, and the reading at second 100.
    #[test]
    fn pauses_are_not_counted() {
        #[derive(Clone, Copy)]
        enum Event {
            Turned,
            Hold,
            Release(u64),
        }
        use Event::{Hold, Release, Turned};
        let check = |events: &[(u64, Event)], expect: u64| {
            let zero = Instant::now();
            let second = |second: u64| zero + Duration::from_secs(second);
            let mut clock = Clock { paused: Duration::ZERO, last: zero, held: None };
            for (at, event) in events {
                match event {
                    Turned => clock.last = clock.at(second(*at)),
                    Hold => clock.hold(),
                    Release(length) => clock.release(Duration::from_secs(*length)),
                }
            }
            assert_eq!(clock.at(second(100)), second(expect));
            let wakes = clock.machine(second(expect));
            assert_eq!(wakes, clock.held.is_none().then(|| second(100)));
        };
        check(&[], 100);
        check(&[(10, Turned)], 100);
        // The guest continues at second 50, reads the announcement, and later the length.
        check(&[(10, Turned), (50, Hold)], 10);
        check(&[(10, Turned), (50, Hold), (50, Turned), (60, Turned)], 10);
        check(&[(10, Turned), (50, Hold), (51, Release(33))], 67);
        check(&[(10, Turned), (50, Hold), (51, Release(33)), (60, Hold), (80, Release(20))], 47);
        // The announcement came too late.
        check(&[(10, Turned), (51, Release(33))], 67);
        check(&[(10, Turned), (50, Hold), (50, Hold), (51, Release(33))], 67);
    }
}
