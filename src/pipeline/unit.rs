//! One unit: all work on a blueprint, from the draft to committed rollouts.

use std::time::Instant;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;

use super::assets::PipelineAssets;
use super::authored::{ModelAuthor, SamplingOrder, Unmade, Writing, authored};
use super::blind::{Blind, add_blind_rows, blind_identity};
use super::error::Fault;
use super::event::{Event, EventSink};
use crate::agent::{AgentError, ScaffoldMix, ScriptError};
use crate::author::{AuthorError, draft};
use crate::harbor::{Publication, add_classes, write_task};
use crate::lint::lint_draft;
use crate::model::{
    Blueprint, Certificate, Draft, EnvironmentDigest, FileTree, Key, Limits, Outcome, Rigor, Screened,
    ScreeningCost, TaskAuthor, Timings, TrajectoryRecord, environment_digest, task_digest,
};
use crate::rollout::{PreparedTask, ROLLOUT, RolloutError, ScriptedConfig, rollout};
use crate::screen::{Extent, Material, Only, SCREEN, screen};
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{HashedTask, RowName, TrialRunner, TrialStep, Watcher};

/// A task that an author wrote.
pub const DRAFT: Stage = Stage::computed("draft");
/// The record that completes a unit. Readers find all other records of the unit through it.
pub const UNIT: Stage = Stage::given("unit");

/// The result of a blueprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRecord {
    pub blueprint: Blueprint,
    pub draft: Key,
    pub certificate: Key,
    /// Rollouts ordered by attempt. Empty for a rejected draft.
    pub rollouts: Vec<Key>,
}

/// A finished unit, for the summary.
#[derive(Clone, Debug)]
pub struct Ended {
    pub key: Key,
    pub record: UnitRecord,
    pub certificate: Certificate,
    /// What its trials cost.
    pub cost: ScreeningCost,
    /// Outcomes of the rollouts, ordered by attempt.
    pub outcomes: Vec<Outcome>,
    /// Attempts without a rollout because the recipe's script is wrong, with the reason.
    pub script_faults: Vec<(u32, ScriptError)>,
}

/// A draft with its directory and digests, ready for screening and rollouts.
#[derive(Debug)]
pub struct HashedDraft {
    pub draft: Draft,
    pub key: Key,
    pub directory: FileTree,
    pub environment_digest: EnvironmentDigest,
}

/// Options for each unit.
#[derive(Clone, Debug)]
pub struct UnitOptions {
    /// Rollouts of each certified task.
    pub attempts: u32,
    /// The scaffolds of the rollouts, and how often each is drawn.
    pub scaffolds: ScaffoldMix,
    /// How thoroughly the verifier is tested.
    pub rigor: Rigor,
    /// The models that write tasks of blueprints without a recipe.
    pub model: Option<ModelAuthor>,
    /// How task directories are written for other harnesses.
    pub publication: Publication,
}

/// Renders a blueprint's draft, or reads the committed one.
pub fn hash_draft(
    assets: &PipelineAssets,
    store: &Store,
    blueprint: &Blueprint,
    publication: &Publication,
) -> Result<HashedDraft, Fault> {
    let unknown = || AuthorError::unknown(blueprint);
    let recipe = blueprint.recipe().and_then(|id| assets.recipes.get(id)).ok_or_else(unknown)?;
    let domain = assets.domains.get(&blueprint.domain).ok_or_else(unknown)?;
    let limits = domain.limits.over(&Limits::default());
    let input = serde_json::json!({
        "blueprint": blueprint,
        "recipe": recipe.digest(),
        "kit": assets.kit.digest(),
        "limits": limits,
    });
    let key = key(DRAFT, &input)?;
    let draft = match store.get::<Draft>(DRAFT, &key)? {
        Some(draft) => draft,
        None => {
            let draft = draft(&assets.kit, recipe, blueprint, &limits)?;
            store.put(DRAFT, &key, &draft)?;
            draft
        }
    };
    let base = assets.kit.base(&draft.task.base).unwrap_or_default();
    let environment_digest = environment_digest(&draft.task.environment, base);
    let directory = write_task(&draft.task, publication)?;
    Ok(HashedDraft { draft, key, directory, environment_digest })
}

