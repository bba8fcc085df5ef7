//! Forks: several attempts from the very state that another rollout had.

use std::time::Instant;

use super::played::{Casting, Posed};
use super::record::{RolloutError, read_record, rollout_id};
use super::scaffolds::{Protocol, Texts};
use crate::agent::{
    AgentError, Company, HandedOff, Mind, NoNotebook, Opening, Said, Scene, StepLimits, Talk,
};
use crate::model::{End, ForkPoint, Key};
use crate::sandbox::Image;
use crate::verify::{Lab, LabError};

/// A state from which several attempts begin, and the conversation that led there.
#[derive(Clone, Debug)]
pub struct Fork {
    pub point: ForkPoint,
    pub talk: Talk,
    pub state: Image,
}

/// The state that a rollout had after its first `turns` turns, made by doing them again: every attempt that begins there begins at
/// exactly the same files.
pub async fn fork(
    lab: &Lab<'_>,
    texts: &Texts,
    posed: &Posed<'_>,
    casting: &Casting,
    parent: &Key,
    turns: usize,
) -> Result<Fork, RolloutError> {
    let unplayable = |why| RolloutError::Unplayable { task: posed.name.to_string(), why };
    let Some((record, log)) = read_record(lab.store, parent)? else {
        return Err(unplayable("the rollout that it would part from is not in the run folder"));
    };
    if record.turns.len() <= turns {
        return Err(unplayable("the rollout that it would part from has fewer turns"));
    }
    // One that came right after the last shared turn is the parent's own.
    let handoffs = record.handoffs.into_iter().zip(log.handoffs);
    let handoffs = handoffs.map(|(handoff, seen)| HandedOff { handoff, seen });
    let handoffs = handoffs.filter(|handed| handed.handoff.turns < turns).collect();
    let mut talk = Talk {
        opening: Opening { system: record.system, prompt: record.prompt, tools: record.tools },
        turns: record.turns.into_iter().take(turns).collect(),
        seen: log.turns.into_iter().take(turns).collect(),
        handoffs,
        ..Talk::default()
    };
    let (sandbox, env) = posed.venue.ready(lab).await?;
    // No further turn: the recorded ones are done again, and the limit of turns is reached.
    let limits = StepLimits { turns: 0, ..casting.limits };
    let ended = {
        let scene =
            Scene { sandbox: &sandbox, env: &env, limits: &limits, deadline: Instant::now() + limits.total };
        let protocol = Protocol { texts, kind: casting.scaffold, wake: casting.wake };
        let mut nowhere = NoNotebook;
        let company = Company::none(&mut nowhere);
        protocol.play(&mut Silent, &mut talk, posed.instruction, &scene, company).await?
    };
    if ended.end != End::StepLimit {
        return Err(unplayable("its recorded turns came to something else when they were done again"));
    }
    let stopped = sandbox.stop().await.map_err(LabError::Engine)?;
    let state = stopped.commit().await.map_err(LabError::Engine)?;
    stopped.destroy().await;
    talk.done = turns;
    Ok(Fork { point: ForkPoint { parent: rollout_id(parent), turns }, talk, state })
}

/// Nobody. Its episodes end before it would have to say something.
struct Silent;

impl Mind for Silent {
    async fn next(&mut self, _: &Talk) -> Result<Said, AgentError> {
        Ok(Said::default())
    }
}
