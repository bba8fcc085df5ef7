//! The records of a rollout.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentError, HandoffSeen, PromptsError, ThreadSeen, TurnSeen};
use crate::judge::{self, Judgements};
use crate::model::{Check, Key, Rollout, Shown, TaskMetadata, ThreadKind, TrajectoryRecord};
use crate::store::{ReadStore, Stage, StoreError};
use crate::verify::{NoVerdict, TrialError, VerifierLog};

/// Attempts that termsmith runs.
pub const ROLLOUT: Stage = Stage::computed("rollout");
/// Attempts that were imported. They lie beside the others.
pub const IMPORTED: Stage = Stage::given("rollout");

/// Observations of a rollout. Written to `observed/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutLog {
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// One for each turn.
    pub turns: Vec<TurnSeen>,
    /// One for each handoff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffSeen>,
    /// One for each of the record's `threads`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadSeen>,
    /// Why the sandbox was lost, or the end of the output of an agent with a loop of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    pub verifier: VerifierLog,
    pub engine: String,
    pub seconds: f64,
}

/// Why a rollout failed. Nothing is stored then.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    /// The task does not support this scaffold and arm.
    #[error("unsupported configuration for task `{task}`: {why}")]
    UnsupportedConfiguration { task: String, why: &'static str },
}

impl From<NoVerdict> for RolloutError {
    fn from(error: NoVerdict) -> Self {
        Self::Trial(error.into())
    }
}

impl From<StoreError> for RolloutError {
    fn from(error: StoreError) -> Self {
        Self::Trial(TrialError::Store(error))
    }
}

/// A committed rollout with its observations, or `None` if the store does not hold both. `checks`
/// are the task's, with their classes; `metadata` is the task's, `judgements` are the labels by
/// models.
pub fn read_rollout(
    store: &ReadStore,
    key: &Key,
    metadata: &TaskMetadata,
    checks: &[Check],
    judgements: &Judgements,
) -> Result<Option<(Rollout, RolloutLog)>, StoreError> {
    let Some((record, log)) = read_record(store, key)? else { return Ok(None) };
    let shown: Vec<Vec<Shown>> = log.turns.iter().map(|turn| turn.shown.clone()).collect();
    let mut rollout = Rollout {
        left_out: 0,
        id: rollout_id(key),
        metadata: metadata.clone(),
        rewards: record.rewards(checks),
        round_rewards: record.rounds.iter().map(|round| round.verdict.rewards(checks)).collect(),
        labels: Vec::new(),
        judge: String::new(),
        shown,
        handoffs: log.handoffs.iter().map(|handoff| handoff.shown.clone()).collect(),
        threads: log.threads.iter().map(ThreadSeen::shown).collect(),
        record,
    };
    // A sub-agent's loop or failed strategy is one of the whole rollout.
    let work = rollout.views().filter(|view| matches!(view.kind, ThreadKind::Main | ThreadKind::Subagent));
    let found: Vec<_> =
        work.flat_map(|view| judge::labels(&view.rollout.record, &view.rollout.shown)).collect();
    (rollout.labels, rollout.judge) = judge::merged(&found, judgements.of(key));
    rollout.left_out = rollout.leave_out_of_range();
    Ok(Some((rollout, log)))
}

/// The id of a rollout: the first 16 hexadecimal digits of its record's key.
pub fn rollout_id(key: &Key) -> String {
    key.as_str().get(..16).unwrap_or(key.as_str()).to_owned()
}

/// A committed rollout with its observations, or `None` if the store does not hold both.
pub fn read_record(
    store: &ReadStore,
    key: &Key,
) -> Result<Option<(TrajectoryRecord, RolloutLog)>, StoreError> {
    let Some(record) = store.get::<TrajectoryRecord>(ROLLOUT, key)? else { return Ok(None) };
    Ok(store.observed::<RolloutLog>(key)?.map(|log| (record, log)))
}
