//! Signs of life during work that prints nothing by itself.

use std::time::{Duration, Instant};

use super::Events;

/// Time between two signs of life. People begin to doubt a program that is silent for ten seconds.
const PERIOD: Duration = Duration::from_secs(5);

/// Reports periodically that an action is still running.
pub(super) struct Heartbeat<'a, 'e> {
    events: &'a mut Events<'e>,
    /// The running action, as a clause: "apt-get installs docker.io".
    activity: String,
    began: Instant,
    next: Instant,
}

impl<'a, 'e> Heartbeat<'a, 'e> {
    pub(super) fn new(events: &'a mut Events<'e>, activity: impl Into<String>) -> Self {
        let began = Instant::now();
        Self { events, activity: activity.into(), began, next: began + PERIOD }
    }

    /// How long to wait until the next report is due.
    pub(super) fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Reports.
    pub(super) fn beat(&mut self) {
        self.events.progress(&self.activity, self.began.elapsed());
        self.next = Instant::now() + PERIOD;
    }

    /// Reports if it is time to.
    pub(super) fn beat_if_due(&mut self) {
        if self.until_next().is_zero() {
            self.beat();
        }
    }
}
