//! Rollouts over task directories of any maker: which solver, how many attempts, how many at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};
use tracing::Instrument as _;

use super::assets::PipelineAssets;
use super::capacity::Capacity;
use super::error::Fault;
use super::event::{Event, EventSink};
use super::gather::{current_units, read_draft};
use super::prepared::{PrepareError, PreparedRecord, Ready, prepare};
use super::stop::Stop;
use crate::agent::ScaffoldMix;
use crate::judge::{JudgeError, Subject, judge_once};
use crate::llm::{AskError, Models};
use crate::model::{Actor, Arm, FailureKind, Key, ModelActor, Outcome, TaskDigest, TrajectoryRecord};
use crate::rollout::{
    AgentConfig, PreparedTask, ROLLOUT, ScriptedConfig, attempt, fork, read_record, reference, rollout,
    rollout_id,
};
use crate::store::{ReadStore, Stage, Store, StoreError, key};
use crate::verify::{Control, HashedTask, TrialRunner, settled};

/// Links a rollout to its task; readers find rollouts by these records.
pub const MEMBER: Stage = Stage::given("member");

/// One rollout of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRecord {
    pub prepared: Key,
    pub rollout: Key,
}

/// The solver.
#[derive(Clone, Debug)]
pub enum Solver {
    /// The task's own solution, or no solver.
    Reference(Actor),
    /// The expert of the recipe that made the task, in the same run folder.
    Scripted,
    Model {
        models: Arc<Models>,
        agent: Box<AgentConfig>,
    },
}

/// Options of a campaign.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    pub solver: Solver,
    /// Rollouts of each task; in the arm `fork` those that begin in the state of another one.
    pub attempts: u32,
    /// Turn after which the attempts of the arm `fork` diverge from the first rollout.
    pub fork_at: usize,
    /// Time limit of one rollout. The default is the task's own limit.
    pub trial: Option<Duration>,
    pub judging: Judging,
}

/// How rollouts are labelled.
#[derive(Clone, Debug)]
pub enum Judging {
    /// Rules only.
    Rules,
    /// Rules and the role `judge`.
    Model(Arc<Models>),
}

/// Shared by all rollouts of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct CampaignContext<'a> {
    pub runner: &'a TrialRunner<'a>,
    pub assets: &'a PipelineAssets,
    pub capacity: &'a Capacity,
}

/// How a campaign ended.
#[derive(Debug, Default)]
pub struct CampaignReport {
    /// Rollouts with a record, in order of tasks and attempts.
    pub members: Vec<Member>,
    /// Tasks and attempts without a result, with the reason.
    pub faults: Vec<(String, PrepareError)>,
    /// Why no further rollout was begun.
    pub stop: Option<Stop>,
    /// Tasks whose certificates were revoked, each with the rollout that shows the defect.
    pub revoked: Vec<(PathBuf, Key)>,
}

/// One rollout.
#[derive(Clone, Debug)]
pub struct Member {
    pub task: String,
    pub key: Key,
    pub outcome: Outcome,
    pub failure: FailureKind,
}

/// Runs the attempts at every task. Committed rollouts are returned from the store.
pub async fn campaign(
    context: CampaignContext<'_>,
    dirs: &[PathBuf],
    options: &CampaignOptions,
    events: EventSink<'_>,
) -> CampaignReport {
    let ready: Vec<OnceCell<Ready>> = dirs.iter().map(|_| OnceCell::new()).collect();
    let campaign = &Campaign { context, options, events, scripts: OnceCell::new(), turns: Turns::default() };
    let first = match &options.solver {
        // The rollout that the others fork from comes first, in addition to them, and they follow in the same future.
        Solver::Model { agent, .. } if agent.actor.arm == Arm::Fork => 1,
        Solver::Model { .. } | Solver::Reference(_) | Solver::Scripted => options.attempts,
    };
    let order = fair(dirs, first);
    let mut report = CampaignReport::default();
    let work = stream::iter(order).map(|(task, number)| {
        let attempt = Attempt { ready: &ready[task], dir: &dirs[task], number };
        async move { (task, number, one(campaign, attempt).await) }
    });
    // More futures than slots: a future that waits for capacity costs nothing, and a large task does not block small ones.
    let mut ended: Vec<_> = work.buffer_unordered(MOST_WAITING).collect().await;
    ended.sort_by_key(|(task, number, _)| (*task, *number));
    // Copies of one task have the same rollouts.
    let mut listed = BTreeSet::new();
    for (task, number, done) in ended {
        let name = dirs[task].file_name().unwrap_or(dirs[task].as_os_str()).to_string_lossy().into_owned();
        let Done { members, failed } = done;
        for member in members {
            let revokes =
                matches!(&options.solver, Solver::Model { agent, .. } if agent.actor.adversary.is_some());
            if revokes && member.outcome == Outcome::Pass {
                report.revoked.push((dirs[task].clone(), member.key.clone()));
            }
            if listed.insert(member.key.clone()) {
                report.members.push(member);
            }
        }
        let Some(error) = failed else { continue };
        match stop_of(&error) {
            Some(stop) => report.stop = report.stop.max(Some(stop)),
            None => report.faults.push((format!("{name}, attempt {number}"), error)),
        }
    }
    report
}

