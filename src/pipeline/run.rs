//! A whole run: plan, units, export, audit.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::assets::PipelineAssets;
use super::authored::{SamplingOrder, Unmade};
use super::campaign::{MEMBER, MemberRecord};
use super::error::{Fault, PipelineError, PublishError};
use super::event::{Event, EventSink};
use super::gather::{current_units, read_unit, write_index};
use super::publish::{prune, publish, publish_former, publish_unmade};
use super::read::export_store;
use super::stop::Stop;
use super::unit::{Ended, UnitEnd, UnitOptions, unit};
use crate::domain::{Plan, Shard};
use crate::export::{ExportOptions, ExportSummary};
use crate::harbor::Publication;
use crate::judge::Judgements;
use crate::model::{Blueprint, Key};
use crate::rollout::rollout_id;
use crate::sandbox::EngineError;
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{EngineOnDemand, Slots, TrialRunner, Watcher};

/// The planned blueprints. They are stored so that an audit knows what was requested.
pub(super) const BLUEPRINT: Stage = Stage::given("blueprint");

/// The run stops after this many consecutive units that failed because no engine answered. Each of
/// them was retried.
const ENGINE_GONE_AFTER: u32 = 3;

/// Units that wait for a model's replies at once. Endpoints have limits of their own.
const MODEL_UNITS: usize = 64;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub shard: Shard,
    pub unit: UnitOptions,
    /// Number of trials at once.
    pub slots: u32,
    pub export: ExportOptions,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    pub planned: usize,
    /// Finished units, by blueprint index.
    pub ended: Vec<Ended>,
    /// Blueprints without a draft, because a model gave up.
    pub unmade: Vec<(Blueprint, Unmade)>,
    /// Units without a result.
    pub faults: Vec<(Blueprint, Fault)>,
    /// `None` if the run was interrupted.
    pub export: Option<ExportSummary>,
    pub interrupted: bool,
    /// Whether the run stopped because the engine does not answer.
    pub engine_gone: bool,
}

/// Runs `plan`. The same arguments resume an interrupted run.
pub async fn run(
    assets: &PipelineAssets,
    store: &Store,
    engine: &EngineOnDemand,
    plan: &Plan,
    options: &RunOptions,
    drain: &CancellationToken,
    events: EventSink<'_>,
) -> Result<RunReport, PipelineError> {
    let blueprints: Vec<&Blueprint> = plan.shard(options.shard).collect();
    for blueprint in &blueprints {
        let key = key(BLUEPRINT, *blueprint)?;
        if store.get::<Blueprint>(BLUEPRINT, &key)?.is_none() {
            store.put(BLUEPRINT, &key, *blueprint)?;
        }
    }
    let slots = Slots::new(options.slots as usize);
    let runner =
        TrialRunner { engine, store, slots: &slots, priority: 0, drain, watcher: Watcher::default() };
    let watch = Watch::default();
    let sampling = SamplingOrder::of(&blueprints);
    // A unit that waits for a model needs no slot, so more units than slots may run.
    let waiting = sampling.len().min(MODEL_UNITS);
    let mut results: Vec<_> = futures_util::stream::iter(blueprints.iter().copied())
        .map(|blueprint| {
            // Tasks get slots in the order of the plan. A later task uses slots that the earlier
            // ones leave free.
            let runner = TrialRunner { priority: blueprint.index, ..runner };
            one(runner, assets, blueprint, &sampling, options, &watch, events)
        })
        // There are as many units as slots: while one unit waits for its last trial, the others use
        // the free slots.
        .buffer_unordered((options.slots as usize).max(waiting))
        .collect()
        .await;
    results.sort_by_key(|(blueprint, _)| blueprint.index);

    let mut report = RunReport {
        planned: blueprints.len(),
        ended: Vec::new(),
        unmade: Vec::new(),
        faults: Vec::new(),
        export: None,
        interrupted: false,
        engine_gone: false,
    };
    for (blueprint, result) in results {
        match result {
            Ok(UnitEnd::Ended(ended)) => report.ended.push(*ended),
            Ok(UnitEnd::Unmade(unmade)) => report.unmade.push((blueprint.clone(), unmade)),
            Err(fault) if fault.stop() == Some(Stop::Interrupted) => report.interrupted = true,
            Err(Fault::Store(error)) => return Err(error.into()),
            Err(fault) => report.faults.push((blueprint.clone(), fault)),
        }
    }
    report.engine_gone = watch.engine_gone();
    if !report.interrupted {
        report.export = Some(finish(store, &report, options, events)?);
    }
    Ok(report)
}

