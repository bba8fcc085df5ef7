//! The licence of a rollout's text.

use crate::model::{Actor, Rollout};

/// Licence of generated data (SPDX). The card states it, and every row in which third parties have
/// no rights.
pub const DATA_LICENCE: &str = "CC-BY-4.0";

/// The licence of a rollout's text. It is known only for scripted rollouts of tasks from recipes.
/// For others the terms of the model's provider or the task's author apply, and termsmith does not
/// know them.
pub(super) fn licence(rollout: &Rollout) -> Option<&'static str> {
    let ours = matches!(rollout.record.actor, Actor::Scripted { .. } | Actor::Oracle | Actor::Nop);
    (ours && rollout.metadata.recipe.is_some()).then_some(DATA_LICENCE)
}
