//! Rollouts over task directories, whoever made them: who acts, how often, how many at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::error::Fault;
use super::event::{Event, EventSink};
use super::gather::gather;
use super::places::Places;
use super::posed::{PoseError, PosedRecord, Ready, pose};
use super::workshop::Workshop;
use crate::agent::AgentError;
use crate::judge::{Subject, judge_once};
use crate::llm::{CallError, Models};
use crate::model::{Actor, Arm, Key, ModelActor, Outcome, TrajectoryRecord};
use crate::rollout::{
    Casting, ROLLOUT, RolloutError, attempt, fork, read_record, reference, rollout, rollout_id,
};
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{Filed, Lab};

/// That a rollout belongs to a task: by this, readers find it.
pub const MEMBER: Stage = Stage { name: "member", version: 1 };

/// One rollout of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRecord {
    pub posed: Key,
    pub rollout: Key,
}

/// Who acts.
#[derive(Clone, Debug)]
pub enum Player {
    /// The task's own solution, or nobody.
    Reference(Actor),
    /// The expert of the recipe that made the task, in the same run folder.
    Scripted,
    Model(Box<Casting>),
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    pub player: Player,
    /// Rollouts of each task.
    pub attempts: u32,
    /// Turn after which the attempts of the arm `fork` part from the first rollout.
    pub fork_at: usize,
    /// How long one rollout may take; by default as long as its task says.
    pub trial: Option<Duration>,
    pub judging: Judging,
}

/// Who labels rollouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judging {
    /// The rules alone.
    Rules,
    /// The rules, and the role `judge`.
    Model,
}

/// What is shared by all rollouts of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub lab: &'a Lab<'a>,
    pub workshop: &'a Workshop,
    /// `None` where no model acts.
    pub models: Option<&'a Models>,
    pub places: &'a Places,
}

/// How a campaign ended.
#[derive(Debug, Default)]
pub struct CampaignReport {
    /// Rollouts with a record, in order of tasks and attempts.
    pub members: Vec<Member>,
    /// Tasks and attempts without a result, and why.
    pub faults: Vec<(String, PoseError)>,
    pub interrupted: bool,
    /// A cap was reached, and nothing more was begun.
    pub out_of_budget: bool,
    /// Tasks whose certificates do not hold any more, and the rollout that shows it.
    pub revoked: Vec<(PathBuf, Key)>,
}

/// One rollout.
#[derive(Clone, Debug)]
pub struct Member {
    pub task: String,
    pub key: Key,
    pub outcome: Outcome,
}

/// Plays every task, or remembers that it was played.
pub async fn campaign(
    ground: Ground<'_>,
    dirs: &[PathBuf],
    options: &CampaignOptions,
    events: EventSink<'_>,
) -> CampaignReport {
    let ready: Vec<OnceCell<Ready>> = dirs.iter().map(|_| OnceCell::new()).collect();
    let first = match &options.player {
        // The rollout that the others part from comes first, and is one of them.
        Player::Model(casting) if casting.actor.arm == Arm::Fork => 1,
        _ => options.attempts,
    };
    let order = fair(dirs, first);
    let mut report = CampaignReport::default();
    let work = stream::iter(order).map(|(task, number)| {
        let cell = &ready[task];
        async move {
            // Boxed, as thousands of them wait.
            let done = Box::pin(one(ground, cell, &dirs[task], options, number, events)).await;
            (task, number, done)
        }
    });
    // More futures than places: what waits for a place costs nothing, and a large task does not hold up small ones.
    let mut ended: Vec<_> = work.buffer_unordered(MOST_WAITING).collect().await;
    ended.sort_by_key(|(task, number, _)| (*task, *number));
    for (task, number, done) in ended {
        let name = dirs[task].file_name().unwrap_or(dirs[task].as_os_str()).to_string_lossy().into_owned();
        match done {
            Ok(members) => {
                for member in members {
                    let revokes = matches!(&options.player, Player::Model(casting) if casting.actor.adversary.is_some());
                    if revokes && member.outcome == Outcome::Pass {
                        report.revoked.push((dirs[task].clone(), member.key.clone()));
                    }
                    report.members.push(member);
                }
            }
            Err(PoseError::Fault(
                Fault::Drained
                | Fault::Rollout(RolloutError::Agent(AgentError::Call(
                    CallError::Cancelled(_) | CallError::ShuttingDown,
                ))),
            )) => report.interrupted = true,
            Err(PoseError::Fault(Fault::Rollout(RolloutError::Agent(AgentError::Call(
                CallError::Budget(_),
            ))))) => report.out_of_budget = true,
            Err(error) => report.faults.push((format!("{name}, attempt {number}"), error)),
        }
    }
    report
}

/// Futures that are held at once. Each is small until it has a place.
const MOST_WAITING: usize = 4096;

/// Tasks and attempts in an order in which no domain waits for another: one task of each in turn, the attempts of a task together,
/// since they share an image. Domains are told by the first word of a task's name, as ours have it.
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

