//! Stores the drafts that a model writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::sync::{Mutex, watch};

use super::assets::PipelineAssets;
use super::error::Fault;
use super::unit::{DRAFT, HashedDraft, UnitOptions};
use crate::authoring::{
    Abandoned, Accepted, BlindSolvers, GivenUp, Requested, SolverPair, StageContext, StageCounts, StageError,
    StageTexts, author, requested,
};
use crate::harbor::{Publication, task_name, write_task};
use crate::llm::{CallError, ModelRole, Models, Sampling};
use crate::model::{
    AuthoringMode, AuthoringOutcome, AuthoringRecord, Blueprint, DomainId, Draft, File, FileTree, RelPath,
    Rigor, StageName, TaskAuthor, environment_digest,
};
use crate::recording::Recording;
use crate::rollout::AgentConfig;
use crate::store::{ReadStore, Stage, StoreError, key};
use crate::verify::TrialRunner;

/// How a model wrote a task, or why it gave up.
pub const AUTHORING: Stage = Stage::given("authoring");

/// The folder in a run folder for drafts that were rejected.
pub(super) const REJECTED: &str = "rejected";
pub(super) const UNCONFIRMED: &str = "unconfirmed";
/// The file with all versions of a draft that was given up, and their problems.
const HISTORY: &str = "history.json";

/// The sampling method that is stored for a request from a recorded session.
const RECORDING: &str = "recording";

/// The models and prompts that write tasks.
#[derive(Clone, Debug)]
pub struct ModelAuthor {
    pub models: Arc<Models>,
    pub texts: StageTexts,
    /// Recorded sessions that tasks are made from, by the blueprint's index. The requests of all
    /// other blueprints are sampled.
    pub recordings: BTreeMap<u32, Recording>,
    pub mode: AuthoringMode,
    pub counts: StageCounts,
    /// Blind solvers, and their number of attempts.
    pub blind: Option<(AgentConfig, u32)>,
    /// A strong and a weak solver. They measure a task's difficulty.
    pub difficulty_solvers: Option<DifficultySolvers>,
}

/// A strong and a weak solver, and the number of attempts of each.
#[derive(Clone, Debug)]
pub struct DifficultySolvers {
    pub strong: AgentConfig,
    pub weak: AgentConfig,
    pub attempts: u32,
}

impl ModelAuthor {
    /// The method by which requests are sampled.
    fn sampling(&self) -> &'static str {
        let settings = self.models.settings(ModelRole::Sampler);
        settings.map_or(Sampling::Chat.method(), |(settings, _)| settings.sampling.method())
    }
}

/// A blueprint without a draft, because a stage gave up.
#[derive(Clone, Debug)]
pub struct Unmade {
    pub stage: StageName,
    pub given_up: GivenUp,
    /// The problems of the stage's last version.
    pub problems: Vec<String>,
    /// The task directory so far, and `history.json`.
    pub directory: FileTree,
}

/// `history.json` of a draft that was given up.
#[derive(Debug, Serialize)]
struct AbandonedHistory<'a> {
    /// The request that the task began with.
    request: &'a str,
    /// The stage that gave up.
    stage: &'a StageName,
    versions: Vec<AbandonedVersion<'a>>,
}

#[derive(Debug, Serialize)]
struct AbandonedVersion<'a> {
    stage: &'a StageName,
    version: u32,
    problems: &'a [String],
}

impl Unmade {
    /// The folder in a run folder that the draft is written to.
    pub(super) fn folder(&self) -> &'static str {
        match self.given_up {
            GivenUp::Unconfirmed => UNCONFIRMED,
            GivenUp::Rejected => REJECTED,
        }
    }
}

/// Everything that is needed to write one blueprint's task.
pub(super) struct Writing<'a> {
    runner: &'a TrialRunner<'a>,
    assets: &'a PipelineAssets,
    model: &'a ModelAuthor,
    blueprint: &'a Blueprint,
    unit: String,
    blind: Option<BlindSolvers<'a>>,
    solver_pair: Option<SolverPair<'a>>,
    rigor: Rigor,
}

