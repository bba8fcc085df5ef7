//! Reads a run from its store, one unit at a time. So memory does not grow with the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::campaign::{MEMBER, MemberRecord};
use super::prepared::{PREPARED, PreparedRecord};
use super::unit::{DRAFT, UNIT, UnitRecord};
use crate::folder::read_file;
use crate::judge::Judgements;
use crate::model::{Arm, Certificate, Draft, File, Key, Rollout, TaskDigest, TaskMetadata};
use crate::rollout::{ROLLOUT, RolloutLog, read_rollout};
use crate::screen::SCREEN;
use crate::store::{ReadStore, Store, StoreError};

/// The file that lists the keys of the current units in plan order. If the store has several units
/// of one task, it selects one.
const INDEX: &str = "index.json";
const INDEX_VERSION: u32 = 1;
/// Maximum bytes of the index. It has about 70 for each unit.
const LARGEST_INDEX: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    version: u32,
    units: Vec<Key>,
}

/// A unit with its rollouts.
#[derive(Debug)]
pub struct Gathered {
    pub record: UnitRecord,
    pub draft: Draft,
    pub certificate: Certificate,
    pub rollouts: Vec<(Rollout, RolloutLog)>,
}

/// The current units of a run folder in plan order.
pub fn gather(
    store: &ReadStore,
) -> Result<impl Iterator<Item = Result<Gathered, StoreError>> + '_, StoreError> {
    let units = current_units(store, &[])?;
    let judgements = Judgements::read(store)?;
    Ok(units.into_iter().filter_map(move |unit| read_unit(store, &unit.key, &judgements).transpose()))
}

/// The unit that was selected for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CurrentUnit {
    pub(super) key: Key,
    pub(super) task: String,
    pub(super) task_digest: TaskDigest,
    pub(super) rollouts: Vec<Key>,
}

/// One unit for each task name in the store, in plan order.
///
/// All units of the store count, not only those of one run. So results add up, e.g. those of shards
/// in one folder, of stores that were merged by copying, or of a second run with another `--only`
/// or a smaller `--count`. No command discards results that it did not request. For fewer tasks,
/// use another `--out`.
///
/// The store has several units with one task name if a recipe was edited or the seed changed. The
/// first of these then represents the task: a unit in `preferred` (completed by this run), a unit
/// in the former index, the unit of the latest recipe version, the unit of the latest build, the
/// unit with the smallest key.
pub(super) fn current_units(store: &ReadStore, preferred: &[Key]) -> Result<Vec<CurrentUnit>, StoreError> {
    let preferred: BTreeSet<&Key> = preferred.iter().collect();
    let listed: BTreeSet<Key> = read_index(store)?.into_iter().collect();
    let mut found = Vec::new();
    for key in store.keys(UNIT)? {
        let Some(record) = store.get::<UnitRecord>(UNIT, &key)? else { continue };
        let Some(certificate) = store.get::<Certificate>(SCREEN, &record.certificate)? else { continue };
        let version =
            store.get::<RecipeVersion>(DRAFT, &record.draft)?.map(|draft| draft.task.recipe_version);
        let build = store.recency(SCREEN, &record.certificate)?;
        let rank = (!preferred.contains(&key), !listed.contains(&key), Reverse(version), Reverse(build));
        let Certificate { task, task_digest, .. } = certificate;
        let unit = CurrentUnit { key, task, task_digest, rollouts: record.rollouts };
        found.push((record.blueprint.index, rank, unit));
    }
    // `keys` is sorted, so units of equal rank stay in the order of their keys.
    found.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
    let mut names = BTreeSet::new();
    found.retain(|(_, _, unit)| names.insert(unit.task.clone()));
    found.sort_by(|(one, _, a), (other, _, b)| (one, &a.task).cmp(&(other, &b.task)));
    Ok(found.into_iter().map(|(_, _, unit)| unit).collect())
}

/// The fields of a draft that the choice between units depends on.
#[derive(Deserialize)]
struct RecipeVersion {
    task: TaskVersion,
}

#[derive(Deserialize)]
struct TaskVersion {
    recipe_version: u32,
}

/// The rollouts of one task that belong to no unit, e.g. imported ones.
#[derive(Debug)]
pub struct Group {
    pub prepared: PreparedRecord,
    /// Ordered by solver and attempt.
    pub rollouts: Vec<(Rollout, RolloutLog)>,
}

/// The rollouts of a task, and its draft.
type RolloutsAndDraft = (Vec<(Rollout, RolloutLog)>, Option<Draft>);

/// All rollouts of a run folder, grouped by task. Each is there once: the units' rollouts come
/// first, then those without a unit.
pub fn gather_rollouts(
    store: &ReadStore,
) -> Result<impl Iterator<Item = Result<Vec<(Rollout, RolloutLog)>, StoreError>> + '_, StoreError> {
    Ok(gather_tasks(store)?.map(|task| task.map(|(rollouts, _)| rollouts)))
}

