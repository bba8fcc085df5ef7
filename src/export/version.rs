//! Versions of a task: rollouts with one task name but other task files or environments, e.g. after
//! another `--image-prefix` or termsmith release. Each version counts as a task of its own: nothing
//! is compared or counted across versions.

use crate::model::{EnvironmentDigest, Rollout, TaskDigest, TaskName};

/// What all rollouts of a version share.
pub(super) type Version<'a> = (&'a TaskName, Option<&'a TaskDigest>, Option<&'a EnvironmentDigest>);

/// The version of the task that `rollout` worked on.
pub(super) fn version(rollout: &Rollout) -> Version<'_> {
    let record = &rollout.record;
    (&record.task, record.task_digest.as_ref(), record.environment_digest.as_ref())
}

/// Groups `rollouts` by version. Versions are in the order of their first rollout. Rollouts keep
/// their order.
pub(super) fn versions(rollouts: Vec<Rollout>) -> Vec<Vec<Rollout>> {
    let mut found: Vec<Vec<Rollout>> = Vec::new();
    for rollout in rollouts {
        let is_own = |others: &&mut Vec<Rollout>| {
            others.first().is_some_and(|first| version(first) == version(&rollout))
        };
        match found.iter_mut().find(is_own) {
            Some(others) => others.push(rollout),
            None => found.push(vec![rollout]),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::export::fixture::{CHECKS, rollout};
    use crate::export::{ExportOptions, export};

    #[test]
    fn versions_are_exported_as_tasks_of_their_own() {
        // Attempts 0 and 2 pass, 1 and 3 fail. `change` alters the last two.
        let check = |change: fn(&mut Rollout), expect: &[&[u32]], pairs: u64| {
            let passed = [CHECKS, CHECKS - 1, CHECKS, CHECKS - 1];
            let attempts = (0..).zip(passed);
            let mut attempts: Vec<_> =
                attempts.map(|(attempt, passed)| rollout("games", 0, attempt, 4, passed)).collect();
            attempts[2..].iter_mut().for_each(change);
            let numbers =
                |of_one: &Vec<Rollout>| of_one.iter().map(|rollout| rollout.record.attempt).collect();
            let found: Vec<Vec<u32>> = versions(attempts.clone()).iter().map(numbers).collect();
            assert_eq!(found, expect);
            let dir = tempfile::tempdir().unwrap();
            let groups = [Ok::<_, Infallible>(attempts)];
            let summary = export(dir.path(), groups, &ExportOptions::default()).unwrap();
            let counts = &summary.domains["games"];
            assert_eq!((counts.tasks, counts.rows["pref_dmpo"]), (expect.len() as u64, pairs));
        };
        check(|_| {}, &[&[0, 1, 2, 3]], 4);
        check(|rollout| rollout.record.task_digest = None, &[&[0, 1], &[2, 3]], 2);
        check(|rollout| rollout.record.environment_digest = None, &[&[0, 1], &[2, 3]], 2);
    }
}
