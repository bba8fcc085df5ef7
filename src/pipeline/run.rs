//! A whole run: plan, units, export, audit.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::StreamExt as _;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::assets::PipelineAssets;
use super::campaign::{MEMBER, MemberRecord};
use super::error::{Fault, PipelineError, PublishError};
use super::event::{Event, EventSink};
use super::gather::{read_unit, write_index};
use super::publish::{prune, publish};
use super::read::export_store;
use super::unit::{Ended, UnitOptions, unit};
use crate::domain::{Plan, Shard};
use crate::export::{ExportOptions, ExportSummary};
use crate::judge::Judgements;
use crate::model::{Blueprint, Key};
use crate::rollout::rollout_id;
use crate::sandbox::EngineError;
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{EngineOnDemand, TrialRunner};

/// The plan's points, committed so that an audit knows what was asked for.
pub(super) const BLUEPRINT: Stage = Stage { name: "blueprint", version: 1 };

/// Units that fail in a row because no engine answers, before the run gives up. Each has retried already.
const ENGINE_GONE_AFTER: u32 = 3;

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub shard: Shard,
    pub unit: UnitOptions,
    /// Trials at once.
    pub slots: u32,
    pub export: ExportOptions,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    pub planned: usize,
    /// By blueprint index.
    pub ended: Vec<Ended>,
    /// Units without a result.
    pub faults: Vec<(Blueprint, Fault)>,
    /// `None` when it was interrupted.
    pub export: Option<ExportSummary>,
    pub interrupted: bool,
    /// The engine stopped answering, and the run stopped for it.
    pub engine_gone: bool,
}

/// Runs `plan` to its end, or as far as it gets. Run again with the same arguments, it continues.
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
    let slots = Semaphore::new(options.slots as usize);
    let runner = TrialRunner { engine, store, slots: &slots, drain };
    let watch = Watch::default();
    let mut results: Vec<_> = futures_util::stream::iter(blueprints.iter().copied())
        .map(|blueprint| one(&runner, assets, store, blueprint, options, &watch, events))
        // As many units as slots: while one waits for its last trial, others fill the places.
        .buffer_unordered(options.slots as usize)
        .collect()
        .await;
    results.sort_by_key(|(blueprint, _)| blueprint.index);

    let mut report = RunReport {
        planned: blueprints.len(),
        ended: Vec::new(),
        faults: Vec::new(),
        export: None,
        interrupted: false,
        engine_gone: false,
    };
    for (blueprint, result) in results {
        match result {
            Ok(ended) => report.ended.push(ended),
            Err(Fault::Drained) => report.interrupted = true,
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
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    store: &Store,
    blueprint: &'a Blueprint,
    options: &RunOptions,
    watch: &Watch,
    events: EventSink<'_>,
) -> (&'a Blueprint, Result<Ended, Fault>) {
    let result = unit(runner, assets, blueprint, &options.unit, events).await;
    let result = match result {
        Ok(ended) => publish_unit(store, &ended, options.unit.image_prefix.as_deref())
            .map(|()| ended)
            .map_err(Fault::from),
        Err(fault) => Err(fault),
    };
    match &result {
        Ok(_) => watch.engine_answered(),
        Err(Fault::Drained) => {}
        Err(fault) => {
            let task = crate::harbor::task_name(blueprint).to_string();
            events(Event::Failed { task, message: fault.to_string() });
        }
    }
    match &result {
        Err(Fault::Engine(EngineError::Unreachable { .. })) => watch.engine_failed(runner.drain),
        // What cannot be written cannot be committed: no other trial can bring anything.
        Err(Fault::Store(_)) => runner.drain.cancel(),
        _ => {}
    }
    (blueprint, result)
}

fn publish_unit(store: &Store, ended: &Ended, image_prefix: Option<&str>) -> Result<(), PublishError> {
    match read_unit(store, &ended.key, &Judgements::default())? {
        Some(gathered) => publish(store, &gathered, image_prefix),
        None => Ok(()),
    }
}

fn finish(
    store: &Store,
    report: &RunReport,
    options: &RunOptions,
    events: EventSink<'_>,
) -> Result<ExportSummary, PipelineError> {
    write_index(store, report.ended.iter().map(|ended| ended.key.clone()).collect())?;
    let tasks: BTreeSet<_> = report.ended.iter().map(|ended| ended.certificate.task.clone()).collect();
    let trajectories: BTreeSet<_> = report
        .ended
        .iter()
        .flat_map(|ended| &ended.record.rollouts)
        .chain(&members(store)?)
        .map(rollout_id)
        .collect();
    prune(store, &tasks, &trajectories)?;
    events(Event::Stage { name: "export" });
    export_store(store, &options.export)
}

/// Rollouts of the folder that belong to no unit.
fn members(store: &Store) -> Result<Vec<Key>, StoreError> {
    let mut rollouts = Vec::new();
    for key in store.keys(MEMBER)? {
        rollouts.extend(store.get::<MemberRecord>(MEMBER, &key)?.map(|member| member.rollout));
    }
    Ok(rollouts)
}

/// Notices when the engine is gone, so that a run does not retry its way through a thousand tasks.
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
