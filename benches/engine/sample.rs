//! Repeated measurements, and the number of repetitions.

use std::time::{Duration, Instant};

/// Measurements of one quantity, in any unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        Self(values.into_iter().collect())
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds the milliseconds since `started`.
    pub(crate) fn push_since(&mut self, started: Instant) {
        self.push(milliseconds(started.elapsed()));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn p50(&self) -> f64 {
        self.percentile(50)
    }

    /// The 99th percentile. Of fewer than a hundred measurements it is the largest.
    pub(crate) fn p99(&self) -> f64 {
        self.percentile(99)
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The nearest rank, so it is always a measured value.
    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Gives at most `count` rounds, and begins none after `within`. So a slow machine gets fewer
/// repetitions, not an endless bench.
pub(crate) fn rounds(count: usize, within: Duration) -> impl Iterator<Item = usize> {
    let started = Instant::now();
    (0..count).take_while(move |round| *round == 0 || started.elapsed() < within)
}