async fn one(
    ground: Ground<'_>,
    cell: &OnceCell<Ready>,
    dir: &std::path::Path,
    options: &CampaignOptions,
    number: u32,
    events: EventSink<'_>,
) -> Result<Vec<Member>, PoseError> {
    let Ground { lab, workshop, models, places } = ground;
    let texts = &workshop.texts;
    if lab.drain.is_cancelled() {
        return Err(Fault::Drained.into());
    }
    let ready = cell.get_or_try_init(|| Box::pin(pose(lab, workshop, dir))).await?;
    let filed = ready.filed().map_err(Fault::from)?;
    let Some(mut posed) = ready.posed(filed.as_ref()) else { return Err(Fault::Drained.into()) };
    if let Some(trial) = options.trial {
        posed.further.iter_mut().for_each(|step| step.total = trial);
    }
    let task = ready.record.task.to_string();
    let began = Instant::now();
    let _place = tokio::select! {
        biased;
        () = lab.drain.cancelled() => return Err(Fault::Drained.into()),
        place = places.take(&ready.limits) => place.ok_or(Fault::Drained)?,
    };
    let mut keys = Vec::new();
    match (&options.player, models) {
        (Player::Reference(actor), _) => {
            keys.push(reference(lab, &posed, actor, number).await.map_err(Fault::from)?);
        }
        (Player::Scripted, _) => {
            keys.push(Box::pin(scripted(ground, &ready.record, number)).await?);
        }
        (Player::Model(casting), Some(models)) => {
            let mut casting = casting.clone();
            casting.limits.total =
                options.trial.unwrap_or(Duration::from_secs(ready.limits.agent_timeout_sec.into()));
            let casting = &casting;
            let played = match casting.actor.arm {
                Arm::Fork => forked(ground, models, casting, &posed, options).await,
                _ => attempt(lab, models, texts, &posed, casting, number).await.map(|key| vec![key]),
            };
            if let Err(RolloutError::Agent(AgentError::Call(error))) = &played
                && ends_everything(error)
            {
                lab.drain.cancel();
            }
            keys.extend(played.map_err(Fault::from)?);
        }
        (Player::Model(_), None) => return Err(Fault::Drained.into()),
    }
    if let (Judging::Model, Some(models)) = (options.judging, models) {
        for key in &keys {
            judged(ground, models, key).await?;
        }
    }
    let mut members = Vec::new();
    for key in keys {
        let outcome = member(lab.store, &ready.key, &key).map_err(Fault::from)?;
        events(Event::RolledOut { task: task.clone(), attempt: number, outcome });
        members.push(Member { task: task.clone(), key, outcome });
    }
    events(Event::Finished { task, seconds: began.elapsed().as_secs_f64() });
    Ok(members)
}

/// An attempt of the scripted expert, whose script the run folder has.
async fn scripted(ground: Ground<'_>, task: &PosedRecord, attempt: u32) -> Result<Key, PoseError> {
    let (lab, prompts) = (ground.lab, &ground.workshop.prompts);
    for unit in gather(lab.store).map_err(Fault::from)? {
        let unit = unit.map_err(Fault::from)?;
        if unit.certificate.task_digest == task.task_digest {
            let filed = Filed::new(&unit.draft.task, unit.certificate.environment_digest.clone());
            let filed = filed.map_err(Fault::from)?;
            let key = rollout(lab, prompts, &unit.draft, &filed, &unit.certificate, attempt).await;
            return Ok(key.map_err(Fault::from)?);
        }
    }
    let why = "its script is not in this run folder; `termsmith run` makes tasks with scripts".to_owned();
    Err(PoseError::Unplayable { task: task.task.to_string(), why })
}

/// Has a model label a rollout, or remembers that it did.
async fn judged(ground: Ground<'_>, models: &Models, key: &Key) -> Result<(), PoseError> {
    let (store, texts) = (ground.lab.store, &ground.workshop.judge);
    let Some((record, log)) = read_record(store, key).map_err(Fault::from)? else { return Ok(()) };
    let shown: Vec<_> = log.turns.into_iter().map(|turn| turn.shown).collect();
    let handoffs: Vec<_> = log.handoffs.into_iter().map(|handoff| handoff.shown).collect();
    let subject = Subject { record: &record, shown: &shown, handoffs: &handoffs };
    judge_once(models, texts, store, key, &rollout_id(key), subject).await?;
    Ok(())
}

/// A rollout, and as many that part from it after the same turn as attempts were asked for.
async fn forked(
    ground: Ground<'_>,
    models: &Models,
    casting: &Casting,
    posed: &crate::rollout::Posed<'_>,
    options: &CampaignOptions,
) -> Result<Vec<Key>, RolloutError> {
    let (lab, texts) = (ground.lab, &ground.workshop.texts);
    let base = Casting { actor: ModelActor { arm: Arm::Base, ..casting.actor.clone() }, ..casting.clone() };
    let parent = attempt(lab, models, texts, posed, &base, 0).await?;
    let fork = fork(lab, texts, posed, casting, &parent, options.fork_at).await?;
    let mut keys = vec![parent];
    for number in 0..options.attempts {
        let casting = Casting { fork: Some(fork.clone()), ..casting.clone() };
        keys.push(attempt(lab, models, texts, posed, &casting, number).await?);
    }
    Ok(keys)
}

/// Whether every other call would meet the same.
pub(super) fn ends_everything(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Budget(_)
            | CallError::Auth { .. }
            | CallError::Key { .. }
            | CallError::NoRole { .. }
            | CallError::NoPrice { .. }
            | CallError::Client(_)
    )
}

fn member(store: &Store, posed: &Key, rollout: &Key) -> Result<Outcome, StoreError> {
    let record = MemberRecord { posed: posed.clone(), rollout: rollout.clone() };
    let key = key(MEMBER, &record)?;
    if store.get::<MemberRecord>(MEMBER, &key)?.is_none() {
        store.put(MEMBER, &key, &record)?;
    }
    let record = store.get::<TrajectoryRecord>(ROLLOUT, rollout)?;
    Ok(record.map_or(Outcome::Infra, |record| record.verdict.outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

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
