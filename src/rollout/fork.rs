//! Forks: several attempts from the very state that another rollout had.

use std::time::Instant;

use super::attempt::{AgentConfig, PreparedTask};
use super::record::{RolloutError, read_record, rollout_id};
use crate::agent::{
    AgentError, AssistantMessage, Conversation, Driver, EpisodeContext, HandedOff, Hooks, NoTurnLog, Opening,
    Policy, StepLimits, run_episode,
};
use crate::model::{End, ForkPoint, Key};
use crate::sandbox::Image;
use crate::verify::{TrialError, TrialRunner};

/// A state from which several attempts begin, and the conversation that led there.
#[derive(Clone, Debug)]
pub struct Fork {
    pub point: ForkPoint,
    pub conversation: Conversation,
    pub state: Image,
}

/// The state that a rollout had after its first `turns` turns, made by doing them again: every attempt that begins there begins at
/// exactly the same files.
pub async fn fork(
    runner: &TrialRunner<'_>,
    prepared: &PreparedTask<'_>,
    agent_config: &AgentConfig,
    parent: &Key,
    turns: usize,
) -> Result<Fork, RolloutError> {
    let unsupported = |why| RolloutError::UnsupportedConfiguration { task: prepared.name.to_string(), why };
    let Driver::TurnByTurn(protocol) = agent_config.scaffold.driver() else {
        return Err(unsupported("the turns of an agent with a loop of its own cannot be executed again"));
    };
    let Some((record, log)) = read_record(runner.store, parent)? else {
        return Err(unsupported("the rollout that it would part from is not in the run folder"));
    };
    if record.turns.len() <= turns {
        return Err(unsupported("the rollout that it would part from has fewer turns"));
    }
    // One that came right after the last shared turn is the parent's own.
    let handoffs = record.handoffs.into_iter().zip(log.handoffs);
    let handoffs = handoffs.map(|(handoff, seen)| HandedOff { handoff, seen });
    let handoffs = handoffs.filter(|handed| handed.handoff.turns < turns).collect();
    let mut conversation = Conversation {
        opening: Opening { system: record.system, prompt: record.prompt, tools: record.tools },
        turns: record.turns.into_iter().take(turns).collect(),
        seen: log.turns.into_iter().take(turns).collect(),
        handoffs,
        ..Conversation::default()
    };
    let (sandbox, env) = prepared.evaluation.ready(runner).await?;
    // No further turn: the recorded ones are done again, and the limit of turns is reached.
    let limits = StepLimits { turns: 0, ..agent_config.limits };
    let ended = {
        let episode = EpisodeContext {
            sandbox: &sandbox,
            env: &env,
            limits: &limits,
            deadline: Instant::now() + limits.total,
            silent_loss: None,
        };
        let mut turn_log = NoTurnLog;
        let hooks = Hooks::none(&mut turn_log);
        run_episode(protocol, &mut NoFurtherTurns, &mut conversation, prepared.instruction, &episode, hooks)
            .await?
    };
    if ended.end != End::StepLimit {
        return Err(unsupported("its recorded turns came to something else when they were done again"));
    }
    let stopped = sandbox.stop().await.map_err(TrialError::Engine)?;
    let state = stopped.commit().await.map_err(TrialError::Engine)?;
    stopped.destroy().await;
    conversation.done = turns;
    Ok(Fork { point: ForkPoint { parent: rollout_id(parent), turns }, conversation, state })
}

/// Nobody. Its episodes end before it would have to say something.
struct NoFurtherTurns;

impl Policy for NoFurtherTurns {
    async fn next(&mut self, _: &Conversation) -> Result<AssistantMessage, AgentError> {
        Ok(AssistantMessage::default())
    }
}
