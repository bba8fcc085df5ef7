//! Where an attempt is stored, and what its calls are named.

use serde_json::{Map, Value, json};

use super::attempt::{AgentConfig, Overflow, PreparedTask};
use super::record::{ROLLOUT, RolloutError};
use super::texts::Texts;
use crate::agent::{AgentError, Logprobs};
use crate::llm::{ModelRole, Models};
use crate::model::{AdversaryView, Arm, Key, ModelActor};
use crate::store::key;

/// The key of an attempt: a hash of everything that influences it.
pub(super) fn address(
    models: &Models,
    texts: &Texts,
    prepared: &PreparedTask<'_>,
    agent_config: &AgentConfig,
    attempt: u32,
) -> Result<Key, RolloutError> {
    let (settings, _) = models.settings(agent_config.role).map_err(AgentError::Call)?;
    let mut input = json!({
        "task": prepared.identity,
        "environment": prepared.environment_digest,
        "scaffold": agent_config.scaffold.name(),
        "texts": agent_config.scaffold.digest(),
        "arms": texts.arms.digest(),
        "actor": agent_config.actor,
        "settings": settings,
        "limits": agent_config.limits,
        "rounds": if agent_config.actor.arm == Arm::SelfCorrection { agent_config.rounds } else { 0 },
        "fork": agent_config.fork.as_ref().map(|fork| &fork.point),
        "forensics": texts.forensics().digest(),
        "attempt": attempt,
    });
    if agent_config.overflow == Overflow::Summarised {
        input["summaries"] = json!(texts.summary.digest());
    }
    for (name, value) in optional(models, agent_config) {
        input[name] = value;
    }
    Ok(key(ROLLOUT, &input)?)
}

/// What influences only some attempts. Where it does not, the key is that of earlier versions.
fn optional(models: &Models, agent_config: &AgentConfig) -> Map<String, Value> {
    let mut input = Map::new();
    let (planned, guided) = match agent_config.actor.arm {
        Arm::Base | Arm::SelfCorrection | Arm::Fork => (None, None),
        Arm::Plan => (Some(ModelRole::Planner), None),
        Arm::Interactive => (None, Some(ModelRole::Mentor)),
        Arm::PlanInteractive => (Some(ModelRole::Planner), Some(ModelRole::Mentor)),
    };
    for role in planned.into_iter().chain(guided) {
        // A role that has no model fails when it is called.
        let settings = models.settings(role).ok().map(|(settings, _)| settings);
        input.insert(role.to_string(), json!(settings));
    }
    if agent_config.logprobs == Logprobs::Ask {
        input.insert("logprobs".to_owned(), json!(true));
    }
    if models.settings(agent_config.role).is_ok_and(|(_, endpoint)| endpoint.return_reasoning) {
        input.insert("return_reasoning".to_owned(), json!(true));
    }
    input
}

/// The unit of an attempt's call sites. It contains no hash, so that a recording can still be used after a prompt has changed.
pub(super) fn unit(prepared: &PreparedTask<'_>, agent_config: &AgentConfig, attempt: u32) -> String {
    let ModelActor { arm, adversary, .. } = &agent_config.actor;
    let arm = match adversary {
        None => arm.as_str(),
        Some(AdversaryView::Blind) => "adversary_blind",
        Some(AdversaryView::Tests) => "adversary_tests",
    };
    let edition = match prepared.edition {
        0 => String::new(),
        edition => format!(".{edition}"),
    };
    format!("{}{edition}/{}/{arm}/{attempt}", prepared.name, agent_config.scaffold.name())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::agent::{BashBlock, StepLimits};
    use crate::assets::Assets;
    use crate::llm::{Options, Settings};
    use crate::store::{RunDir, Store};

    const SETTINGS: &str = "\
version = 1
[endpoints.e]
base_url = \"http://127.0.0.1:9/v1\"
[roles.expert]
endpoint = \"e\"
model = \"acts\"
max_tokens = 64
[roles.planner]
endpoint = \"e\"
model = \"plans\"
max_tokens = 64
[roles.mentor]
endpoint = \"e\"
model = \"answers\"
max_tokens = 64
";

    /// A setting is a part of the key exactly in the arms that use it.
    #[test]
    fn keys_hold_what_influences_an_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(RunDir::open(dir.path()).unwrap());
        let inputs = |settings: &str, arm: Arm, logprobs: Logprobs| {
            let settings = Settings::parse("termsmith.toml", settings).unwrap();
            let models = Models::new(settings, |_| None, &store, Options::default()).unwrap();
            let actor =
                ModelActor { model: "acts".to_owned(), endpoint: "e".to_owned(), arm, adversary: None };
            let agent_config = AgentConfig {
                scaffold: Arc::new(BashBlock::load(&Assets::embedded()).unwrap()),
                role: ModelRole::Expert,
                actor,
                limits: StepLimits::scripted(Duration::from_secs(1)),
                rounds: 0,
                logprobs,
                overflow: Overflow::Ends,
                fork: None,
            };
            optional(&models, &agent_config)
        };
        let check = |from: &str, to: &str, arms: &[Arm]| {
            let changed = SETTINGS.replace(from, to);
            assert_ne!(changed, SETTINGS, "{from}");
            for arm in
                [Arm::Base, Arm::SelfCorrection, Arm::Plan, Arm::Interactive, Arm::PlanInteractive, Arm::Fork]
            {
                let differs = inputs(SETTINGS, arm, Logprobs::No) != inputs(&changed, arm, Logprobs::No);
                assert_eq!(differs, arms.contains(&arm), "{to}: {arm:?}");
            }
        };
        let every =
            [Arm::Base, Arm::SelfCorrection, Arm::Plan, Arm::Interactive, Arm::PlanInteractive, Arm::Fork];
        check("plans", "plans better", &[Arm::Plan, Arm::PlanInteractive]);
        check("answers", "answers better", &[Arm::Interactive, Arm::PlanInteractive]);
        check("9/v1\"\n", "9/v1\"\nreturn_reasoning = true\n", &every);
        assert_eq!(inputs(SETTINGS, Arm::Base, Logprobs::No), Map::new(), "as in earlier versions");
        assert_ne!(inputs(SETTINGS, Arm::Base, Logprobs::Ask), Map::new());
    }
}
