//! Recognises our own tasks in rollouts of other harnesses.
//!
//! Such a rollout states the name of its task and not its recipe. The recipe decides the split, and
//! all rows of a task must be in one split.

use std::collections::BTreeMap;

use super::assets::PipelineAssets;
use super::gather::{CurrentUnit, current_units};
use super::unit::{UNIT, UnitRecord};
use crate::harbor::{is_task_of, own_name};
use crate::model::{TaskMetadata, TrajectoryRecord};
use crate::store::{ReadStore, StoreError};

/// The tasks of a run folder and of all recipes.
pub(super) struct KnownTasks<'a> {
    store: &'a ReadStore,
    assets: &'a PipelineAssets,
    /// Units by task name.
    units: BTreeMap<String, CurrentUnit>,
}

impl<'a> KnownTasks<'a> {
    pub(super) fn read(store: &'a ReadStore, assets: &'a PipelineAssets) -> Result<Self, StoreError> {
        let units = current_units(store, &[])?.into_iter().map(|unit| (unit.task.clone(), unit));
        Ok(Self { store, assets, units: units.collect() })
    }

    /// The metadata of the task of `record`. `stated` is what the rollout's source says about it.
    pub(super) fn metadata(
        &self,
        record: &TrajectoryRecord,
        stated: TaskMetadata,
    ) -> Result<TaskMetadata, StoreError> {
        if stated.recipe.is_some() || !stated.skills.is_empty() {
            return Ok(stated);
        }
        if let Some(unit) = self.units.get(own_name(&record.task))
            && let Some(UnitRecord { blueprint, .. }) = self.store.get(UNIT, &unit.key)?
        {
            let known = TaskMetadata::from(&blueprint);
            if record.task_digest.as_ref() == Some(&unit.task_digest) {
                return Ok(known);
            }
            // The rollout may be of another seed's task. Only the fields that decide the split are
            // taken.
            let skills = if known.recipe.is_none() { known.skills } else { Vec::new() };
            return Ok(TaskMetadata { domain: known.domain, recipe: known.recipe, skills, ..stated });
        }
        let recipe = self.assets.recipes.keys().find(|recipe| is_task_of(&record.task, recipe));
        Ok(match recipe {
            Some(recipe) => TaskMetadata {
                domain: recipe.domain().to_owned(),
                recipe: Some(recipe.to_string()),
                ..stated
            },
            None => stated,
        })
    }
}
