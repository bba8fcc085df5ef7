//! Makes a runner of trials, for tests that call the library.

use termsmith::store::Store;
use termsmith::verify::{EngineOnDemand, Slots, TrialRunner, Watcher};
use tokio_util::sync::CancellationToken;

/// The parts that a [`TrialRunner`] borrows, except the store.
pub(crate) struct RunnerParts {
    pub(crate) engine: EngineOnDemand,
    pub(crate) slots: Slots,
    pub(crate) drain: CancellationToken,
}

impl RunnerParts {
    /// At most `at_once` trials run at the same time.
    pub(crate) fn new(engine: impl Into<EngineOnDemand>, at_once: usize) -> Self {
        Self { engine: engine.into(), slots: Slots::new(at_once), drain: CancellationToken::new() }
    }

    pub(crate) fn runner<'a>(&'a self, store: &'a Store) -> TrialRunner<'a> {
        let Self { engine, slots, drain } = self;
        TrialRunner { engine, store, slots, priority: 0, drain, watcher: Watcher::default() }
    }
}
