//! Rollouts of the recipe's scripted expert.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::evaluation::{Evaluated, Evaluation, RoundPlan, Slot, fresh};
use super::record::{ROLLOUT, RolloutError, RolloutLog, read_record, rollout_id};
use super::scripted_attempt::scripted_attempt;
use crate::agent::{
    AgentError, Conversation, Deadline, Driver, Ended, EpisodeContext, Hooks, Machine, NoTurnLog, Protocol,
    Scaffold, ScaffoldMix, ScriptedAgent, ScriptedScaffolds, StepLimits, open, run_episode,
};
use crate::clock::now_ms;
use crate::model::{Assume, Certificate, Draft, ForkPoint, Key, Task, TrajectoryRecord};
use crate::sandbox::{Engine, Sandbox};
use crate::store::key;
use crate::verify::{HashedTask, TrialError, TrialRunner, with_lost_time};

/// The loaded scaffolds of scripted experts, and how often each is drawn.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedConfig<'a> {
    pub scaffolds: &'a ScriptedScaffolds,
    pub mix: &'a ScaffoldMix,
}

/// Runs attempt number `attempt` of the scripted expert at a certified task, unless it is committed
/// already.
pub async fn rollout(
    runner: &TrialRunner<'_>,
    config: ScriptedConfig<'_>,
    draft: &Draft,
    hashed: &HashedTask<'_>,
    certificate: &Certificate,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let task = &draft.task;
    let attempt_key = |attempt: u32| {
        let drawn = scripted_attempt(&draft.expert, task.blueprint.seed, config.mix, attempt)
            .map_err(AgentError::Script)?;
        let scaffold = config.scaffolds.of(drawn.format);
        let input = serde_json::json!({
            "task": hashed.identity,
            "environment": hashed.environment_digest,
            "plan": drawn.plan,
            "scaffold": [scaffold.name(), scaffold.digest()],
            "actor": drawn.actor,
            "attempt": attempt,
        });
        Ok::<_, RolloutError>((key(ROLLOUT, &input)?, drawn))
    };
    let (key, drawn) = attempt_key(attempt)?;
    if read_record(runner.store, &key)?.is_some() {
        return Ok(key);
    }
    let fork = match drawn.shared {
        Some(turns) => Some(ForkPoint { parent: rollout_id(&attempt_key(attempt - 1)?.0), turns }),
        None => None,
    };
    let _slot = runner.slot().await?;
    let scaffold = config.scaffolds.of(drawn.format);
    let agent = ScriptedAgent::new(&draft.expert, &drawn.plan, drawn.format);
    // The evaluation is settled, i.e. failures of the infrastructure have been retried.
    let finished = run_scripted_episode(runner, scaffold, hashed, agent).await?;
    let FinishedEpisode { conversation, evaluated, log } = finished;
    let record = TrajectoryRecord {
        task: task.name.clone(),
        task_digest: Some(certificate.task_digest.clone()),
        environment_digest: Some(hashed.environment_digest.clone()),
        attempt,
        actor: drawn.actor,
        scaffold: scaffold.name().to_owned(),
        system: conversation.opening.system,
        prompt: conversation.opening.prompt,
        opening: conversation.opening.messages,
        tools: conversation.opening.tools,
        turns: conversation.turns,
        threads: Vec::new(),
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

/// Runs `agent` in a fresh container. Judges and commits nothing.
pub async fn run_script(
    runner: &TrialRunner<'_>,
    scaffold: &dyn Scaffold,
    hashed: &HashedTask<'_>,
    agent: ScriptedAgent,
) -> Result<Conversation, RolloutError> {
    let protocol = protocol(scaffold, hashed)?;
    runner
        .retry(|| async {
            let (sandbox, env) = fresh(runner, hashed, None).await?;
            let engine = runner.engine.get().await.map_err(TrialError::Engine)?;
            let (conversation, _) =
                episode(protocol, &hashed.task, &agent, engine, &sandbox, &env, Assume::Nothing).await?;
            sandbox.destroy().await;
            Ok(conversation)
        })
        .await
}

fn protocol<'a>(
    scaffold: &'a dyn Scaffold,
    hashed: &HashedTask<'_>,
) -> Result<&'a dyn Protocol, RolloutError> {
    match scaffold.driver() {
        Driver::TurnByTurn(protocol) => Ok(protocol),
        Driver::InSandbox(_) => Err(RolloutError::UnsupportedConfiguration {
            task: hashed.task.name.to_string(),
            why: "a scripted expert writes the turns of a scaffold itself",
        }),
    }
}

/// Runs `agent` in `sandbox` from the beginning of its script. It sends the same messages in every
/// container.
async fn episode(
    protocol: &dyn Protocol,
    task: &Task,
    agent: &ScriptedAgent,
    engine: &Engine,
    sandbox: &Sandbox,
    env: &[(String, String)],
    assume: Assume,
) -> Result<(Conversation, Ended), AgentError> {
    let limits = StepLimits::scripted(Duration::from_secs(task.limits.agent_timeout_sec.into()));
    let deadline = Deadline::after(limits.total, sandbox.clock().clone());
    let (machine, drain) = (Machine::Fresh, CancellationToken::new());
    let context = EpisodeContext { sandbox, env, limits: &limits, deadline, assume, machine, drain };
    let (mut agent, mut conversation, mut nowhere) = (agent.clone(), Conversation::default(), NoTurnLog);
    let hooks = Hooks::none(&mut nowhere);
    let run =
        Box::pin(run_episode(protocol, &mut agent, &mut conversation, &task.instruction, &context, hooks));
    let ended = with_lost_time(engine, sandbox, |time| context.deadline.extend(time), run).await?;
    Ok((conversation, ended))
}

/// Runs `agent` in a fresh container and judges the result. Commits nothing.
pub async fn run_scripted_episode(
    runner: &TrialRunner<'_>,
    scaffold: &dyn Scaffold,
    hashed: &HashedTask<'_>,
    agent: ScriptedAgent,
) -> Result<FinishedEpisode, RolloutError> {
    let clock = Instant::now();
    let started_ms = now_ms();
    let protocol = protocol(scaffold, hashed)?;
    let mut conversation = Conversation::default();
    let solve = async |_: usize, sandbox: &Sandbox, env: &[(String, String)], assume| {
        let engine = runner.engine.get().await?;
        let ended;
        (conversation, ended) = episode(protocol, &hashed.task, &agent, engine, sandbox, env, assume).await?;
        Ok(ended)
    };
    let opens = async |sandbox: &Sandbox, env: &[(String, String)]| {
        let limits = StepLimits::scripted(Duration::from_secs(hashed.task.limits.agent_timeout_sec.into()));
        let (machine, drain) = (Machine::Fresh, CancellationToken::new());
        let deadline = Deadline::after(limits.total, sandbox.clock().clone());
        let context = EpisodeContext {
            sandbox,
            env,
            limits: &limits,
            deadline,
            assume: Assume::Nothing,
            machine,
            drain,
        };
        open(scaffold.driver(), &context).await
    };
    let evaluation = Evaluation { runner, target: hashed, slot: Slot::Held, layer: None };
    let evaluated = evaluation.run(RoundPlan::ONLY, solve, opens).await?;
    let log = RolloutLog {
        started_ms,
        turns: conversation.seen.clone(),
        handoffs: Vec::new(),
        threads: Vec::new(),
        cause: evaluated.ended.cause.clone(),
        verifier: evaluated.log.clone(),
        engine: evaluated.engine.to_owned(),
        seconds: clock.elapsed().as_secs_f64(),
    };
    Ok(FinishedEpisode { conversation, evaluated, log })
}
