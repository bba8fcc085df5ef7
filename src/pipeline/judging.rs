//! Has a model label the existing rollouts of a run folder, whatever their source.

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::stop::{Stop, ends_everything};
use crate::judge::{JudgeError, JudgedTrajectory, find_judgement, judge_id, judge_once};
use crate::llm::{AskError, Models};
use crate::model::Key;
use crate::prompts::PromptSet;
use crate::rollout::{ROLLOUT, read_record, rollout_id};
use crate::store::{Store, StoreError};

/// Number of rollouts that are judged at once. Endpoints have their own, lower limits.
const AT_ONCE: usize = 64;

/// Result of labelling the rollouts of a store.
#[derive(Debug, Default)]
pub struct JudgingReport {
    /// Number of rollouts judged by this command.
    pub judged: usize,
    /// Number of rollouts that this judge had labelled before.
    pub known: usize,
    /// Rollouts that only detectors labelled, with the reason.
    pub faults: Vec<(String, JudgeError)>,
    /// Why the command stopped early.
    pub stop: Option<Stop>,
}

enum Done {
    Judged,
    Known,
    Drained,
}

/// Labels every rollout in `store` that the role `judge` has not labelled yet. A rollout without
/// messages needs no request.
pub async fn judge_store(
    store: &Store,
    models: &Models,
    texts: &PromptSet,
    drain: &CancellationToken,
) -> Result<JudgingReport, StoreError> {
    let keys = store.latest(ROLLOUT)?;
    let work = stream::iter(keys).map(|key| async move {
        let done = one(store, models, texts, &key, drain).await;
        if let Err(JudgeError::Ask(AskError::Call(error))) = &done
            && ends_everything(error)
        {
            drain.cancel();
        }
        (key, done)
    });
    let mut ended: Vec<_> = work.buffer_unordered(AT_ONCE).collect().await;
    ended.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut report = JudgingReport::default();
    for (key, done) in ended {
        match done {
            Ok(Done::Judged) => report.judged += 1,
            Ok(Done::Known) => report.known += 1,
            Ok(Done::Drained) => report.stop = report.stop.max(Some(Stop::Interrupted)),
            Err(JudgeError::Store(error)) => return Err(error),
            Err(error) => match stop_of(&error) {
                Some(stop) => report.stop = report.stop.max(Some(stop)),
                None => report.faults.push((rollout_id(&key), error)),
            },
        }
    }
    Ok(report)
}

/// Why the whole command should stop after this error. `None` if only this rollout failed.
fn stop_of(error: &JudgeError) -> Option<Stop> {
    if let JudgeError::Ask(AskError::Call(error)) = error { Stop::of(error) } else { None }
}

async fn one(
    store: &Store,
    models: &Models,
    texts: &PromptSet,
    key: &Key,
    drain: &CancellationToken,
) -> Result<Done, JudgeError> {
    if find_judgement(store, key, &judge_id(models, texts)?)?.is_some() {
        return Ok(Done::Known);
    }
    if drain.is_cancelled() {
        return Ok(Done::Drained);
    }
    let Some((record, log)) = read_record(store, key)? else { return Ok(Done::Known) };
    let shown: Vec<_> = log.turns.into_iter().map(|turn| turn.shown).collect();
    let handoffs: Vec<_> = log.handoffs.into_iter().map(|handoff| handoff.shown).collect();
    let trajectory = JudgedTrajectory { record: &record, shown: &shown, handoffs: &handoffs };
    judge_once(models, texts, store, key, &rollout_id(key), trajectory).await?;
    Ok(Done::Judged)
}
