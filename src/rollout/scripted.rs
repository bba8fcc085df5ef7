//! Rollouts of the recipe's scripted expert.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::casting::cast;
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record};
use super::venue::{Hosted, Slot, Venue, is_transient};
use crate::agent::{
    AgentError, BASH_BLOCK, BashBlock, Company, NoNotebook, Prompts, Scene, ScriptedAgent, StepLimits, Talk,
    play,
};
use crate::model::{Actor, Certificate, Draft, Key, TrajectoryRecord};
use crate::store::key;
use crate::verify::{Filed, Keep, Lab, Transient};

/// Runs attempt number `attempt` of the scripted expert at a certified task, or remembers it.
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
    if read_record(lab.store, &key)?.is_some() {
        return Ok(key);
    }
    let _slot = lab.slot().await?;
    let failure = match &actor {
        Actor::Scripted { failure } => *failure,
        _ => None,
    };
    let seed = task.blueprint.seed.derive(&["attempt", &attempt.to_string()]);
    let played = lab
        .retry(|| async {
            let agent =
                ScriptedAgent::new(&draft.expert, failure, seed, prompts).map_err(AgentError::Script)?;
            episode(lab, prompts, filed, agent).await
        })
        .await?;
    let Played { talk, hosted, log } = played;
    let record = TrajectoryRecord {
        task: task.name.clone(),
        task_digest: certificate.task_digest.clone(),
        environment_digest: filed.environment_digest.clone(),
        attempt,
        actor,
        scaffold: BASH_BLOCK.to_owned(),
        system: talk.opening.system,
        prompt: talk.opening.prompt,
        tools: talk.opening.tools,
        turns: talk.turns,
        end: hosted.ended.end,
        verdict: hosted.verdict,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: Vec::new(),
        fork: None,
        exploits: Vec::new(),
    };
    lab.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}

/// A finished episode.
#[derive(Debug)]
pub struct Played {
    pub talk: Talk,
    pub hosted: Hosted,
    pub log: RolloutLog,
}

/// Plays `agent` in a fresh container and judges what it leaves. Commits nothing.
pub async fn episode(
    lab: &Lab<'_>,
    prompts: &Prompts,
    filed: &Filed<'_>,
    mut agent: ScriptedAgent,
) -> Result<Played, RolloutError> {
    let task = filed.task;
    let clock = Instant::now();
    let started_ms = now_ms();
    let limits = StepLimits::scripted(Duration::from_secs(task.limits.agent_timeout_sec.into()));
    let mut talk = Talk::default();
    let hosted = Venue::CleanRoom(filed)
        .host(lab, Slot::Held, None, Keep::Nothing, async |_, sandbox, env| {
            let scene = Scene { sandbox, env, limits: &limits, deadline: Instant::now() + limits.total };
            let mut nowhere = NoNotebook;
            let company = Company::none(&mut nowhere);
            play(&mut BashBlock::new(prompts), &mut agent, &mut talk, &task.instruction, &scene, company)
                .await
        })
        .await?;
    let log = RolloutLog {
        started_ms,
        turns: talk.seen.clone(),
        handoffs: Vec::new(),
        verifier: hosted.log.clone(),
        engine: hosted.engine.to_owned(),
        seconds: clock.elapsed().as_secs_f64(),
    };
    Ok(Played { talk, hosted, log })
}

impl Transient for RolloutError {
    fn is_transient(&self) -> bool {
        is_transient(self)
    }
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    u64::try_from(since).unwrap_or_default()
}
