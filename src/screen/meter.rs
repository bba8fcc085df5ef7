//! Measures the cost of a screening.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::model::{RowKind, ScreeningCost};
use crate::verify::TrialLog;

/// Sums the cost of trials as they end.
#[derive(Debug)]
pub(super) struct Meter {
    started: Instant,
    cost: Mutex<ScreeningCost>,
}

impl Meter {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), cost: Mutex::default() }
    }

    /// Adds a trial. It may have run in an earlier run of the command.
    pub(super) fn add(&self, kind: RowKind, log: &TrialLog) {
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = cost.kinds.entry(kind).or_default();
        of_kind.trials += 1;
        of_kind.seconds += log.seconds;
        of_kind.processor_seconds += log.processor_seconds();
    }

    /// The cost so far.
    pub(super) fn cost(&self) -> ScreeningCost {
        let cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        ScreeningCost { seconds: self.started.elapsed().as_secs_f64(), ..cost.clone() }
    }
}
