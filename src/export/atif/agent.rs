//! The agent of a rollout, as ATIF and Harbor name it.

use serde_json::{Value, json};

use super::document::{Agent, object};
use crate::model::{Actor, ModelActor, Rollout, ToolDefinition};

/// Name and version of the agent. The version is `None` if an imported rollout does not state it.
pub(in crate::export) fn agent_identity(rollout: &Rollout) -> (String, Option<String>) {
    let record = &rollout.record;
    let ours = |name: &str| (format!("termsmith-{name}"), Some(env!("CARGO_PKG_VERSION").to_owned()));
    match &record.actor {
        Actor::Imported(origin) => (origin.agent.clone(), origin.agent_version.clone()),
        Actor::Model(ModelActor { program: Some(program), .. }) => {
            (record.scaffold.clone(), Some(program.version.clone()))
        }
        Actor::Model(_) => ours(&record.scaffold),
        Actor::Scripted { .. } | Actor::Oracle | Actor::Nop => ours(record.actor.teacher()),
    }
}

/// The version of an agent that is not termsmith's own. `None` for others, or if it is unknown.
pub(in crate::export) fn program_version(rollout: &Rollout) -> Option<String> {
    match &rollout.record.actor {
        Actor::Imported(origin) => origin.agent_version.clone(),
        Actor::Model(actor) => actor.program.as_ref().map(|program| program.version.clone()),
        Actor::Scripted { .. } | Actor::Oracle | Actor::Nop => None,
    }
}

/// Name and version of the agent in ATIF and Harbor documents.
pub(in crate::export) fn agent_name(rollout: &Rollout) -> (String, String) {
    let (name, version) = agent_identity(rollout);
    // Harbor refuses null. It writes `unknown` itself.
    (name, version.unwrap_or_else(|| "unknown".to_owned()))
}

/// The model of the rollout, or what acted in place of one: `scripted`, `oracle` or `nop`.
pub(in crate::export) fn model_name(rollout: &Rollout) -> Option<String> {
    match &rollout.record.actor {
        Actor::Imported(origin) => origin.model.clone(),
        actor => Some(actor.teacher().to_owned()),
    }
}

pub(super) fn agent(rollout: &Rollout) -> Agent {
    let (name, version) = agent_name(rollout);
    Agent {
        name,
        version,
        model_name: model_name(rollout),
        tool_definitions: rollout.record.tools.iter().map(definition).collect(),
        extra: object(json!({ "scaffold": rollout.record.scaffold })),
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({ "type": "function", "function": tool })
}
