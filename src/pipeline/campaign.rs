//! Runs rollouts over task directories of any origin.

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
use super::shares::Agents;
use super::stop::Stop;
use crate::agent::ScaffoldMix;
use crate::judge::{JudgeError, JudgedTrajectory, judge_once};
use crate::llm::{AskError, Models};
use crate::model::{Actor, Arm, FailureKind, Key, ModelActor, Outcome, TaskDigest, TrajectoryRecord};
use crate::rollout::{
    AgentConfig, PreparedTask, ROLLOUT, ScriptedConfig, attempt, fork, read_record, reference, rollout,
    rollout_id,
};
use crate::store::{ReadStore, Stage, Store, StoreError, key};
use crate::verify::{Control, HashedTask, TrialRunner, settled};

/// Links a rollout to its task. Readers find rollouts through these records.
pub const MEMBER: Stage = Stage::given("member");

/// Links one rollout to one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRecord {
    pub prepared: Key,
    pub rollout: Key,
}

/// Who solves the tasks.
#[derive(Clone, Debug)]
pub enum Solver {
    /// The task's own solution, or no solver.
    Reference(Actor),
    /// The expert of the task's recipe. The task must be from the same run folder.
    Scripted,
    Model {
        models: Arc<Models>,
        agents: Agents,
    },
}

/// Options of a campaign.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    pub solver: Solver,
    /// Rollouts of each task. In the arm `fork` the parent rollout is not counted.
    pub attempts: u32,
    /// In the arm `fork`: the number of turns that the attempts share with the parent rollout.
    pub fork_at: usize,
    /// Time limit of one rollout. The default is the task's own limit.
    pub trial: Option<Duration>,
    pub judging: Judging,
}

/// How rollouts are labelled.
#[derive(Clone, Debug)]
pub enum Judging {
    /// By detectors alone.
    Rules,
    /// By detectors, and by the role `judge`.
    Model(Arc<Models>),
}

/// What all rollouts of a campaign use.
#[derive(Clone, Copy, Debug)]
pub struct CampaignContext<'a> {
    pub runner: &'a TrialRunner<'a>,
    pub assets: &'a PipelineAssets,
    pub capacity: &'a Capacity,
}