/// The stop that an attempt without a result belongs to, or `None` if the attempt itself failed.
fn stop_of(error: &PrepareError) -> Option<Stop> {
    match error {
        PrepareError::Fault(fault) => fault.stop(),
        PrepareError::Judge(JudgeError::Ask(AskError::Call(error))) => Stop::of(error),
        PrepareError::Read(_) | PrepareError::Judge(_) | PrepareError::Unsupported { .. } => None,
    }
}

/// Futures that are held at once. Each is small until it has capacity.
const MOST_WAITING: usize = 4096;

/// Orders tasks and attempts so that no domain waits for another: one task of each domain in turn. The attempts of a task stay together,
/// since they share an image. The domain is the first word of our tasks' names.
fn fair(dirs: &[PathBuf], attempts: u32) -> Vec<(usize, u32)> {
    let mut domains: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, dir) in dirs.iter().enumerate() {
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
        let domain = name.split('-').next().unwrap_or_default().to_owned();
        domains.entry(domain).or_default().push(number);
    }
    let longest = domains.values().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..longest).flat_map(|turn| domains.values().filter_map(move |tasks| tasks.get(turn).copied()));
    turns.flat_map(|task| (0..attempts).map(move |attempt| (task, attempt))).collect()
}

/// What the attempts of a campaign share.
struct Campaign<'a> {
    context: CampaignContext<'a>,
    options: &'a CampaignOptions,
    events: EventSink<'a>,
    scripts: OnceCell<ScriptIndex>,
    turns: Turns,
}

/// One attempt at one task.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    /// The task, once it was prepared.
    ready: &'a OnceCell<Ready>,
    dir: &'a Path,
    number: u32,
}

/// A model that acts in a prepared task.
#[derive(Clone, Copy)]
struct Acting<'a> {
    models: &'a Models,
    agent: &'a AgentConfig,
    prepared: &'a PreparedTask<'a>,
}

/// Attempts with the same record take turns: two directories with one task have the same rollouts, and whichever comes second finds
/// those of the first.
#[derive(Default)]
struct Turns(std::sync::Mutex<BTreeMap<(String, u32), Turn>>);

type Turn = Arc<Mutex<()>>;

impl Turns {
    /// Waits until no other attempt of this number at this task is in progress.
    async fn take(&self, identity: &str, attempt: u32) -> OwnedMutexGuard<()> {
        let turn = {
            // An entry is complete when it is added, so a panic in another thread leaves nothing half-made.
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry((identity.to_owned(), attempt)).or_default().clone()
        };
        turn.lock_owned().await
    }
}

/// What came of one attempt, or of a rollout and those that fork from it.
struct Done {
    /// Committed, whatever failed after it.
    members: Vec<Member>,
    failed: Option<PrepareError>,
}

async fn one(campaign: &Campaign<'_>, attempt: Attempt<'_>) -> Done {
    let mut members = Vec::new();
    // Boxed, because thousands of these futures wait at once.
    let ended = Box::pin(attempted(campaign, attempt, &mut members)).await;
    Done { members, failed: ended.err() }
}

