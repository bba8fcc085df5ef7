//! The split of rows into `train` and `test`. All rows of a group are in the same split.
//!
//! The split of a group depends only on the group's name. So it is the same in every export, shard
//! and merged store.

use crate::model::Rollout;

/// Name of the split that is trained on.
pub const TRAIN: &str = "train";
/// Name of the split that is held out.
pub const TEST: &str = "test";

/// One in this many groups is held out, chosen by hash. A tenth of the data is usual.
const HELD_OUT_ONE_IN: u64 = 10;

/// Minimum number of groups. With fewer, no group is held out: of four groups, one would be a
/// quarter of the data.
pub const FEWEST_GROUPS: usize = 5;

/// Part of the hashed text. With this salt, two of the thirteen built-in recipes are held out, and
/// each of their domains keeps another recipe.
const SALT: &str = "termsmith-split-36";

/// The group of a rollout's rows: the recipe of its task. Tasks without a recipe are grouped by
/// similarity. Tasks by a model are in one group if they have the same domain and skills. Imported
/// tasks are in one group if their names differ only in a final number.
pub fn group(rollout: &Rollout) -> String {
    let metadata = &rollout.metadata;
    if let Some(recipe) = &metadata.recipe {
        return recipe.clone();
    }
    let domain = if metadata.domain.is_empty() { "unknown" } else { &metadata.domain };
    if metadata.skills.is_empty() {
        let name = rollout.record.task.to_string();
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_', '.']);
        format!("{domain}/{}", if stem.is_empty() { name.as_str() } else { stem })
    } else {
        format!("{domain}/{}", metadata.skills.join("+"))
    }
}

/// Whether a group is held out, if any group is.
pub(super) fn is_held_out(group: &str) -> bool {
    let hash = blake3::hash(format!("{SALT}/{group}").as_bytes());
    let leading = hash.as_bytes().iter().take(8).fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    leading.is_multiple_of(HELD_OUT_ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;
    use crate::model::{TaskMetadata, TaskName};

    #[test]
    fn groups() {
        let check = |name: &str, change: fn(&mut TaskMetadata), expect: &str| {
            let mut rollout = fixture::rollout("games", 0, 0, 2, 8);
            rollout.record.task = TaskName::parse(name).unwrap();
            change(&mut rollout.metadata);
            assert_eq!(group(&rollout), expect);
        };
        check("a-1", |_| {}, "games/roll-up");
        check("a-1", |task| task.recipe = None, "games/log-analysis+aggregation");
        check("fix-git-12", |task| *task = TaskMetadata::default(), "unknown/fix-git");
        check("fix-git", |task| *task = TaskMetadata::default(), "unknown/fix-git");
        check("2048", |task| *task = TaskMetadata::default(), "unknown/2048");
    }

    /// Published rows must not move to the other split. A new recipe may fall into either.
    #[test]
    fn published_recipes_keep_their_split() {
        let check = |recipe: &str, expect: bool| assert_eq!(is_held_out(recipe), expect, "{recipe}");
        check("ai_ml/repair-knn-evaluation", false);
        check("build_tools/repair-handbook-makefile", false);
        check("coding/mend-booking-cli", false);
        check("data_science/settle-meter-readings", false);
        check("games/extend-burrow-rules", false);
        check("networking/audit-border-routing", true);
        check("networking/extend-filter-simulator", false);
        check("networking/trace-site-routes", false);
        check("scientific_computing/extend-heat-simulator", false);
        check("security/harden-file-shelf", false);
        check("system_admin/refactor-rotation-scripts", false);
        check("system_admin/unify-sweep-scripts", true);
        check("version_control/tidy-review-branch", false);
    }

    #[test]
    fn about_a_tenth_is_held_out() {
        let held_out = (0..1000).filter(|number| is_held_out(&format!("games/recipe-{number}"))).count();
        assert!((70..130).contains(&held_out), "{held_out}");
    }
}
