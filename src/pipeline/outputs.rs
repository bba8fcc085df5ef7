//! Adds to rollouts what is not in their records, for reports, ATIF and Harbor jobs: times, model
//! calls and prices.

use std::collections::BTreeMap;
use std::path::Path;

use super::gather::gather_rollouts;
use crate::clock;
use crate::export::atif::Stamps;
use crate::export::jobs::{Job, JobError, Trial, write_job};
use crate::export::report::{Attempt, Report, report};
use crate::llm::call_detail;
use crate::model::{CallDetail, Key, Rollout};
use crate::rollout::RolloutLog;
use crate::store::{ReadStore, StoreError};

/// The report over all rollouts of a run. A rollout's price covers agents' messages, plans and
/// mentors' answers. The price of judges is a separate sum.
pub fn report_store(store: &ReadStore) -> Result<Report, StoreError> {
    report(gather_rollouts(store)?.map(|rollouts| {
        rollouts?.into_iter().map(|(rollout, log)| report_attempt(store, rollout, &log)).collect()
    }))
}

/// Writes all rollouts of a run as the Harbor job `name` below `jobs`.
pub fn export_harbor_job(store: &ReadStore, jobs: &Path, name: &str) -> Result<Job, JobError<StoreError>> {
    let tasks = gather_rollouts(store).map_err(JobError::Source)?;
    let trials = tasks.flat_map(|rollouts| match rollouts {
        Ok(rollouts) => {
            rollouts.into_iter().map(|(rollout, log)| harbor_trial(store, rollout, log)).collect()
        }
        Err(error) => vec![Err(error)],
    });
    write_job(jobs, name, trials)
}

/// One rollout, for a report.
pub fn report_attempt(store: &ReadStore, rollout: Rollout, log: &RolloutLog) -> Result<Attempt, StoreError> {
    let mut usd = None;
    for key in rollout.record.calls().chain(rollout.record.guides()) {
        let price = call_detail(store, key)?.and_then(|detail| detail.usd);
        usd = match (usd, price) {
            (Some(sum), Some(price)) => Some(sum + price),
            (one, other) => one.or(other),
        };
    }
    Ok(Attempt { rollout, seconds: Some(log.seconds), usd })
}

/// One rollout, for a Harbor job.
pub fn harbor_trial(store: &ReadStore, rollout: Rollout, log: RolloutLog) -> Result<Trial, StoreError> {
    // A rollout takes less than centuries, so the number fits.
    let finished = log.started_ms.saturating_add((log.seconds * 1e3) as u64);
    Ok(Trial {
        stamps: stamps(&log),
        finished: clock::instant(finished),
        details: call_details(store, &rollout)?,
        verifier_output: log.verifier.output,
        rollout,
    })
}

/// When a rollout started, and when each of its messages arrived.
pub(super) fn stamps(log: &RolloutLog) -> Stamps {
    Stamps {
        started: clock::instant(log.started_ms),
        turns: log.turns.iter().map(|turn| clock::instant(turn.at_ms)).collect(),
    }
}

/// The model calls behind a rollout's messages.
pub(super) fn call_details(
    store: &ReadStore,
    rollout: &Rollout,
) -> Result<BTreeMap<Key, CallDetail>, StoreError> {
    let mut details = BTreeMap::new();
    for key in rollout.record.calls() {
        details.extend(call_detail(store, key)?.map(|detail| (key.clone(), detail)));
    }
    Ok(details)
}