/// How the work on a blueprint ended.
#[derive(Debug)]
pub enum UnitEnd {
    /// Its unit is committed.
    Ended(Box<Ended>),
    /// A model gave up, so there is no draft.
    Unmade(Unmade),
}

/// Runs one blueprint until its unit is committed. Callers must begin units that a model writes in
/// the order of the plan.
pub async fn unit(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    blueprint: &Blueprint,
    sampling: &SamplingOrder,
    options: &UnitOptions,
    events: EventSink<'_>,
) -> Result<UnitEnd, Fault> {
    let started = Instant::now();
    let tell = |row: RowName<'_>, step: TrialStep| {
        let RowName { task, kind, name } = row;
        events(Event::Trial { task: task.to_owned(), kind, name: name.to_owned(), step });
    };
    let runner = &TrialRunner { watcher: Watcher::telling(&tell), ..*runner };
    let hashed_draft = match (&blueprint.author, &options.model) {
        (TaskAuthor::Model, Some(model)) => {
            let writing = Writing::of(runner, assets, model, blueprint, options);
            match authored(&writing, sampling, &options.publication).await? {
                Ok(hashed_draft) => hashed_draft,
                Err(unmade) => return Ok(UnitEnd::Unmade(unmade)),
            }
        }
        (TaskAuthor::Recipe(_), _) | (TaskAuthor::Model, None) => {
            hash_draft(assets, runner.store, blueprint, &options.publication)?
        }
    };
    let draft = &hashed_draft.draft;
    let task = draft.task.name.to_string();
    let hashed = HashedTask::new(&draft.task, hashed_draft.environment_digest.clone())?;
    let (certificate_key, certificate) =
        certify(runner, assets, &hashed_draft, &hashed, Thoroughness::of(options, assets), events).await?;
    let attempted = match certificate.screened() {
        Screened::Rejected => Vec::new(),
        Screened::Certified => {
            // A model's task has no scripted expert. The command `rollout` runs agents on it.
            let attempts = if draft.expert.steps.is_empty() { 0 } else { options.attempts };
            let runs = (0..attempts).map(|attempt| {
                let (hashed, certificate, task) = (&hashed, &certificate, &task);
                let config = ScriptedConfig { scaffolds: &assets.scripted, mix: &options.scaffolds };
                async move {
                    let rolled_out = rollout(runner, config, draft, hashed, certificate, attempt)
                        .instrument(tracing::info_span!("rollout", scaffold = "scripted", attempt))
                        .await;
                    let key = match rolled_out {
                        Ok(key) => key,
                        Err(RolloutError::Agent(AgentError::Script(error))) => {
                            let (task, message) = (task.clone(), error.to_string());
                            events(Event::ScriptFailed { task, attempt, message });
                            return Ok(Err((attempt, error)));
                        }
                        Err(other) => return Err(other.into()),
                    };
                    let outcome = rollout_outcome(runner.store, &key)?;
                    events(Event::RolledOut { task: task.clone(), attempt, outcome });
                    Ok::<_, Fault>(Ok((key, outcome)))
                }
            });
            // All are awaited, so that an interrupted run commits the rollouts in progress.
            join_all(runs).await.into_iter().collect::<Result<Vec<_>, _>>()?
        }
    };
    let (mut rollouts, mut script_faults) = (Vec::new(), Vec::new());
    for attempt in attempted {
        match attempt {
            Ok(rollout) => rollouts.push(rollout),
            Err(fault) => script_faults.push(fault),
        }
    }
    let record = UnitRecord {
        blueprint: blueprint.clone(),
        draft: hashed_draft.key.clone(),
        certificate: certificate_key,
        rollouts: rollouts.iter().map(|(key, _)| key.clone()).collect(),
    };
    let outcomes = rollouts.into_iter().map(|(_, outcome)| outcome).collect();
    let cost = screening_cost(runner.store, &record.certificate)?;
    let key = key(UNIT, &record)?;
    if runner.store.get::<UnitRecord>(UNIT, &key)?.is_none() {
        runner.store.put(UNIT, &key, &record)?;
    }
    events(Event::Finished { task, seconds: started.elapsed().as_secs_f64() });
    Ok(UnitEnd::Ended(Box::new(Ended { key, record, certificate, cost, outcomes, script_faults })))
}

