//! Rows of a certificate about solvers that saw only the instruction and the machine.
//!
//! A reference and checks by one author share what the author takes for granted. Somebody else who reads the instruction does not
//! (TerminalWorld and LongCLI-Bench confirm tasks this way).

use serde_json::{Value, json};

use super::assets::PipelineAssets;
use super::authored::ModelAuthor;
use super::error::Fault;
use crate::agent::{ArmTexts, Logprobs, PlainSummary, PromptsError};
use crate::assets::Assets;
use crate::authoring::{BlindSolvers, blind_attempts};
use crate::model::{Arm, Certificate, RejectReason, Row, RowKind, TrajectoryRecord, Verdict};
use crate::rollout::{Overflow, PreparedTask};
use crate::screen::repair;
use crate::verify::TrialRunner;

/// Blind solvers, and what they are told.
#[derive(Clone, Copy, Debug)]
pub struct Blind<'a> {
    pub model: &'a ModelAuthor,
    pub assets: &'a PipelineAssets,
}

/// Digests of the texts that attempts of all scaffolds share.
#[derive(Clone, Debug)]
pub(super) struct SharedTexts {
    arms: String,
    summary: String,
}

impl SharedTexts {
    pub(super) fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let (arms, summary) = (ArmTexts::load(assets)?.digest(), PlainSummary::load(assets)?.digest());
        Ok(Self { arms, summary })
    }
}

/// What the rows depend on besides the task: what is in the keys of the attempts (`rollout::address`), and their number.
pub(super) fn blind_identity(blind: Blind<'_>) -> Option<Value> {
    let Blind { model, assets } = blind;
    let (agent, attempts) = model.blind.as_ref()?;
    // A role that has no model fails when it is called.
    let settings = model.models.settings(agent.role).ok();
    Some(json!({
        "scaffold": agent.scaffold.name(),
        "texts": agent.scaffold.digest(),
        "arms": assets.shared.arms,
        "actor": agent.actor,
        "settings": settings.map(|(settings, _)| settings),
        "return_reasoning": settings.is_some_and(|(_, endpoint)| endpoint.return_reasoning),
        "logprobs": agent.logprobs == Logprobs::Ask,
        "limits": agent.limits,
        "rounds": if agent.actor.arm == Arm::SelfCorrection { agent.rounds } else { 0 },
        "forensics": assets.texts.forensics().digest(),
        "summaries": (agent.overflow == Overflow::Summarised).then_some(&assets.shared.summary),
        "attempts": attempts,
    }))
}

/// Lets solvers try a certified task up to the first that passes. If none does, the task is unconfirmed, which rejects it.
pub(super) async fn add_blind_rows(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    blind: Blind<'_>,
    prepared: &PreparedTask<'_>,
    certificate: &mut Certificate,
) -> Result<(), Fault> {
    let model = blind.model;
    let Some((agent, attempts)) = &model.blind else { return Ok(()) };
    if !certificate.certified {
        return Ok(());
    }
    let blind = BlindSolvers { texts: &assets.texts, agent, attempts: *attempts };
    let ended = blind_attempts(runner, &model.models, &blind, prepared).await.map_err(Fault::from);
    let ended = ended.inspect_err(|fault| {
        if fault.ends_everything() {
            runner.drain.cancel();
        }
    })?;
    let solved = ended.iter().any(|(record, _)| record.verdict.passed());
    for (number, (record, _)) in (1..).zip(&ended) {
        certificate.rows.push(row(number, record, solved));
    }
    if !solved {
        let failed = ended.iter().map(|(record, _)| failed_checks(&record.verdict)).collect::<Vec<_>>();
        let (part, ask) = repair(RowKind::Blind, "");
        certificate.certified = false;
        certificate.reasons.push(RejectReason {
            kind: RowKind::Blind,
            name: "unconfirmed".to_owned(),
            message: format!(
                "unconfirmed: none of {} solvers that saw only the instruction passed (failed: {})",
                ended.len(),
                failed.join("; ")
            ),
            part,
            ask: ask.to_owned(),
        });
    }
    Ok(())
}

fn row(number: u32, record: &TrajectoryRecord, solved: bool) -> Row {
    let verdict = &record.verdict;
    let passed = verdict.checks.iter().filter(|check| check.passed).count();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Row {
        kind: RowKind::Blind,
        name: number.to_string(),
        outcome: Some(verdict.outcome),
        passed_of: (!verdict.checks.is_empty()).then(|| (count(passed), count(verdict.checks.len()))),
        ok: solved,
        counts: true,
        note: String::new(),
    }
}

