//! Names an attempt in the store, and its calls.

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
    let mut input = influences(models, texts, agent_config)?;
    input.insert("task".to_owned(), json!(prepared.target.identity()));
    input.insert("environment".to_owned(), json!(prepared.target.environment_digest()));
    input.insert("attempt".to_owned(), json!(attempt));
    Ok(key(ROLLOUT, &Value::from(input))?)
}

/// What influences an agent's attempts besides the task: names and values. Fails if no model has
/// the agent's role.
pub fn influences(
    models: &Models,
    texts: &Texts,
    agent_config: &AgentConfig,
) -> Result<Map<String, Value>, RolloutError> {
    let (settings, _) = models.settings(agent_config.role).map_err(AgentError::Call)?;
    let rounds = if agent_config.actor.arm == Arm::SelfCorrection { agent_config.rounds } else { 0 };
    let mut input = optional(models, agent_config);
    let always = [
        ("scaffold", json!(agent_config.scaffold.name())),
        ("texts", json!(agent_config.scaffold.digest())),
        ("arms", json!(texts.arms.digest())),
        ("actor", json!(agent_config.actor)),
        ("settings", json!(settings)),
        ("limits", json!(agent_config.limits)),
        ("rounds", json!(rounds)),
        ("fork", json!(agent_config.fork.as_ref().map(|fork| &fork.point))),
        ("forensics", json!(texts.forensics().digest())),
    ];
    input.extend(always.map(|(name, value)| (name.to_owned(), value)));
    if agent_config.overflow == Overflow::Summarised {
        input.insert("summaries".to_owned(), json!(texts.summary.digest()));
    }
    Ok(input)
}

/// Influences of only some attempts, e.g. of those of an arm. Other attempts have no entry for
/// them.
fn optional(models: &Models, agent_config: &AgentConfig) -> Map<String, Value> {
    let mut input = Map::new();
    let (planned, guided) = match agent_config.actor.arm {
        Arm::Base | Arm::SelfCorrection | Arm::Fork => (None, None),
        Arm::Plan => (Some(ModelRole::Planner), None),
        Arm::Interactive => (None, Some(ModelRole::Mentor)),
        Arm::PlanInteractive => (Some(ModelRole::Planner), Some(ModelRole::Mentor)),
    };
    for role in planned.into_iter().chain(guided) {
        // A role without a model is reported when it is called.
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

/// The unit in the call sites of an attempt. It contains no hash, so that a recording can still be
/// used after a prompt has changed.
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
    use crate::agent::{BashBlock, React, StepLimits};
    use crate::assets::Assets;
    use crate::lint::attack::attacks;
    use crate::llm::{Options, Settings};
    use crate::model::{File, FileTree, RelPath};
    use crate::rollout::{Forensics, Preflight};
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

    fn influences_with(
        settings: &str,
        assets: &Assets,
        forensics: Forensics,
        bend: &dyn Fn(&mut AgentConfig),
    ) -> Map<String, Value> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(RunDir::open(dir.path()).unwrap());
        let settings = Settings::parse("termsmith.toml", settings).unwrap();
        let models = Models::new(settings, |_| None, &store, Options::default()).unwrap();
        let mut agent_config = AgentConfig {
            scaffold: Arc::new(BashBlock::load(&Assets::embedded()).unwrap()),
            role: ModelRole::Expert,
            actor: ModelActor {
                model: "acts".to_owned(),
                endpoint: "e".to_owned(),
                arm: Arm::Base,
                adversary: None,
                program: None,
            },
            limits: StepLimits::scripted(Duration::from_secs(1)),
            rounds: 0,
            logprobs: Logprobs::No,
            overflow: Overflow::Ends,
            fork: None,
            preflight: Preflight::default(),
        };
        bend(&mut agent_config);
        influences(&models, &Texts::load(assets, forensics).unwrap(), &agent_config).unwrap()
    }

    /// An attempt is made again if something that influences it has changed, and only then.
    #[test]
    fn keys_hold_what_influences_an_attempt() {
        let plain = Assets::embedded();
        let of = |settings: &str, bend: &dyn Fn(&mut AgentConfig)| {
            influences_with(settings, &plain, Forensics::new(&[]), bend)
        };
        let none: &dyn Fn(&mut AgentConfig) = &|_| ();
        let usual = of(SETTINGS, none);
        let check = |what: &str, settings: &str, bend: &dyn Fn(&mut AgentConfig), same: bool| {
            assert_eq!(of(settings, bend) == usual, same, "{what}");
        };
        check("nothing", SETTINGS, none, true);
        check("rounds of another arm", SETTINGS, &|agent| agent.rounds = 3, true);
        check(
            "the temperature",
            &SETTINGS.replace("64\n[roles.p", "64\ntemperature = 0.5\n[roles.p"),
            none,
            false,
        );
        check("the reply's length", &SETTINGS.replacen("64", "65", 1), none, false);
        check("the model", SETTINGS, &|agent| agent.actor.model.push('x'), false);
        let react = Arc::new(React::load(&plain).unwrap());
        check("the scaffold", SETTINGS, &|agent| agent.scaffold = react.clone(), false);
        check("the number of turns", SETTINGS, &|agent| agent.limits.turns += 1, false);
        check("the time", SETTINGS, &|agent| agent.limits.total *= 2, false);
        check("probabilities", SETTINGS, &|agent| agent.logprobs = Logprobs::Ask, false);
        check("summaries", SETTINGS, &|agent| agent.overflow = Overflow::Summarised, false);
        let forensics = influences_with(SETTINGS, &plain, Forensics::new(&attacks(&plain).unwrap()), none);
        assert_ne!(forensics, usual, "forensics");
        let mut files = FileTree::default();
        for (path, bytes, executable) in plain.files_under("templates") {
            let mut bytes = bytes.to_vec();
            if path.as_str() == "prompts/arms/plan-system.md" {
                bytes.extend_from_slice(b"x");
            }
            files.insert(RelPath::new(format!("templates/{path}")).unwrap(), File { bytes, executable });
        }
        let arms = influences_with(SETTINGS, &Assets::from_tree(files), Forensics::new(&[]), none);
        assert_ne!(arms, usual, "texts of the arms");
    }

    #[test]
    fn settings_are_held_in_the_arms_that_use_them() {
        let inputs = |settings: &str, arm: Arm| {
            influences_with(settings, &Assets::embedded(), Forensics::new(&[]), &|agent| {
                agent.actor.arm = arm;
            })
        };
        let every =
            [Arm::Base, Arm::SelfCorrection, Arm::Plan, Arm::Interactive, Arm::PlanInteractive, Arm::Fork];
        let check = |from: &str, to: &str, arms: &[Arm]| {
            let changed = SETTINGS.replace(from, to);
            assert_ne!(changed, SETTINGS, "{from}");
            for arm in every {
                let differs = inputs(SETTINGS, arm) != inputs(&changed, arm);
                assert_eq!(differs, arms.contains(&arm), "{to}: {arm:?}");
            }
        };
        check("plans", "plans better", &[Arm::Plan, Arm::PlanInteractive]);
        check("answers", "answers better", &[Arm::Interactive, Arm::PlanInteractive]);
        check("9/v1\"\n", "9/v1\"\nreturn_reasoning = true\n", &every);
    }
}
