//! Rollouts of the recipe's scripted expert.

use std::time::{Duration, Instant};

use super::cast::cast;
use super::evaluation::{Evaluated, Evaluation, Slot};
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record, rollout_id};
use crate::agent::{
    AgentError, Conversation, Driver, EpisodeContext, Hooks, NoTurnLog, Protocol, Scaffold, ScaffoldMix,
    ScriptedAgent, ScriptedScaffolds, StepLimits, run_episode,
};
use crate::clock::now_ms;
use crate::model::{Certificate, Draft, ForkPoint, Key, TrajectoryRecord};
use crate::store::key;
use crate::verify::{HashedTask, Keep, TrialRunner};

/// Where scripted experts act: the loaded scaffolds, and how often each is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    pub scaffolds: &'a ScriptedScaffolds,
    pub mix: &'a ScaffoldMix,
}

/// Runs attempt number `attempt` of the scripted expert at a certified task, unless it is committed already.
pub async fn rollout(
    runner: &TrialRunner<'_>,
    stage: Stage<'_>,
    draft: &Draft,
    hashed: &HashedTask<'_>,
    certificate: &Certificate,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let task = &draft.task;
    let attempt_key = |attempt: u32| {
        let cast =
            cast(&draft.expert, task.blueprint.seed, stage.mix, attempt).map_err(AgentError::Script)?;
        let scaffold = stage.scaffolds.of(cast.voice);
        let input = serde_json::json!({
            "task": hashed.identity,
            "environment": hashed.environment_digest,
            "plan": cast.plan,
            "scaffold": [scaffold.name(), scaffold.digest()],
            "actor": cast.actor,
            "attempt": attempt,
        });
        Ok::<_, RolloutError>((key(ROLLOUT, &input)?, cast))
    };
    let (key, cast) = attempt_key(attempt)?;
    if read_record(runner.store, &key)?.is_some() {
        return Ok(key);
    }
    let fork = match cast.shared {
        Some(turns) => Some(ForkPoint { parent: rollout_id(&attempt_key(attempt - 1)?.0), turns }),
        None => None,
    };
    let _slot = runner.slot().await?;
    let scaffold = stage.scaffolds.of(cast.voice);
    let finished = runner
        .retry(|| async {
            let agent = ScriptedAgent::new(&draft.expert, &cast.plan, cast.voice);
            run_scripted_episode(runner, scaffold, hashed, agent).await
        })
        .await?;
    let FinishedEpisode { conversation, evaluated, log } = finished;
    let record = TrajectoryRecord {
        task: task.name.clone(),
        task_digest: Some(certificate.task_digest.clone()),
        environment_digest: Some(hashed.environment_digest.clone()),
        attempt,
        actor: cast.actor,
        scaffold: scaffold.name().to_owned(),
        system: conversation.opening.system,
        prompt: conversation.opening.prompt,
        tools: conversation.opening.tools,
        turns: conversation.turns,
        end: evaluated.ended.end,
        verdict: evaluated.verdict,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: Vec::new(),
        fork,
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

/// Runs `agent` in a fresh container, and judges and commits nothing.
pub async fn play_script(
    runner: &TrialRunner<'_>,
    scaffold: &dyn Scaffold,
    hashed: &HashedTask<'_>,
    agent: ScriptedAgent,
) -> Result<Conversation, RolloutError> {
    runner
        .retry(|| async {
            let (sandbox, env) = Evaluation::CleanRoom(hashed).ready(runner).await?;
            let mut conversation = Conversation::default();
            let limits = limits(hashed);
            let episode = EpisodeContext {
                sandbox: &sandbox,
                env: &env,
                limits: &limits,
                deadline: Instant::now() + limits.total,
                silent_loss: None,
            };
            let mut agent = agent.clone();
            let (protocol, instruction) = (protocol(scaffold, hashed)?, &hashed.task.instruction);
            let hooks = &mut NoTurnLog;
            run_episode(protocol, &mut agent, &mut conversation, instruction, &episode, Hooks::none(hooks))
                .await?;
            sandbox.destroy().await;
            Ok(conversation)
        })
        .await
}

fn limits(hashed: &HashedTask<'_>) -> StepLimits {
    StepLimits::scripted(Duration::from_secs(hashed.task.limits.agent_timeout_sec.into()))
}

fn protocol<'a>(
    scaffold: &'a dyn Scaffold,
    hashed: &HashedTask<'_>,
) -> Result<&'a dyn Protocol, RolloutError> {
    match scaffold.driver() {
        Driver::TurnByTurn(protocol) => Ok(protocol),
        Driver::InSandbox { .. } => Err(RolloutError::UnsupportedConfiguration {
            task: hashed.task.name.to_string(),
            why: "a scripted expert writes the turns of a scaffold itself",
        }),
    }
}

/// Runs `agent` in a fresh container and judges the result. Commits nothing.
pub async fn run_scripted_episode(
    runner: &TrialRunner<'_>,
    scaffold: &dyn Scaffold,
    hashed: &HashedTask<'_>,
    agent: ScriptedAgent,
) -> Result<FinishedEpisode, RolloutError> {
    let task = hashed.task;
    let clock = Instant::now();
    let started_ms = now_ms();
    let (limits, protocol) = (limits(hashed), protocol(scaffold, hashed)?);
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
            run_episode(protocol, &mut agent, &mut conversation, &task.instruction, &episode, hooks).await
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
