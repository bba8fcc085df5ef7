//! What people and trainers open: task directories and trajectories, derived from the store.

use std::collections::BTreeSet;
use std::fs;

use super::error::PublishError;
use super::gather::{Gathered, Group};
use super::outputs::{call_details, stamps};
use super::unit::task_directory;
use crate::export::atif::{Calls, Trajectory, trajectory};
use crate::model::{Certificate, File, FileTree, RelPath, Rollout, Screened};
use crate::rollout::RolloutLog;
use crate::store::{Store, StoreError};

/// Name of the certificate in a task directory.
const CERTIFICATE: &str = "certificate.json";

/// Writes what one unit came to: `tasks/<slug>/` or `rejected/<slug>/`, and `trajectories/<id>.json`.
pub fn publish(store: &Store, unit: &Gathered, image_prefix: Option<&str>) -> Result<(), PublishError> {
    let name = &unit.draft.task.name;
    let tree = with_certificate(task_directory(&unit.draft.task, image_prefix)?, &unit.certificate)?;
    let (here, there) = match unit.certificate.screened() {
        Screened::Certified => ("tasks", "rejected"),
        Screened::Rejected => ("rejected", "tasks"),
    };
    store.dir().remove(&format!("{there}/{name}"))?;
    store.dir().publish_tree(&format!("{here}/{name}"), &tree)?;
    for (rollout, log) in &unit.rollouts {
        let text = trajectory_json(store, rollout, log)?.to_json();
        store.dir().publish_file(&format!("trajectories/{}.json", rollout.id), &File::text(text))?;
    }
    Ok(())
}

/// Writes `trajectories/<id>.json` of rollouts that belong to no unit.
pub fn publish_group(store: &Store, group: &Group) -> Result<(), PublishError> {
    for (rollout, log) in &group.rollouts {
        let text = trajectory_json(store, rollout, log)?.to_json();
        store.dir().publish_file(&format!("trajectories/{}.json", rollout.id), &File::text(text))?;
    }
    Ok(())
}

/// A rollout as ATIF, with the times that were observed and what `store` knows of its model calls.
pub fn trajectory_json(
    store: &Store,
    rollout: &Rollout,
    log: &RolloutLog,
) -> Result<Trajectory, PublishError> {
    let details = call_details(store, rollout)?;
    Ok(trajectory(rollout, Some(&stamps(log)), Calls::Parsed, |call| details.get(call).cloned())?)
}

fn with_certificate(mut directory: FileTree, certificate: &Certificate) -> Result<FileTree, StoreError> {
    let text = serde_json::to_string_pretty(certificate).map_err(StoreError::Encode)?;
    if let Ok(path) = RelPath::new(CERTIFICATE) {
        directory.insert(path, File::text(text + "\n"));
    }
    Ok(directory)
}

/// Removes derived files of units that are no longer part of the run: an edited recipe leaves the old ones behind.
pub(super) fn prune(
    store: &Store,
    tasks: &BTreeSet<String>,
    trajectories: &BTreeSet<String>,
) -> Result<(), StoreError> {
    for (folder, keep) in [("tasks", tasks), ("rejected", tasks), ("trajectories", trajectories)] {
        let Ok(entries) = fs::read_dir(store.dir().root().join(folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !keep.contains(name.trim_end_matches(".json")) {
                store.dir().remove(&format!("{folder}/{name}"))?;
            }
        }
    }
    Ok(())
}
