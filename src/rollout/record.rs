//! Running one rollout, committing it, and reading it back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::casting::cast;
use crate::agent::{AgentError, Observed, Prompts, PromptsError, ScriptedAgent, StepLimits, play};
use crate::judge;
use crate::model::{Actor, Certificate, Draft, End, Key, Outcome, Rollout, TrajectoryRecord, Turn, Verdict};
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{
    Filed, Lab, LabError, SANDBOX_LOST, Transient, VerifierLog, judge as judge_state, solver_container,
};

/// Bump when the same attempt would act or be shown things otherwise.
pub const ROLLOUT: Stage = Stage { name: "rollout", version: 1 };

/// What a rollout observed. Goes to `observed/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutLog {
    /// Milliseconds since 1970, when the sandbox was up.
    pub started_ms: u64,
    /// One for each turn with a command.
    pub turns: Vec<TurnLog>,
    pub verifier: VerifierLog,
    pub engine: String,
    pub seconds: f64,
}

/// One command's observation.
pub type TurnLog = Observed;

/// Why there is no rollout. Nothing of this is stored.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
}

impl From<StoreError> for RolloutError {
    fn from(error: StoreError) -> Self {
        Self::Lab(LabError::Store(error))
    }
}

impl Transient for AgentError {
    fn is_transient(&self) -> bool {
        matches!(self, AgentError::Engine(error) if error.is_transient())
    }
}

/// Runs attempt number `attempt` at a certified task, or remembers it.
pub async fn rollout(
    lab: &Lab<'_>,
    prompts: &Prompts,
    draft: &Draft,
    filed: &Filed<'_>,
    certificate: &Certificate,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let task = &draft.task;
    let actor = cast(&draft.expert, task.blueprint.seed, attempt);
    let input = serde_json::json!({
        "task": filed.identity,
        "environment": filed.environment_digest,
        "expert": draft.expert,
        "prompts": prompts.digest(),
        "actor": actor,
        "attempt": attempt,
    });
    let key = key(ROLLOUT, &input)?;
    if lab.recall::<TrajectoryRecord, RolloutLog>(ROLLOUT, &key)?.is_some() {
        return Ok(key);
    }
    let _slot = lab.slot().await?;
    let Actor::Scripted { failure } = &actor;
    let seed = task.blueprint.seed.derive(&["attempt", &attempt.to_string()]);
    let (episode, log) = lab
        .retry(|| async {
            let agent = ScriptedAgent::new(&draft.expert, *failure, seed, prompts)?;
            episode(lab, prompts, filed, agent).await
        })
        .await?;
    let record = TrajectoryRecord {
        task: task.name.clone(),
        task_digest: certificate.task_digest.clone(),
        environment_digest: filed.environment_digest.clone(),
        attempt,
        actor,
        system: prompts.system.clone(),
        prompt: prompts.task(&task.instruction, task.subject.workdir())?,
        turns: episode.turns,
        end: episode.end,
        verdict: episode.verdict,
    };
    lab.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}

/// A finished episode and its verdict.
#[derive(Debug)]
pub struct Judged {
    pub turns: Vec<Turn>,
    pub end: End,
    pub verdict: Verdict,
}

/// Plays `agent` in a fresh container and judges what it leaves. Commits nothing.
pub async fn episode(
    lab: &Lab<'_>,
    prompts: &Prompts,
    filed: &Filed<'_>,
    mut agent: ScriptedAgent,
) -> Result<(Judged, RolloutLog), AgentError> {
    let task = filed.task;
    let clock = std::time::Instant::now();
    let image = lab.image(filed).await?;
    let engine = lab.engine.get().await?;
    let sandbox = engine.launch(&solver_container(&image, task)).await?;
    let started_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let limits = StepLimits::scripted(Duration::from_secs(task.limits.agent_timeout_sec.into()));
    let episode = match play(&sandbox, &mut agent, prompts, &limits).await {
        Ok(episode) => episode,
        Err(error) => {
            sandbox.destroy().await;
            return Err(error);
        }
    };
    let (verdict, verifier) = if episode.end == End::SandboxLost {
        sandbox.destroy().await;
        let log = VerifierLog { output: episode.cause, ..VerifierLog::default() };
        (Verdict::without_checks(Outcome::Fail, SANDBOX_LOST), log)
    } else {
        let judged = judge_state(engine, &image, task, sandbox).await?;
        let mut verdict = judged.verdict;
        if episode.end == End::TimedOut && matches!(verdict.outcome, Outcome::Pass | Outcome::Fail) {
            verdict.outcome = Outcome::Timeout;
            verdict.cause = "the solver ran out of time".to_owned();
        }
        (verdict, judged.log)
    };
    let log = RolloutLog {
        started_ms: u64::try_from(started_ms).unwrap_or_default(),
        turns: episode.observed,
        verifier,
        engine: engine.name().to_owned(),
        seconds: clock.elapsed().as_secs_f64(),
    };
    Ok((Judged { turns: episode.turns, end: episode.end, verdict }, log))
}

/// A committed rollout with its observations, or `None` if the store does not hold both.
pub fn read_rollout(
    store: &Store,
    key: &Key,
    draft: &Draft,
    certificate: &Certificate,
) -> Result<Option<(Rollout, RolloutLog)>, StoreError> {
    let Some(record) = store.get::<TrajectoryRecord>(ROLLOUT, key)? else { return Ok(None) };
    let Some(log) = store.observed::<RolloutLog>(key)? else { return Ok(None) };
    let observations: Vec<_> = log.turns.iter().map(|turn| turn.message.clone()).collect();
    let rewards = record.verdict.rewards(&certificate.checks);
    let looping = judge::mechanical_loop(&record.turns, &observations).is_some();
    let rollout = Rollout {
        id: key.as_str().get(..16).unwrap_or(key.as_str()).to_owned(),
        blueprint: draft.task.blueprint.clone(),
        record,
        observations,
        rewards,
        looping,
    };
    Ok(Some((rollout, log)))
}