async fn one<'a>(
    runner: TrialRunner<'_>,
    assets: &PipelineAssets,
    blueprint: &'a Blueprint,
    sampling: &SamplingOrder,
    options: &RunOptions,
    watch: &Watch,
    events: EventSink<'_>,
) -> (&'a Blueprint, Result<UnitEnd, Fault>) {
    let span = tracing::info_span!("unit", task = %crate::harbor::task_name(blueprint));
    let result = unit(&runner, assets, blueprint, sampling, &options.unit, events).instrument(span).await;
    let result = match result {
        Ok(UnitEnd::Ended(ended)) => publish_unit(runner.store, &ended, &options.unit.publication)
            .map(|()| UnitEnd::Ended(ended))
            .map_err(Fault::from),
        Ok(UnitEnd::Unmade(unmade)) => {
            publish_unmade(runner.store, &crate::harbor::task_name(blueprint), &unmade)
                .map(|()| UnitEnd::Unmade(unmade))
                .map_err(Fault::from)
        }
        Err(fault) => Err(fault),
    };
    match &result {
        Ok(_) => watch.engine_answered(),
        Err(fault) if fault.stop() == Some(Stop::Interrupted) => {}
        Err(fault) => {
            let task = crate::harbor::task_name(blueprint).to_string();
            events(Event::Failed { task, message: fault.to_string() });
        }
    }
    match &result {
        Err(Fault::Engine(EngineError::Unreachable { .. })) => watch.engine_failed(runner.drain),
        // If the store cannot be written, no result can be kept. So no further trial begins.
        Err(Fault::Store(_)) => runner.drain.cancel(),
        Ok(_)
        | Err(
            Fault::Author(_)
            | Fault::Authoring(_)
            | Fault::Engine(_)
            | Fault::NoVerdict(_)
            | Fault::Trial(_)
            | Fault::Rollout(_)
            | Fault::Trajectory(_)
            | Fault::Directory(_)
            | Fault::AwaitsRequest { .. }
            | Fault::Drained,
        ) => {}
    }
    (blueprint, result)
}

fn publish_unit(store: &Store, ended: &Ended, publication: &Publication) -> Result<(), PublishError> {
    match read_unit(store, &ended.key, &Judgements::default())? {
        Some(gathered) => publish(store, &gathered, publication),
        None => Ok(()),
    }
}

fn finish(
    store: &Store,
    report: &RunReport,
    options: &RunOptions,
    events: EventSink<'_>,
) -> Result<ExportSummary, PipelineError> {
    let ended: Vec<Key> = report.ended.iter().map(|ended| ended.key.clone()).collect();
    let units = current_units(store, &ended)?;
    // Publishes units that this run did not make and that may lack a directory, e.g. those of a
    // merged store.
    for unit in units.iter().filter(|unit| !ended.contains(&unit.key)) {
        if let Some(gathered) = read_unit(store, &unit.key, &Judgements::default())? {
            publish_former(store, &gathered, &options.unit.publication)?;
        }
    }
    write_index(store, units.iter().map(|unit| unit.key.clone()).collect())?;
    let tasks: BTreeSet<_> = units.iter().map(|unit| unit.task.clone()).collect();
    let trajectories: BTreeSet<_> =
        units.iter().flat_map(|unit| &unit.rollouts).chain(&members(store)?).map(rollout_id).collect();
    prune(store, &tasks, &trajectories)?;
    events(Event::Stage { name: "export" });
    export_store(store, &options.export)
}

/// The rollouts in the folder that belong to no unit.
fn members(store: &Store) -> Result<Vec<Key>, StoreError> {
    let mut rollouts = Vec::new();
    for key in store.keys(MEMBER)? {
        rollouts.extend(store.get::<MemberRecord>(MEMBER, &key)?.map(|member| member.rollout));
    }
    Ok(rollouts)
}

/// Detects that the engine is gone, so that a run does not retry each of a thousand tasks.
#[derive(Default)]
struct Watch {
    in_a_row: AtomicU32,
}

