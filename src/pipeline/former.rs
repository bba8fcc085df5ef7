//! Finds the results of other builds in a run folder that this build computes again.

use std::collections::{BTreeMap, BTreeSet};

use super::campaign::{MEMBER, MemberRecord};
use super::prepared::{PREPARED, PreparedRecord};
use super::unit::{UNIT, UnitRecord};
use crate::model::{Blueprint, Key};
use crate::rollout::ROLLOUT;
use crate::screen::SCREEN;
use crate::store::{ReadStore, StoreError, build_id};
use crate::verify::TRIAL;

/// What a command is about to do in a run folder.
#[derive(Clone, Copy, Debug)]
pub enum Upcoming<'a> {
    /// The tasks of a plan, and their rollouts.
    Plan(&'a [&'a Blueprint]),
    /// Rollouts of the tasks with these names.
    Rollouts(&'a BTreeSet<String>),
    /// Trials of a screening.
    Screening,
}

/// Results of other builds that a command computes again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Former {
    /// The builds that made them.
    pub builds: BTreeSet<String>,
    pub tasks: usize,
    pub rollouts: usize,
    /// Trials are counted only where no unit of another build is found.
    pub trials: usize,
}

impl Former {
    /// The results in `store` that other builds made and that `upcoming` needs.
    pub fn read(store: &ReadStore, upcoming: Upcoming<'_>) -> Result<Self, StoreError> {
        let mut former = Self::default();
        match upcoming {
            Upcoming::Plan(blueprints) => {
                former.units(store, blueprints)?;
                if former.builds.is_empty() {
                    former.trials(store)?;
                }
            }
            Upcoming::Rollouts(tasks) => former.rollouts(store, tasks)?,
            Upcoming::Screening => former.trials(store)?,
        }
        Ok(former)
    }

    fn units(&mut self, store: &ReadStore, blueprints: &[&Blueprint]) -> Result<(), StoreError> {
        let mut others: BTreeMap<usize, (String, usize)> = BTreeMap::new();
        let mut own = BTreeSet::new();
        for key in store.keys(UNIT)? {
            let Some(unit) = store.get::<UnitRecord>(UNIT, &key)? else { continue };
            let Some(place) = blueprints.iter().position(|one| **one == unit.blueprint) else { continue };
            match store.build(SCREEN, &unit.certificate)? {
                Some(build) if build != build_id() => {
                    others.insert(place, (build, unit.rollouts.len()));
                }
                Some(_) | None => {
                    own.insert(place);
                }
            }
        }
        for (build, rollouts) in
            others.into_iter().filter(|(place, _)| !own.contains(place)).map(|(_, one)| one)
        {
            self.builds.insert(build);
            self.tasks += 1;
            self.rollouts += rollouts;
        }
        Ok(())
    }

    fn rollouts(&mut self, store: &ReadStore, tasks: &BTreeSet<String>) -> Result<(), StoreError> {
        let mut names: BTreeMap<Key, bool> = BTreeMap::new();
        let mut rollouts = Vec::new();
        for key in store.keys(MEMBER)? {
            let Some(member) = store.get::<MemberRecord>(MEMBER, &key)? else { continue };
            let is_wanted = match names.get(&member.prepared) {
                Some(known) => *known,
                None => {
                    let prepared = store.get::<PreparedRecord>(PREPARED, &member.prepared)?;
                    let found = prepared.is_some_and(|prepared| tasks.contains(prepared.task.as_str()));
                    names.insert(member.prepared.clone(), found);
                    found
                }
            };
            if is_wanted {
                rollouts.push(member.rollout);
            }
        }
        store.retain_latest(ROLLOUT, &mut rollouts)?;
        for key in rollouts {
            if let Some(build) = store.build(ROLLOUT, &key)?.filter(|build| build != build_id()) {
                self.builds.insert(build);
                self.rollouts += 1;
            }
        }
        Ok(())
    }

    fn trials(&mut self, store: &ReadStore) -> Result<(), StoreError> {
        for key in store.latest(TRIAL)? {
            if let Some(build) = store.build(TRIAL, &key)?.filter(|build| build != build_id()) {
                self.builds.insert(build);
                self.trials += 1;
            }
        }
        Ok(())
    }
}
