//! Forks: attempts that begin in the state of another rollout.

use super::attempt::{AgentConfig, PreparedTask};
use super::evaluation::{check_savable, fresh};
use super::record::{RolloutError, read_record, rollout_id};
use crate::agent::{
    AgentError, AssistantMessage, Conversation, Deadline, Driver, EpisodeContext, HandedOff, Hooks, Machine,
    NoTurnLog, Opening, Policy, StepLimits, run_episode,
};
use crate::model::{Assume, End, ForkPoint, Key};
use crate::sandbox::{EngineError, Image};
use crate::verify::{TrialError, TrialRunner};

/// A state from which attempts begin, and the conversation that led to it.
#[derive(Clone, Debug)]
pub struct Fork {
    pub point: ForkPoint,
    pub conversation: Conversation,
    pub state: Image,
}

/// The state of a rollout after its first `turns` turns. It is made by executing them again. All
/// attempts of a fork begin with exactly the same files.
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
        return Err(unsupported("the parent rollout of the fork is not in the run folder"));
    };
    if record.turns.len() <= turns {
        return Err(unsupported("the parent rollout of the fork has fewer turns than --fork-at"));
    }
    // A handoff directly after the last shared turn belongs to the parent only.
    let handoffs = record.handoffs.into_iter().zip(log.handoffs);
    let handoffs = handoffs.map(|(handoff, seen)| HandedOff { handoff, seen });
    let handoffs = handoffs.filter(|handed| handed.handoff.turns < turns).collect();
    let mut conversation = Conversation {
        opening: Opening {
            system: record.system,
            prompt: record.prompt,
            messages: record.opening,
            tools: record.tools,
        },
        turns: record.turns.into_iter().take(turns).collect(),
        seen: log.turns.into_iter().take(turns).collect(),
        handoffs,
        ..Conversation::default()
    };
    check_savable(runner, prepared.target).await?;
    let (sandbox, env) = fresh(runner, prepared.target, None).await?;
    // The limit is 0 turns: the episode ends when the recorded turns have been executed again.
    let limits = StepLimits { turns: 0, ..agent_config.limits };
    let ended = {
        let episode = EpisodeContext {
            sandbox: &sandbox,
            env: &env,
            limits: &limits,
            deadline: Deadline::after(limits.total, sandbox.clock().clone()),
            assume: Assume::Nothing,
            machine: Machine::Fresh,
            drain: runner.drain.clone(),
        };
        let mut turn_log = NoTurnLog;
        let hooks = Hooks::none(&mut turn_log);
        run_episode(protocol, &mut NoFurtherTurns, &mut conversation, prepared.instruction, &episode, hooks)
            .await?
    };
    if ended.end != End::StepLimit {
        return Err(unsupported("the recorded turns had other effects when they were executed again"));
    }
    let stopped = sandbox.stop().await.map_err(TrialError::Engine)?;
    let state = match stopped.commit().await {
        Err(EngineError::NotSavable { .. }) => {
            return Err(unsupported("its state has names that no image can hold"));
        }
        Err(EngineError::StateTooLarge { .. }) => {
            return Err(unsupported("an image of its state would be larger than its disk limit"));
        }
        state => state.map_err(TrialError::Engine)?,
    };
    stopped.destroy().await;
    conversation.done = turns;
    Ok(Fork { point: ForkPoint { parent: rollout_id(parent), turns }, conversation, state })
}

/// The policy of an episode that ends before it requests a message.
struct NoFurtherTurns;

impl Policy for NoFurtherTurns {
    async fn next(&mut self, _: &Conversation) -> Result<AssistantMessage, AgentError> {
        Ok(AssistantMessage::default())
    }
}