/// Runs one attempt, or a rollout and those that fork from it. Each committed rollout becomes a member before anything else is done: it is
/// paid for.
async fn attempted(
    campaign: &Campaign<'_>,
    Attempt { ready, dir, number }: Attempt<'_>,
    members: &mut Vec<Member>,
) -> Result<(), PrepareError> {
    let Campaign { context, options, events, .. } = *campaign;
    let CampaignContext { runner, assets, capacity } = context;
    let texts = &assets.texts;
    if runner.drain.is_cancelled() {
        return Err(Fault::Drained.into());
    }
    let ready = ready.get_or_try_init(|| Box::pin(prepare(runner, assets, dir))).await?;
    let mut prepared = ready.prepared();
    if let Some(trial) = options.trial {
        prepared.further.iter_mut().for_each(|step| step.total = trial);
    }
    let task = ready.record.task.to_string();
    let _turn = tokio::select! {
        biased;
        () = runner.drain.cancelled() => return Err(Fault::Drained.into()),
        turn = campaign.turns.take(prepared.target.identity(), number) => turn,
    };
    let began = Instant::now();
    let _place = tokio::select! {
        biased;
        () = runner.drain.cancelled() => return Err(Fault::Drained.into()),
        permit = capacity.take(&ready.limits) => permit.ok_or(Fault::Drained)?,
    };
    let mut keep = |key: Key| -> Result<(), PrepareError> {
        let (outcome, failure) = member(runner.store, &ready.key, &key).map_err(Fault::from)?;
        events(Event::RolledOut { task: task.clone(), attempt: number, outcome });
        members.push(Member { task: task.clone(), key, outcome, failure });
        Ok(())
    };
    match &options.solver {
        Solver::Reference(actor) => {
            let span = tracing::info_span!("rollout", task = %prepared.name, scaffold = actor.teacher(), attempt = number);
            keep(reference(runner, &prepared, actor, number).instrument(span).await.map_err(Fault::from)?)?;
        }
        Solver::Scripted => {
            keep(Box::pin(scripted(context, &campaign.scripts, &ready.record, number)).await?)?;
        }
        Solver::Model { models, agent } => {
            let mut agent_config = agent.clone();
            agent_config.limits.total =
                options.trial.unwrap_or(Duration::from_secs(ready.limits.agent_timeout_sec.into()));
            let agent_config = &agent_config;
            let acted = match agent_config.actor.arm {
                Arm::Fork => {
                    let acting = Acting { models, agent: agent_config, prepared: &prepared };
                    forked(campaign, acting, &mut keep).await
                }
                Arm::Base | Arm::SelfCorrection | Arm::Plan | Arm::Interactive | Arm::PlanInteractive => {
                    match attempt(runner, models, texts, &prepared, agent_config, number).await {
                        Ok(key) => keep(key),
                        Err(error) => Err(Fault::from(error).into()),
                    }
                }
            };
            if let Err(PrepareError::Fault(fault)) = &acted
                && fault.ends_everything()
            {
                runner.drain.cancel();
            }
            acted?;
        }
    }
    events(Event::Finished { task, seconds: began.elapsed().as_secs_f64() });
    let Judging::Model(models) = &options.judging else { return Ok(()) };
    let mut failed = None;
    for member in &*members {
        // One that cannot be judged does not keep the others from their labels.
        if let Err(error) = judged(context, models, &member.key).await {
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The units of the run folder by task. Read once per campaign, since there are at least as many attempts as units.
type ScriptIndex = BTreeMap<TaskDigest, Key>;

fn script_index(store: &ReadStore) -> Result<ScriptIndex, StoreError> {
    Ok(current_units(store, &[])?.into_iter().map(|unit| (unit.task_digest, unit.key)).collect())
}

/// An attempt of the scripted expert. Its script is read from the run folder.
async fn scripted(
    context: CampaignContext<'_>,
    scripts: &OnceCell<ScriptIndex>,
    task: &PreparedRecord,
    attempt: u32,
) -> Result<Key, PrepareError> {
    let mix = ScaffoldMix::default();
    let config = ScriptedConfig { scaffolds: &context.assets.scripted, mix: &mix };
    let runner = context.runner;
    let scripts =
        scripts.get_or_try_init(|| async { script_index(runner.store) }).await.map_err(Fault::from)?;
    let unit = task.task_digest.as_ref().and_then(|digest| scripts.get(digest));
    let read = unit.map(|key| read_draft(runner.store, key)).transpose().map_err(Fault::from)?;
    if let Some((draft, certificate)) = read.flatten() {
        let hashed = HashedTask::new(&draft.task, certificate.environment_digest.clone());
        let hashed = hashed.map_err(Fault::from)?;
        let key = rollout(runner, config, &draft, &hashed, &certificate, attempt).await;
        return Ok(key.map_err(Fault::from)?);
    }
    let why = "its script is not in this run folder; `termsmith run` makes tasks with scripts".to_owned();
    Err(PrepareError::Unsupported { task: task.task.to_string(), why })
}

/// Labels a rollout by a model, or returns the committed labels.
async fn judged(context: CampaignContext<'_>, models: &Models, key: &Key) -> Result<(), PrepareError> {
    let (store, texts) = (context.runner.store, &context.assets.judge);
    let Some((record, log)) = read_record(store, key).map_err(Fault::from)? else { return Ok(()) };
    let shown: Vec<_> = log.turns.into_iter().map(|turn| turn.shown).collect();
    let handoffs: Vec<_> = log.handoffs.into_iter().map(|handoff| handoff.shown).collect();
    let subject = Subject { record: &record, shown: &shown, handoffs: &handoffs };
    judge_once(models, texts, store, key, &rollout_id(key), subject).await?;
    Ok(())
}

/// Runs one rollout, and the requested number of attempts that fork from it after the same turn. `keep` gets each as soon as it is committed.
async fn forked(
    campaign: &Campaign<'_>,
    Acting { models, agent, prepared }: Acting<'_>,
    keep: &mut impl FnMut(Key) -> Result<(), PrepareError>,
) -> Result<(), PrepareError> {
    let Campaign { context, options, .. } = *campaign;
    let (runner, texts) = (context.runner, &context.assets.texts);
    let base = AgentConfig { actor: ModelActor { arm: Arm::Base, ..agent.actor.clone() }, ..agent.clone() };
    let parent = attempt(runner, models, texts, prepared, &base, 0).await.map_err(Fault::from)?;
    keep(parent.clone())?;
    let fork = settled(
        runner.retries(),
        async |_| fork(runner, prepared, agent, &parent, options.fork_at).await,
        async |_| Control::Lost,
    )
    .await
    .map_err(Fault::from)?;
    for number in 0..options.attempts {
        let agent = AgentConfig { fork: Some(fork.clone()), ..agent.clone() };
        let key = attempt(runner, models, texts, prepared, &agent, number).await;
        keep(key.map_err(Fault::from)?)?;
    }
    Ok(())
}

/// Links a rollout to its task. Returns how the rollout ended, and why.
fn member(store: &Store, prepared: &Key, rollout: &Key) -> Result<(Outcome, FailureKind), StoreError> {
    let record = MemberRecord { prepared: prepared.clone(), rollout: rollout.clone() };
    let key = key(MEMBER, &record)?;
    if store.get::<MemberRecord>(MEMBER, &key)?.is_none() {
        store.put(MEMBER, &key, &record)?;
    }
    let record = store.get::<TrajectoryRecord>(ROLLOUT, rollout)?;
    let ended = record.map(|record| (record.verdict.outcome, record.failure_kind()));
    Ok(ended.unwrap_or((Outcome::Infra, FailureKind::Sandbox)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// An attempt waits exactly for the same attempt at the same task.
    #[test]
    fn attempts_with_the_same_record_take_turns() {
        let check = |held: (&str, u32), wanted: (&str, u32), waits: bool| {
            let turns = Turns::default();
            let take = |(identity, attempt)| turns.take(identity, attempt).now_or_never();
            let first = take(held).unwrap();
            assert_eq!(take(wanted).is_none(), waits, "{held:?} {wanted:?}");
            drop(first);
            assert!(take(wanted).is_some());
        };
        check(("a", 0), ("a", 0), true);
        check(("a", 0), ("a", 1), false);
        check(("a", 0), ("b", 0), false);
    }

    #[test]
    fn no_domain_waits_for_another() {
        let check = |dirs: &[&str], attempts: u32, expect: &[(usize, u32)]| {
            let dirs: Vec<PathBuf> = dirs.iter().map(PathBuf::from).collect();
            assert_eq!(fair(&dirs, attempts), expect);
        };
        check(&[], 2, &[]);
        check(&["a-1", "a-2", "b-1"], 1, &[(0, 0), (2, 0), (1, 0)]);
        check(&["a-1", "b-1"], 2, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
    }
}
