//! Reading a run back from its store, one unit at a time, so that memory does not grow with the run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::campaign::{MEMBER, MemberRecord};
use super::prepared::{PREPARED, PreparedRecord};
use super::unit::{DRAFT, UNIT, UnitRecord};
use crate::judge::Judgements;
use crate::model::{Arm, Certificate, Draft, Facts, File, Key, Rollout};
use crate::rollout::{RolloutLog, read_rollout};
use crate::screen::SCREEN;
use crate::store::{Store, StoreError};

/// Where the keys of a run's units are listed, in plan order. Derived: without it, every unit of the store is read.
const INDEX: &str = "index.json";
const INDEX_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    version: u32,
    units: Vec<Key>,
}

/// Everything that is known of one unit.
#[derive(Debug)]
pub struct Gathered {
    pub record: UnitRecord,
    pub draft: Draft,
    pub certificate: Certificate,
    pub rollouts: Vec<(Rollout, RolloutLog)>,
}

/// The units of a run in plan order.
pub fn gather(store: &Store) -> Result<impl Iterator<Item = Result<Gathered, StoreError>> + '_, StoreError> {
    let keys = match read_index(store)? {
        Some(keys) => keys,
        None => in_plan_order(store)?,
    };
    let judgements = Judgements::read(store)?;
    Ok(keys.into_iter().filter_map(move |key| read_unit(store, &key, &judgements).transpose()))
}

/// The rollouts of one task that were played apart from any unit.
#[derive(Debug)]
pub struct Group {
    pub prepared: PreparedRecord,
    /// In order of who acted, and of attempts.
    pub rollouts: Vec<(Rollout, RolloutLog)>,
}

/// All rollouts of a run folder, one task's at a time and each once: those of units, then those of groups that are in no unit.
pub fn gather_rollouts(
    store: &Store,
) -> Result<impl Iterator<Item = Result<Vec<(Rollout, RolloutLog)>, StoreError>> + '_, StoreError> {
    let units = gather(store)?.map(|unit| unit.map(|unit| unit.rollouts));
    let tasks = units.chain(gather_groups(store)?.map(|group| group.map(|group| group.rollouts)));
    let mut seen = BTreeSet::new();
    Ok(tasks.map(move |rollouts| {
        let mut rollouts = rollouts?;
        rollouts.retain(|(rollout, _)| seen.insert(rollout.id.clone()));
        Ok(rollouts)
    }))
}

/// The groups of a run folder, in order of their tasks' names.
pub fn gather_groups(
    store: &Store,
) -> Result<impl Iterator<Item = Result<Group, StoreError>> + '_, StoreError> {
    let mut members: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    for key in store.keys(MEMBER)? {
        if let Some(member) = store.get::<MemberRecord>(MEMBER, &key)? {
            members.entry(member.prepared).or_default().insert(member.rollout);
        }
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
    store: &Store,
    key: &Key,
    keys: &BTreeSet<Key>,
    judgements: &Judgements,
) -> Result<Option<Group>, StoreError> {
    let Some(prepared) = store.get::<PreparedRecord>(PREPARED, key)? else { return Ok(None) };
    let mut rollouts = Vec::with_capacity(keys.len());
    for key in keys {
        rollouts.extend(read_rollout(store, key, &prepared.facts, &prepared.checks, judgements)?);
    }
    rollouts.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
    Ok(Some(Group { prepared, rollouts }))
}

/// Who, in which scaffold and arm, which attempt; ids make it total.
fn order(rollout: &Rollout) -> (&str, &str, Arm, u32, &str) {
    let record = &rollout.record;
    (record.actor.teacher(), &record.scaffold, record.actor.arm(), record.attempt, &rollout.id)
}

/// Reads one unit, or `None` if the store lacks part of it.
pub(super) fn read_unit(
    store: &Store,
    key: &Key,
    judgements: &Judgements,
) -> Result<Option<Gathered>, StoreError> {
    let Some(record) = store.get::<UnitRecord>(UNIT, key)? else { return Ok(None) };
    let Some(draft) = store.get::<Draft>(DRAFT, &record.draft)? else { return Ok(None) };
    let Some(certificate) = store.get::<Certificate>(SCREEN, &record.certificate)? else { return Ok(None) };
    let mut rollouts = Vec::with_capacity(record.rollouts.len());
    let facts = Facts::from(&draft.task.blueprint);
    for key in &record.rollouts {
        rollouts.extend(read_rollout(store, key, &facts, &certificate.checks, judgements)?);
    }
    Ok(Some(Gathered { record, draft, certificate, rollouts }))
}

/// Lists the units of a finished run.
pub(super) fn write_index(store: &Store, units: Vec<Key>) -> Result<(), StoreError> {
    let text =
        serde_json::to_string_pretty(&Index { version: INDEX_VERSION, units }).map_err(StoreError::Encode)?;
    store.dir().publish_file(INDEX, &File::text(text + "\n"))?;
    Ok(())
}

fn read_index(store: &Store) -> Result<Option<Vec<Key>>, StoreError> {
    let path = store.dir().root().join(INDEX);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let index: Index =
        serde_json::from_str(&text).map_err(|source| StoreError::Malformed { path, source })?;
    Ok(Some(index.units))
}

fn in_plan_order(store: &Store) -> Result<Vec<Key>, StoreError> {
    let mut found = Vec::new();
    for key in store.keys(UNIT)? {
        if let Some(record) = store.get::<UnitRecord>(UNIT, &key)? {
            found.push((record.blueprint.index, key));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, key)| key).collect())
}