/// Everything but the draft that a certificate depends on.
#[derive(Clone, Copy, Debug)]
pub struct Thoroughness<'a> {
    pub rigor: Rigor,
    /// Blind solvers, if they are asked for.
    pub blind: Option<Blind<'a>>,
}

impl<'a> Thoroughness<'a> {
    fn of(options: &'a UnitOptions, assets: &'a PipelineAssets) -> Self {
        let model = options.model.as_ref().filter(|model| model.blind.is_some());
        Self { rigor: options.rigor, blind: model.map(|model| Blind { model, assets }) }
    }
}

/// Screens a draft, or reads the committed certificate.
pub async fn certify(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    hashed_draft: &HashedDraft,
    hashed: &HashedTask<'_>,
    thoroughness: Thoroughness<'_>,
    events: EventSink<'_>,
) -> Result<(Key, Certificate), Fault> {
    let Thoroughness { rigor, blind } = thoroughness;
    let started = Instant::now();
    let findings = lint_draft(&assets.rules, &hashed_draft.directory, &hashed_draft.draft);
    let input = serde_json::json!({
        "draft": hashed_draft.key,
        "task": hashed.identity,
        "environment": hashed.environment_digest,
        "directory": task_digest(&hashed_draft.directory),
        "findings": findings,
        "suite": assets.suite,
        "rigor": rigor,
        "blind": blind.map(blind_identity),
    });
    let key = key(SCREEN, &input)?;
    let certificate = match runner.store.get::<Certificate>(SCREEN, &key)? {
        Some(certificate) => certificate,
        None => {
            events(Event::Started { task: hashed.task.name.to_string() });
            let material = Material::of_draft(&hashed_draft.draft, hashed, &hashed_draft.directory);
            let (suite, extent) = (&assets.suite, Extent::of(rigor));
            let screening = screen(runner, suite, &material, &findings, extent, &Only::All).await?;
            let (mut certificate, timings) = screening.conclusive()?;
            if let Some(model) = blind {
                add_blind_rows(runner, assets, model, &PreparedTask::ours(hashed), &mut certificate).await?;
            }
            // The digest covers the directory as it is published.
            let mut directory = hashed_draft.directory.clone();
            add_classes(&mut directory, &certificate.checks);
            certificate.task_digest = task_digest(&directory);
            runner.store.observe(&key, &timings)?;
            runner.store.put(SCREEN, &key, &certificate)?;
            certificate
        }
    };
    events(Event::Screened {
        task: certificate.task.clone(),
        certified: certificate.certified,
        rows: certificate.rows.len(),
        reasons: certificate.reasons.iter().map(|reason| reason.message.clone()).collect(),
        seconds: started.elapsed().as_secs_f64(),
    });
    Ok((key, certificate))
}

/// What the trials behind the certificate at `key` cost.
pub(super) fn screening_cost(store: &Store, key: &Key) -> Result<ScreeningCost, StoreError> {
    Ok(store.observed::<Timings>(key)?.map(|timings| timings.cost).unwrap_or_default())
}

fn rollout_outcome(store: &Store, key: &Key) -> Result<Outcome, StoreError> {
    let record = store.get::<TrajectoryRecord>(ROLLOUT, key)?;
    Ok(record.map_or(Outcome::Infra, |record| record.verdict.outcome))
}