impl<'a> Writing<'a> {
    pub(super) fn of(
        runner: &'a TrialRunner<'a>,
        assets: &'a PipelineAssets,
        model: &'a ModelAuthor,
        blueprint: &'a Blueprint,
        options: &UnitOptions,
    ) -> Self {
        let blind = model.blind.as_ref().map(|(agent, attempts)| BlindSolvers {
            texts: &assets.texts,
            agent,
            attempts: *attempts,
        });
        let solver_pair = model.difficulty_solvers.as_ref().map(|solvers| SolverPair {
            texts: &assets.texts,
            strong: &solvers.strong,
            weak: &solvers.weak,
            attempts: solvers.attempts,
        });
        let unit = task_name(blueprint).to_string();
        Self { runner, assets, model, blueprint, unit, blind, solver_pair, rigor: options.rigor }
    }

    fn context(&self) -> Result<StageContext<'_>, Fault> {
        let Self { runner, assets, model, blueprint, .. } = *self;
        let spec = assets.domains.get(&blueprint.domain);
        Ok(StageContext {
            runner,
            models: &model.models,
            texts: &model.texts,
            kit: &assets.kit,
            rules: &assets.rules,
            suite: &assets.suite,
            spec: spec.ok_or_else(|| crate::author::AuthorError::unknown(blueprint))?,
            blueprint,
            unit: &self.unit,
            rigor: self.rigor,
            mode: model.mode,
            counts: &model.counts,
            recording: model.recordings.get(&blueprint.index),
            blind: self.blind.as_ref(),
            solver_pair: self.solver_pair.as_ref(),
            evolution: 0,
        })
    }

    /// Stops the run after an error that every further call would repeat, e.g. a spent budget.
    fn checked<T>(&self, result: Result<T, StageError>) -> Result<T, Fault> {
        result.map_err(Fault::from).inspect_err(|fault| {
            if fault.ends_everything() {
                self.runner.drain.cancel();
            }
        })
    }
}

/// The order in which requests are sampled.
///
/// Requests of one domain are sampled one after another. Each sampler is shown the titles that were
/// accepted before it, and near-duplicates of these are dropped. So the requests depend only on the
/// plan and the replies. If a request could not be sampled, the later ones of its domain are left
/// open: their samplers would not see its title, so a resumed run would get other requests. Domains
/// do not wait for each other. A sampled request goes on to the next stages at once.
#[derive(Debug, Default)]
pub struct SamplingOrder {
    domains: BTreeMap<DomainId, Turns>,
}

/// The order in one domain.
#[derive(Debug, Default)]
struct Turns {
    /// Blueprints by index, in order.
    order: Vec<u32>,
    /// The number of blueprints whose turn is over.
    done: watch::Sender<usize>,
    /// The first task whose request could not be sampled.
    failed: OnceLock<String>,
    accepted: Mutex<Accepted>,
}

impl SamplingOrder {
    /// The order of the blueprints in `blueprints` that a model writes.
    pub(super) fn of(blueprints: &[&Blueprint]) -> Self {
        let mut domains: BTreeMap<DomainId, Turns> = BTreeMap::new();
        for blueprint in blueprints.iter().filter(|blueprint| blueprint.author == TaskAuthor::Model) {
            domains.entry(blueprint.domain.clone()).or_default().order.push(blueprint.index);
        }
        Self { domains }
    }

    /// The number of requests.
    pub(super) fn len(&self) -> usize {
        self.domains.values().map(|turns| turns.order.len()).sum()
    }

    /// Waits for the earlier requests of the domain, then samples this one. Callers must begin
    /// blueprints in the order of the plan, or this waits for ever.
    async fn request(&self, writing: &Writing<'_>) -> Result<Requested, Fault> {
        let blueprint = writing.blueprint;
        let turns = self.domains.get(&blueprint.domain);
        let turns = turns.ok_or_else(|| crate::author::AuthorError::unknown(blueprint))?;
        let turn = turns.order.iter().position(|index| *index == blueprint.index).unwrap_or_default();
        // The sender lives as long as the run, so the wait cannot fail.
        let _ = turns.done.subscribe().wait_for(|done| *done >= turn).await;
        let sampled = Self::sample(writing, turns).await;
        if let Err(fault) = &sampled
            && !is_repeatable(fault)
        {
            turns.failed.get_or_init(|| writing.unit.clone());
        }
        // The turn is over even after an error. Otherwise the next request would wait for ever.
        turns.done.send_replace(turn + 1);
        sampled
    }