/// Like [`gather_rollouts`], with the draft of each task that has a unit.
pub(super) fn gather_tasks(
    store: &ReadStore,
) -> Result<impl Iterator<Item = Result<RolloutsAndDraft, StoreError>> + '_, StoreError> {
    let units = gather(store)?.map(|unit| unit.map(|unit| (unit.rollouts, Some(unit.draft))));
    let groups = gather_groups(store)?.map(|group| group.map(|group| (group.rollouts, None)));
    let mut seen = BTreeSet::new();
    Ok(units.chain(groups).map(move |task| {
        let (mut rollouts, draft) = task?;
        rollouts.retain(|(rollout, _)| seen.insert(rollout.id.clone()));
        Ok((rollouts, draft))
    }))
}

/// The groups of a run folder, ordered by task name.
pub fn gather_groups(
    store: &ReadStore,
) -> Result<impl Iterator<Item = Result<Group, StoreError>> + '_, StoreError> {
    let mut listed = Vec::new();
    for key in store.keys(MEMBER)? {
        listed.extend(store.get::<MemberRecord>(MEMBER, &key)?);
    }
    // If another build computed a rollout again, only the latest one counts.
    let mut latest = listed.iter().map(|member| member.rollout.clone()).collect();
    store.retain_latest(ROLLOUT, &mut latest)?;
    let mut members: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    for member in listed.into_iter().filter(|member| latest.binary_search(&member.rollout).is_ok()) {
        members.entry(member.prepared).or_default().insert(member.rollout);
    }
    let mut named = Vec::with_capacity(members.len());
    for (key, rollouts) in members {
        if let Some(prepared) = store.get::<PreparedRecord>(PREPARED, &key)? {
            named.push((prepared.task.clone(), key, rollouts));
        }
    }
    named.sort();
    let judgements = Judgements::read(store)?;
    let read = move |(_, key, rollouts)| read_group(store, &key, &rollouts, &judgements).transpose();
    Ok(named.into_iter().filter_map(read))
}

fn read_group(
    store: &ReadStore,
    key: &Key,
    keys: &BTreeSet<Key>,
    judgements: &Judgements,
) -> Result<Option<Group>, StoreError> {
    let Some(prepared) = store.get::<PreparedRecord>(PREPARED, key)? else { return Ok(None) };
    let mut rollouts = Vec::with_capacity(keys.len());
    for key in keys {
        rollouts.extend(read_rollout(store, key, &prepared.metadata, &prepared.checks, judgements)?);
    }
    rollouts.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
    Ok(Some(Group { prepared, rollouts }))
}

/// Orders rollouts by solver, scaffold, arm and attempt. The id comes last, so that no two are
/// equal.
fn order(rollout: &Rollout) -> (&str, &str, Arm, u32, &str) {
    let record = &rollout.record;
    (record.actor.teacher(), &record.scaffold, record.actor.arm(), record.attempt, &rollout.id)
}

/// The draft and certificate of one unit, without its rollouts.
pub(super) fn read_draft(store: &ReadStore, key: &Key) -> Result<Option<(Draft, Certificate)>, StoreError> {
    let Some(record) = store.get::<UnitRecord>(UNIT, key)? else { return Ok(None) };
    let draft = store.get::<Draft>(DRAFT, &record.draft)?;
    Ok(draft.zip(store.get::<Certificate>(SCREEN, &record.certificate)?))
}

/// Reads one unit. `None` if the store lacks a part of it.
pub(super) fn read_unit(
    store: &ReadStore,
    key: &Key,
    judgements: &Judgements,
) -> Result<Option<Gathered>, StoreError> {
    let Some(record) = store.get::<UnitRecord>(UNIT, key)? else { return Ok(None) };
    let Some(draft) = store.get::<Draft>(DRAFT, &record.draft)? else { return Ok(None) };
    let Some(certificate) = store.get::<Certificate>(SCREEN, &record.certificate)? else { return Ok(None) };
    let mut rollouts = Vec::with_capacity(record.rollouts.len());
    let metadata = TaskMetadata::from(&draft.task.blueprint);
    for key in &record.rollouts {
        rollouts.extend(read_rollout(store, key, &metadata, &certificate.checks, judgements)?);
    }
    Ok(Some(Gathered { record, draft, certificate, rollouts }))
}

/// Writes the list of current units.
pub(super) fn write_index(store: &Store, units: Vec<Key>) -> Result<(), StoreError> {
    let text =
        serde_json::to_string_pretty(&Index { version: INDEX_VERSION, units }).map_err(StoreError::Encode)?;
    store.dir().publish_file(INDEX, &File::text(text + "\n"))?;
    Ok(())
}

fn read_index(store: &ReadStore) -> Result<Vec<Key>, StoreError> {
    let path = store.root().join(INDEX);
    let Some(text) = read_file(&path, LARGEST_INDEX)? else { return Ok(Vec::new()) };
    let index: Index =
        serde_json::from_slice(&text).map_err(|source| StoreError::Malformed { path, source })?;
    Ok(index.units)
}