/// How a campaign ended.
#[derive(Debug, Default)]
pub struct CampaignReport {
    /// Rollouts with a record, ordered by task and attempt.
    pub members: Vec<Member>,
    /// Tasks and attempts without a result, with the reason.
    pub faults: Vec<(String, PrepareError)>,
    /// Why the campaign stopped early.
    pub stop: Option<Stop>,
    /// Task directories whose certificates were revoked, each with the rollout that passed without
    /// doing the work.
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

/// Runs the attempts at every task. Committed rollouts are read from the store.
pub async fn campaign(
    context: CampaignContext<'_>,
    dirs: &[PathBuf],
    options: &CampaignOptions,
    events: EventSink<'_>,
) -> CampaignReport {
    let ready: Vec<OnceCell<Ready>> = dirs.iter().map(|_| OnceCell::new()).collect();
    let campaign = &Campaign { context, options, events, scripts: OnceCell::new(), turns: Turns::default() };
    let first = match &options.solver {
        // The parent rollout is one attempt more. The forks follow in the same future.
        Solver::Model { agents, .. } if agents.any().actor.arm == Arm::Fork => 1,
        Solver::Model { .. } | Solver::Reference(_) | Solver::Scripted => options.attempts,
    };
    let order = fair(dirs, first);
    let mut report = CampaignReport::default();
    let work = stream::iter(order).map(|(task, number)| {
        let attempt = Attempt { ready: &ready[task], dir: &dirs[task], number };
        async move { (task, number, one(campaign, attempt).await) }
    });
    // There are more futures than slots. A future that waits for capacity costs nothing, and a
    // large task does not block small ones.
    let mut ended: Vec<_> = work.buffer_unordered(MOST_WAITING).collect().await;
    ended.sort_by_key(|(task, number, _)| (*task, *number));
    // Two copies of one task have the same rollouts. They are listed once.
    let mut listed = BTreeSet::new();
    for (task, number, done) in ended {
        let name = dirs[task].file_name().unwrap_or(dirs[task].as_os_str()).to_string_lossy().into_owned();
        let Done { members, failed } = done;
        for member in members {
            let revokes = matches!(&options.solver, Solver::Model { agents, .. } if agents.any().actor.adversary.is_some());
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

/// Why the whole campaign should stop after this error. `None` if only this attempt failed.
fn stop_of(error: &PrepareError) -> Option<Stop> {
    match error {
        PrepareError::Fault(fault) => fault.stop(),
        PrepareError::Judge(JudgeError::Ask(AskError::Call(error))) => Stop::of(error),
        PrepareError::Read(_) | PrepareError::Judge(_) | PrepareError::Unsupported { .. } => None,
    }
}

/// The number of futures that exist at once. A future is small until it has capacity.
const MOST_WAITING: usize = 4096;

/// Orders tasks and attempts so that all domains progress: one task of each domain in turn. The
/// attempts of a task stay together, because they share an image. The first word of our tasks'
/// names is the domain.
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
    /// The task. It is prepared by the first attempt.
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

/// Lets attempts with the same record take turns. Two directories with the same task have the same
/// rollouts: the second attempt finds the rollout of the first.
#[derive(Default)]
struct Turns(std::sync::Mutex<BTreeMap<(String, u32), Turn>>);

type Turn = Arc<Mutex<()>>;

impl Turns {
    /// Waits until no other attempt with this number is in progress at this task.
    async fn take(&self, identity: &str, attempt: u32) -> OwnedMutexGuard<()> {
        let turn = {
            // A panic in another thread leaves no half-made entry, since an entry is complete when
            // it is added.
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry((identity.to_owned(), attempt)).or_default().clone()
        };
        turn.lock_owned().await
    }
}

/// The result of one attempt, or of a rollout and its forks.
struct Done {
    /// Rollouts that were committed, even if an error came after them.
    members: Vec<Member>,
    failed: Option<PrepareError>,
}

async fn one(campaign: &Campaign<'_>, attempt: Attempt<'_>) -> Done {
    let mut members = Vec::new();
    // Boxed, because thousands of these futures wait at once.
    let ended = Box::pin(attempted(campaign, attempt, &mut members)).await;
    Done { members, failed: ended.err() }
}

/// Runs one attempt, or a rollout and its forks. Each committed rollout is added to `members` at
/// once, because it is paid for.
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
    let mut add = |key: Key| -> Result<(), PrepareError> {
        let (outcome, failure) = member(runner.store, &ready.key, &key).map_err(Fault::from)?;
        events(Event::RolledOut { task: task.clone(), attempt: number, outcome });
        members.push(Member { task: task.clone(), key, outcome, failure });
        Ok(())
    };
    match &options.solver {
        Solver::Reference(actor) => {
            let span = tracing::info_span!("rollout", task = %prepared.name, scaffold = actor.teacher(), attempt = number);
            add(reference(runner, &prepared, actor, number).instrument(span).await.map_err(Fault::from)?)?;
        }
        Solver::Scripted => {
            add(Box::pin(scripted(context, &campaign.scripts, &ready.record, number)).await?)?;
        }
        Solver::Model { models, agents } => {
            let mut agent_config = agents.of(&task, number).clone();
            agent_config.limits.total =
                options.trial.unwrap_or(Duration::from_secs(ready.limits.agent_timeout_sec.into()));
            let agent_config = &agent_config;
            let acted = match agent_config.actor.arm {
                Arm::Fork => {
                    let acting = Acting { models, agent: agent_config, prepared: &prepared };
                    forked(campaign, acting, &mut add).await
                }
                Arm::Base | Arm::SelfCorrection | Arm::Plan | Arm::Interactive | Arm::PlanInteractive => {
                    match attempt(runner, models, texts, &prepared, agent_config, number).await {
                        Ok(key) => add(key),
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
        // A rollout that cannot be judged does not stop the others.
        if let Err(error) = judged(context, models, &member.key).await {
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The units of the run folder by task. It is read once for each campaign, since a campaign has at
/// least as many attempts as units.
type ScriptIndex = BTreeMap<TaskDigest, Key>;

fn script_index(store: &ReadStore) -> Result<ScriptIndex, StoreError> {
    Ok(current_units(store, &[])?.into_iter().map(|unit| (unit.task_digest, unit.key)).collect())
}

/// Runs an attempt of the scripted expert. Its script is read from the run folder.
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
    let why = "this run folder has no expert's script of the task; `termsmith run` makes tasks with scripts"
        .to_owned();
    Err(PrepareError::Unsupported { task: task.task.to_string(), why })
}

/// Has a model label a rollout, or reads the committed labels.
async fn judged(context: CampaignContext<'_>, models: &Models, key: &Key) -> Result<(), PrepareError> {
    let (store, texts) = (context.runner.store, &context.assets.judge);
    let Some((record, log)) = read_record(store, key).map_err(Fault::from)? else { return Ok(()) };
    let shown: Vec<_> = log.turns.into_iter().map(|turn| turn.shown).collect();
    let handoffs: Vec<_> = log.handoffs.into_iter().map(|handoff| handoff.shown).collect();
    let trajectory = JudgedTrajectory { record: &record, shown: &shown, handoffs: &handoffs };
    judge_once(models, texts, store, key, &rollout_id(key), trajectory).await?;
    Ok(())
}

/// Runs one rollout, and then the attempts that fork from it after the same turn. `add` gets each
/// rollout when it is committed.
async fn forked(
    campaign: &Campaign<'_>,
    Acting { models, agent, prepared }: Acting<'_>,
    add: &mut impl FnMut(Key) -> Result<(), PrepareError>,
) -> Result<(), PrepareError> {
    let Campaign { context, options, .. } = *campaign;
    let (runner, texts) = (context.runner, &context.assets.texts);
    let base = AgentConfig { actor: ModelActor { arm: Arm::Base, ..agent.actor.clone() }, ..agent.clone() };
    let parent = attempt(runner, models, texts, prepared, &base, 0).await.map_err(Fault::from)?;
    add(parent.clone())?;
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
        add(key.map_err(Fault::from)?)?;
    }
    Ok(())
}

/// Links a rollout to its task. Returns the rollout's outcome and failure kind.
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

    /// An attempt waits only for the same attempt at the same task.
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
