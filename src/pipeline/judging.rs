//! Having a model label the rollouts that a run folder holds already, whoever played them.

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::campaign::ends_everything;
use crate::judge::{JudgeError, Subject, find_judgement, judge_id, judge_once};
use crate::llm::{AskError, CallError, Models};
use crate::model::Key;
use crate::prompts::PromptSet;
use crate::rollout::{ROLLOUT, read_record, rollout_id};
use crate::store::{Store, StoreError};

/// Rollouts that wait for a judge at once. Endpoints have limits of their own below this.
const AT_ONCE: usize = 64;

/// What came of it.
#[derive(Debug, Default)]
pub struct JudgingReport {
    /// Rollouts that were judged now.
    pub judged: usize,
    /// Rollouts that this judge had judged before.
    pub known: usize,
    /// Rollouts that have the labels of the rules alone, and why.
    pub faults: Vec<(String, JudgeError)>,
    pub interrupted: bool,
    /// A cap was reached, and nothing more was asked.
    pub out_of_budget: bool,
}

enum Done {
    Judged,
    Known,
    Drained,
}

/// Has the role `judge` label every rollout in `store` that it has not labelled yet. Where nothing was said nobody is asked.
pub async fn judge_store(
    store: &Store,
    models: &Models,
    texts: &PromptSet,
    drain: &CancellationToken,
) -> Result<JudgingReport, StoreError> {
    let keys = store.keys(ROLLOUT)?;
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
            Ok(Done::Drained)
            | Err(JudgeError::Ask(AskError::Call(CallError::Cancelled(_) | CallError::ShuttingDown))) => {
                report.interrupted = true;
            }
            Err(JudgeError::Ask(AskError::Call(CallError::Budget(_)))) => report.out_of_budget = true,
            Err(JudgeError::Store(error)) => return Err(error),
            Err(error) => report.faults.push((rollout_id(&key), error)),
        }
    }
    Ok(report)
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
    let subject = Subject { record: &record, shown: &shown, handoffs: &handoffs };
    judge_once(models, texts, store, key, &rollout_id(key), subject).await?;
    Ok(Done::Judged)
}