impl Watch {
    fn engine_answered(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    fn engine_failed(&self, drain: &CancellationToken) {
        if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= ENGINE_GONE_AFTER {
            drain.cancel();
        }
    }

    fn engine_gone(&self) -> bool {
        self.in_a_row.load(Ordering::Relaxed) >= ENGINE_GONE_AFTER
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::agent::{ScaffoldMix, TurnSeen};
    use crate::assets::Assets;
    use crate::domain::{Domains, plan};
    use crate::export::fixture;
    use crate::harbor::{DeclaredVerifier, read_task};
    use crate::model::{
        Actor, AdversaryView, Arm, Certificate, ModelActor, Rigor, Rollout, ScreeningCost, Seed,
        TaskMetadata, task_digest,
    };
    use crate::pipeline::audit_store;
    use crate::pipeline::prepared::{PREPARED, PreparedRecord};
    use crate::pipeline::publish::REVOKED;
    use crate::pipeline::unit::{UNIT, UnitRecord, hash_draft};
    use crate::rollout::{ROLLOUT, RolloutLog};
    use crate::screen::SCREEN;
    use crate::store::RunDir;
    use crate::verify::VerifierLog;

    /// Commits the records of a run of `blueprint`. Its certificate needs no container.
    fn ended(
        store: &Store,
        assets: &PipelineAssets,
        blueprint: &Blueprint,
        tool: &str,
        publication: &Publication,
    ) -> Ended {
        let hashed = hash_draft(assets, store, blueprint, publication).unwrap();
        let certificate = Certificate {
            tool: tool.to_owned(),
            ..Certificate::without_rows(
                hashed.draft.task.name.as_str(),
                task_digest(&hashed.directory),
                hashed.environment_digest,
            )
        };
        let screened = key(SCREEN, &certificate).unwrap();
        store.put(SCREEN, &screened, &certificate).unwrap();
        let record = UnitRecord {
            blueprint: blueprint.clone(),
            draft: hashed.key,
            certificate: screened,
            rollouts: Vec::new(),
        };
        let key = key(UNIT, &record).unwrap();
        store.put(UNIT, &key, &record).unwrap();
        let ended = Ended {
            key,
            record,
            certificate,
            cost: ScreeningCost::default(),
            outcomes: Vec::new(),
            script_faults: Vec::new(),
        };
        publish_unit(store, &ended, publication).unwrap();
        ended
    }

    /// Publishes as a run of `blueprints` would. Returns the indices in `index.json`, and the
    /// certificates in `tasks/`, each with whether its digest matches its directory.
    fn finished(
        out: &Path,
        blueprints: &[&Blueprint],
        tool: &str,
        publication: &Publication,
    ) -> (Vec<u32>, Vec<(Certificate, bool)>) {
        let assets = PipelineAssets::load(&Assets::embedded()).unwrap();
        let store = Store::new(RunDir::open(out).unwrap());
        let report = RunReport {
            planned: blueprints.len(),
            ended: blueprints
                .iter()
                .map(|blueprint| ended(&store, &assets, blueprint, tool, publication))
                .collect(),
            unmade: Vec::new(),
            faults: Vec::new(),
            export: None,
            interrupted: false,
            engine_gone: false,
        };
        let options = RunOptions {
            shard: Shard::WHOLE,
            unit: UnitOptions {
                attempts: 0,
                scaffolds: ScaffoldMix::default(),
                rigor: Rigor::Quick,
                model: None,
                publication: publication.clone(),
            },
            slots: 1,
            export: ExportOptions::default(),
        };
        finish(&store, &report, &options, &|_| {}).unwrap();
        let units = crate::pipeline::gather(&store).unwrap();
        let indices = units.map(|unit| unit.unwrap().record.blueprint.index).collect();
        let mut tasks: Vec<_> =
            std::fs::read_dir(out.join("tasks")).unwrap().map(|task| task.unwrap().path()).collect();
        tasks.sort();
        let certificates = tasks.iter().map(|task| {
            let text = std::fs::read_to_string(task.join("certificate.json")).unwrap();
            let certificate: Certificate = serde_json::from_str(&text).unwrap();
            let is_own = read_task(task).unwrap().digest() == certificate.task_digest;
            (certificate, is_own)
        });
        (indices, certificates.collect())
    }

    /// A plan of four blueprints.
    fn planned() -> Plan {
        let assets = PipelineAssets::load(&Assets::embedded()).unwrap();
        let recipes = assets.recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
        plan(&assets.domains, &recipes, Seed(7), 4, &Domains::All)
    }

    fn shared() -> Publication {
        Publication { verifier: DeclaredVerifier::Shared, ..Publication::default() }
    }

    /// Tasks of earlier runs stay as their certificates describe them, even if this run would write
    /// them in another form.
    #[test]
    fn a_smaller_run_of_another_form_leaves_the_other_tasks() {
        let plan = planned();
        let out = tempfile::tempdir().unwrap();
        let all: Vec<&Blueprint> = plan.blueprints.iter().collect();
        let check = |count: usize, publication: &Publication| {
            let (_, certificates) = finished(out.path(), &all[..count], "a", publication);
            assert_eq!(certificates.len(), all.len());
            for (certificate, is_own) in certificates {
                assert!(is_own, "{} of {count} tasks made as {publication:?}", certificate.task);
            }
        };
        check(4, &Publication::default());
        check(2, &shared());
        check(
            1,
            &Publication { image_prefix: Some("images.example/t".to_owned()), ..Publication::default() },
        );
        check(3, &Publication::default());
    }

    #[test]
    fn audits_count_rollouts_of_models() {
        let (assets, plan) = (PipelineAssets::load(&Assets::embedded()).unwrap(), planned());
        let check = |actor: Actor, passed: u32, expect: (u64, u64, u64)| {
            let out = tempfile::tempdir().unwrap();
            let store = Store::new(RunDir::open(out.path()).unwrap());
            let unit = ended(&store, &assets, &plan.blueprints[0], "a", &Publication::default());
            let Rollout { mut record, shown, .. } = fixture::rollout("games", 0, 0, 2, passed);
            record.actor = actor;
            let prepared = PreparedRecord {
                task: record.task.clone(),
                task_digest: Some(unit.certificate.task_digest),
                environment_digest: None,
                metadata: TaskMetadata::default(),
                checks: Vec::new(),
            };
            let log = RolloutLog {
                started_ms: 0,
                turns: shown.into_iter().map(|shown| TurnSeen { shown, ..TurnSeen::default() }).collect(),
                handoffs: Vec::new(),
                threads: Vec::new(),
                cause: String::new(),
                verifier: VerifierLog::default(),
                engine: String::new(),
                seconds: 0.0,
            };
            let (task, rollout) = (key(PREPARED, &prepared).unwrap(), key(ROLLOUT, &record).unwrap());
            store.put(PREPARED, &task, &prepared).unwrap();
            store.observe(&rollout, &log).unwrap();
            store.put(ROLLOUT, &rollout, &record).unwrap();
            let member = MemberRecord { prepared: task, rollout };
            store.put(MEMBER, &key(MEMBER, &member).unwrap(), &member).unwrap();
            let total = audit_store(&assets, &store).unwrap().total;
            assert_eq!((u64::from(total.attempted), total.rollouts.scored, total.rollouts.passed), expect);
        };
        let model = |adversary| {
            let (model, endpoint) = ("m".to_owned(), "e".to_owned());
            Actor::Model(ModelActor { model, endpoint, arm: Arm::Base, adversary, program: None })
        };
        check(model(None), fixture::CHECKS, (1, 1, 1));
        check(model(None), fixture::CHECKS - 1, (1, 1, 0));
        // Neither row tells whether the task can be solved.
        check(model(Some(AdversaryView::Blind)), fixture::CHECKS, (0, 0, 0));
        check(Actor::Oracle, fixture::CHECKS, (0, 0, 0));
    }

    #[test]
    fn revocations_of_the_same_version_are_kept() {
        let plan = planned();
        let out = tempfile::tempdir().unwrap();
        let one = plan.blueprints.first().unwrap();
        finished(out.path(), &[one], "a", &Publication::default());
        let revoked = out.path().join(format!("tasks/{}/{REVOKED}", crate::harbor::task_name(one)));
        std::fs::write(&revoked, "{}\n").unwrap();
        let check = |tool: &str, publication: &Publication, kept: bool| {
            finished(out.path(), &[one], tool, publication);
            assert_eq!(revoked.exists(), kept, "{tool}, {publication:?}");
        };
        check("a", &Publication::default(), true);
        // The task was screened again.
        check("b", &Publication::default(), true);
        // The mode is another one, so the tests could be others as well.
        check("b", &shared(), false);
    }

    #[test]
    fn derived_files_cover_all_units_of_a_store() {
        let plan = planned();
        let [one, two, three, four] = plan.blueprints.iter().collect::<Vec<_>>().try_into().unwrap();
        let out = tempfile::tempdir().unwrap();
        let check = |blueprints: &[&Blueprint], tool: &str, indices: &[u32], mut tools: Vec<&str>| {
            let (found, certificates) = finished(out.path(), blueprints, tool, &Publication::default());
            let mut found_tools: Vec<_> =
                certificates.into_iter().map(|(certificate, _)| certificate.tool).collect();
            found_tools.sort();
            tools.sort_unstable();
            assert_eq!(
                (found.as_slice(), found_tools),
                (indices, tools.iter().map(ToString::to_string).collect())
            );
        };
        // `--shard 0/2`, then `--shard 1/2` into the same folder.
        check(&[one, three], "a", &[0, 2], vec!["a", "a"]);
        check(&[two, four], "a", &[0, 1, 2, 3], vec!["a", "a", "a", "a"]);
        // A smaller `--count` discards nothing.
        check(&[one], "a", &[0, 1, 2, 3], vec!["a", "a", "a", "a"]);
        // Another unit of the same task replaces the former one. It stays when other shards run
        // later.
        check(&[one, two], "b", &[0, 1, 2, 3], vec!["b", "b", "a", "a"]);
        check(&[three], "a", &[0, 1, 2, 3], vec!["b", "b", "a", "a"]);
        // Derived files can be deleted.
        for folder in ["tasks", "data"] {
            std::fs::remove_dir_all(out.path().join(folder)).unwrap();
        }
        check(&[four], "b", &[0, 1, 2, 3], vec!["b", "b", "a", "b"]);
    }
}