    async fn sample(writing: &Writing<'_>, turns: &Turns) -> Result<Requested, Fault> {
        if writing.runner.drain.is_cancelled() {
            return Err(Fault::Drained);
        }
        if let Some(earlier) = turns.failed.get() {
            return Err(Fault::AwaitsRequest { earlier: earlier.clone() });
        }
        let mut accepted = turns.accepted.lock().await;
        let context = writing.context()?;
        writing.checked(Box::pin(requested(&context, &mut accepted)).await)
    }
}

/// Whether the same request fails in every run, e.g. because a filter refused it. Then no run will
/// have its title, and later requests need not wait for it.
fn is_repeatable(fault: &Fault) -> bool {
    matches!(fault.call(), Some(CallError::ContextLength { .. } | CallError::ContentFilter { .. }))
}

/// Has a model write a task, and writes its directory as `publication` says.
pub(super) async fn authored(
    writing: &Writing<'_>,
    sampling: &SamplingOrder,
    publication: &Publication,
) -> Result<Result<HashedDraft, Unmade>, Fault> {
    let Writing { runner, assets, model, blueprint, .. } = *writing;
    let context = writing.context()?;
    let requested = sampling.request(writing).await?;
    let authored = writing.checked(Box::pin(author(&context, requested)).await)?;
    let store = runner.store;
    let (outcome, result) = match authored.draft {
        Err(Abandoned { stage, given_up, task }) => {
            let problems = authored.log.problems.last().cloned().unwrap_or_default();
            let mut directory = match task {
                Some(task) => write_task(&task, publication)?,
                None => FileTree::default(),
            };
            let versions = authored.versions.iter().zip(&authored.log.problems);
            let versions = versions.map(|(version, problems)| AbandonedVersion {
                stage: &version.stage,
                version: version.version,
                problems,
            });
            let history =
                AbandonedHistory { request: &authored.request, stage: &stage, versions: versions.collect() };
            let text = serde_json::to_string_pretty(&history).map_err(StoreError::Encode)?;
            directory.insert(RelPath::new(HISTORY).map_err(StageError::Path)?, File::text(text + "\n"));
            let outcome = AuthoringOutcome::Rejected(stage.clone());
            (outcome, Err(Unmade { stage, given_up, problems, directory }))
        }
        Ok(draft) => {
            let key = key(DRAFT, &*draft)?;
            if store.get::<Draft>(DRAFT, &key)?.is_none() {
                store.put(DRAFT, &key, &*draft)?;
            }
            let base = assets.kit.base(&draft.task.base).unwrap_or_default();
            let hashed = HashedDraft {
                environment_digest: environment_digest(&draft.task.environment, base),
                directory: write_task(&draft.task, publication)?,
                key: key.clone(),
                draft: *draft,
            };
            (AuthoringOutcome::Draft(key), Ok(hashed))
        }
    };
    let recording = model.recordings.get(&blueprint.index);
    let record = AuthoringRecord {
        blueprint: blueprint.clone(),
        sampling: recording.map_or(model.sampling(), |_| RECORDING).to_owned(),
        recording: recording.map(|recording| recording.digest.clone()),
        mode: model.mode,
        request: authored.request,
        versions: authored.versions,
        difficulty_bands: authored.difficulty_bands,
        outcome,
    };
    let key = key(AUTHORING, &record)?;
    if store.get::<AuthoringRecord>(AUTHORING, &key)?.is_none() {
        store.observe(&key, &authored.log)?;
        store.put(AUTHORING, &key, &record)?;
    }
    Ok(result)
}

/// Names of the drafts in `store` that were given up.
pub(super) fn abandoned(store: &ReadStore) -> Result<BTreeSet<String>, StoreError> {
    let mut names = BTreeSet::new();
    for key in store.keys(AUTHORING)? {
        if let Some(record) = store.get::<AuthoringRecord>(AUTHORING, &key)?
            && matches!(record.outcome, AuthoringOutcome::Rejected(_))
        {
            names.insert(task_name(&record.blueprint).to_string());
        }
    }
    Ok(names)
}
