//! Rollouts of the recipe's scripted expert.

use std::time::{Duration, Instant};

use super::evaluation::{Evaluated, Evaluation, Slot};
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record};
use super::scripted_failure::scripted_failure;
use crate::agent::{
    AgentError, BashBlock, Conversation, EpisodeContext, Hooks, NoTurnLog, Scaffold as _, ScriptedAgent,
    StepLimits, run_episode,
};
use crate::clock::now_ms;
use crate::model::{Actor, Certificate, Draft, Key, TrajectoryRecord};
use crate::store::key;
use crate::verify::{HashedTask, Keep, TrialRunner};

/// Runs attempt number `attempt` of the scripted expert at a certified task, unless it is committed already.
pub async fn rollout(
    runner: &TrialRunner<'_>,
    prompts: &BashBlock,
    draft: &Draft,
    hashed: &HashedTask<'_>,
    certificate: &Certificate,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let task = &draft.task;
    let failure = scripted_failure(&draft.expert, task.blueprint.seed, attempt);
    let actor = Actor::Scripted { failure };
    let input = serde_json::json!({
        "task": hashed.identity,
        "environment": hashed.environment_digest,
        "expert": draft.expert,
        "prompts": prompts.digest(),
        "actor": actor,
        "attempt": attempt,
    });
    let key = key(ROLLOUT, &input)?;
    if read_record(runner.store, &key)?.is_some() {
        return Ok(key);
    }
    let _slot = runner.slot().await?;
    let seed = task.blueprint.seed.derive(&["attempt", &attempt.to_string()]);
    let finished = runner
        .retry(|| async {
            let agent =
                ScriptedAgent::new(&draft.expert, failure, seed, prompts).map_err(AgentError::Script)?;
            run_scripted_episode(runner, prompts, hashed, agent).await
        })
        .await?;
    let FinishedEpisode { conversation, evaluated, log } = finished;
    let record = TrajectoryRecord {
        task: task.name.clone(),
        task_digest: Some(certificate.task_digest.clone()),
        environment_digest: Some(hashed.environment_digest.clone()),
        attempt,
        actor,
        scaffold: prompts.name().to_owned(),
        system: conversation.opening.system,
        prompt: conversation.opening.prompt,
        tools: conversation.opening.tools,
        turns: conversation.turns,
        end: evaluated.ended.end,
        verdict: evaluated.verdict,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: Vec::new(),
        fork: None,
        exploits: Vec::new(),
    };
    runner.commit(ROLLOUT, &key, &record, &log)?;
    Ok(key)
}

/// A finished episode.
#[derive(Debug)]
pub struct FinishedEpisode {
    pub conversation: Conversation,
    pub evaluated: Evaluated,
    pub log: RolloutLog,
}

/// Runs `agent` in a fresh container and judges the result. Commits nothing.
pub async fn run_scripted_episode(
    runner: &TrialRunner<'_>,
    prompts: &BashBlock,
    hashed: &HashedTask<'_>,
    agent: ScriptedAgent,
) -> Result<FinishedEpisode, RolloutError> {
    let task = hashed.task;
    let clock = Instant::now();
    let started_ms = now_ms();
    let limits = StepLimits::scripted(Duration::from_secs(task.limits.agent_timeout_sec.into()));
    let mut conversation = Conversation::default();
    let evaluated = Evaluation::CleanRoom(hashed)
        .run(runner, Slot::Held, None, Keep::Nothing, async |_, sandbox, env, silent_loss| {
            // A retry starts the script from the beginning: it sends the same messages in every container.
            let mut agent = agent.clone();
            conversation = Conversation::default();
            let episode = EpisodeContext {
                sandbox,
                env,
                limits: &limits,
                deadline: Instant::now() + limits.total,
                silent_loss,
            };
            let mut nowhere = NoTurnLog;
            let hooks = Hooks::none(&mut nowhere);
            run_episode(prompts, &mut agent, &mut conversation, &task.instruction, &episode, hooks).await
        })
        .await?;
    let log = RolloutLog {
        started_ms,
        turns: conversation.seen.clone(),
        handoffs: Vec::new(),
        verifier: evaluated.log.clone(),
        engine: evaluated.engine.to_owned(),
        seconds: clock.elapsed().as_secs_f64(),
    };
    Ok(FinishedEpisode { conversation, evaluated, log })
}