fn failed_checks(verdict: &Verdict) -> String {
    let failed = verdict.checks.iter().filter(|check| !check.passed).map(|check| check.id.as_str());
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() { verdict.cause.clone() } else { failed.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::agent::{BashBlock, React, StepLimits};
    use crate::authoring::StageTexts;
    use crate::llm::{ModelRole, Models, Options, Settings};
    use crate::model::{AuthoringMode, ModelActor};
    use crate::rollout::AgentConfig;
    use crate::store::{RunDir, Store};

    const SETTINGS: &str = "\
version = 1
[endpoints.e]
base_url = \"http://127.0.0.1:9/v1\"
[roles.solver]
endpoint = \"e\"
model = \"solves\"
max_tokens = 64
";

    /// A certificate is made again exactly when its attempts are.
    #[test]
    fn identities_hold_what_influences_the_attempts() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(RunDir::open(dir.path()).unwrap());
        let plain = Assets::embedded();
        let identity =
            |settings: &str, assets: &PipelineAssets, bend: &dyn Fn(&mut AgentConfig, &mut u32)| {
                let settings = Settings::parse("termsmith.toml", settings).unwrap();
                let models = Models::new(settings, |_| None, &store, Options::default()).unwrap();
                let mut agent = AgentConfig {
                    scaffold: Arc::new(BashBlock::load(&plain).unwrap()),
                    role: ModelRole::Solver,
                    actor: ModelActor {
                        model: "solves".to_owned(),
                        endpoint: "e".to_owned(),
                        arm: Arm::Base,
                        adversary: None,
                    },
                    limits: StepLimits::scripted(Duration::from_secs(1)),
                    rounds: 0,
                    logprobs: Logprobs::No,
                    overflow: Overflow::Ends,
                    fork: None,
                };
                let mut attempts = 2;
                bend(&mut agent, &mut attempts);
                let model = ModelAuthor {
                    models: Arc::new(models),
                    texts: StageTexts::load(&plain).unwrap(),
                    recordings: BTreeMap::new(),
                    mode: AuthoringMode::OneShot,
                    blind: Some((agent, attempts)),
                    bands: None,
                };
                blind_identity(Blind { model: &model, assets }).unwrap()
            };
        let assets = PipelineAssets::load(&plain).unwrap();
        let usual = identity(SETTINGS, &assets, &|_, _| ());
        let check = |what: &str, settings: &str, bend: &dyn Fn(&mut AgentConfig, &mut u32), same: bool| {
            assert_eq!(identity(settings, &assets, bend) == usual, same, "{what}");
        };
        let none: &dyn Fn(&mut AgentConfig, &mut u32) = &|_, _| ();
        check("nothing", SETTINGS, none, true);
        check("rounds of another arm", SETTINGS, &|agent, _| agent.rounds = 3, true);
        check("the temperature", &format!("{SETTINGS}temperature = 0.5\n"), none, false);
        check("the reply's length", &SETTINGS.replace("64", "65"), none, false);
        let reasoning = SETTINGS.replace("9/v1\"\n", "9/v1\"\nreturn_reasoning = true\n");
        check("what is sent back", &reasoning, none, false);
        check("the model", SETTINGS, &|agent, _| agent.actor.model.push('x'), false);
        let react = Arc::new(React::load(&plain).unwrap());
        check("the scaffold", SETTINGS, &|agent, _| agent.scaffold = react.clone(), false);
        check("the number of turns", SETTINGS, &|agent, _| agent.limits.turns += 1, false);
        check("the time", SETTINGS, &|agent, _| agent.limits.total *= 2, false);
        check("probabilities", SETTINGS, &|agent, _| agent.logprobs = Logprobs::Ask, false);
        check("summaries", SETTINGS, &|agent, _| agent.overflow = Overflow::Summarised, false);
        check("the number of attempts", SETTINGS, &|_, attempts| *attempts += 1, false);
        let mut other = PipelineAssets::load(&plain).unwrap();
        other.shared.arms.push('x');
        assert_ne!(identity(SETTINGS, &other, none), usual, "texts of the arms");
        other = PipelineAssets::load(&plain).unwrap();
        other.texts = crate::rollout::Texts::load(&plain, crate::rollout::Forensics::new(&[])).unwrap();
        assert_ne!(identity(SETTINGS, &other, none), usual, "forensics");
    }
}
