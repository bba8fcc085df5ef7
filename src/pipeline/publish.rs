//! Files for people and trainers: task directories and trajectories, derived from the store.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::authored::{Unmade, abandoned};
use super::error::PublishError;
use super::gather::Gathered;
use super::outputs::{call_details, stamps};
use crate::export::atif::{Calls, Document, documents};
use crate::harbor::{CLAUSES, Publication, WriteError, add_classes, write_task};
use crate::model::{
    Certificate, Clauses, File, FileTree, Key, RelPath, Rollout, Screened, TaskDigest, TaskName, task_digest,
};
use crate::rollout::RolloutLog;
use crate::store::{ReadStore, Store, StoreError};

/// Name of the certificate in a task directory.
const CERTIFICATE: &str = "certificate.json";

/// File in a task directory that marks its certificate as revoked. It comes from a rollout, so no unit has it.
pub const REVOKED: &str = "revoked.json";

/// Writes the files of one unit: `tasks/<slug>/` or `rejected/<slug>/`, and `trajectories/<id>.json`.
pub fn publish(store: &Store, unit: &Gathered, publication: &Publication) -> Result<(), PublishError> {
    publish_task(store, unit, task_files(unit, publication)?)?;
    publish_rollouts(store, &unit.rollouts)
}

/// As [`publish`], for a unit that this run did not make. If its certificate is about another form of the task than `publication` is, such
/// as another mode or image prefix, the directory stays as it was written with it.
pub(super) fn publish_former(
    store: &Store,
    unit: &Gathered,
    publication: &Publication,
) -> Result<(), PublishError> {
    let files = task_files(unit, publication)?;
    let is_there = store.dir().root().join(folder(unit)).exists();
    if !is_there || task_digest(&files) == unit.certificate.task_digest {
        publish_task(store, unit, files)?;
    }
    publish_rollouts(store, &unit.rollouts)
}

/// The files that the certificate's digest is of.
fn task_files(unit: &Gathered, publication: &Publication) -> Result<FileTree, WriteError> {
    let mut files = write_task(&unit.draft.task, publication)?;
    add_classes(&mut files, &unit.certificate.checks);
    Ok(files)
}

fn publish_task(store: &Store, unit: &Gathered, files: FileTree) -> Result<(), PublishError> {
    let name = &unit.draft.task.name;
    let mut tree = with_certificate(files, &unit.certificate)?;
    add_clauses(&mut tree, name, &unit.draft.clauses)?;
    let there = match unit.certificate.screened() {
        Screened::Certified => "rejected",
        Screened::Rejected => "tasks",
    };
    let here = folder(unit);
    keep_revocation(&mut tree, &store.dir().root().join(&here), &unit.certificate);
    store.dir().remove(&format!("{there}/{name}"))?;
    store.dir().publish_tree(&here, &tree)?;
    Ok(())
}

/// Where the directory of a unit's task is, relative to the run folder.
fn folder(unit: &Gathered) -> String {
    let name = &unit.draft.task.name;
    match unit.certificate.screened() {
        Screened::Certified => format!("tasks/{name}"),
        Screened::Rejected => format!("rejected/{name}"),
    }
}

/// Adds the revocation in the former directory at `dir` to `tree`, if both are the same version of the task: a task whose verifier was
/// mended is another one.
fn keep_revocation(tree: &mut FileTree, dir: &Path, certificate: &Certificate) {
    /// Of a certificate of any version.
    #[derive(Deserialize)]
    struct Former {
        task_digest: TaskDigest,
    }
    let former = fs::read(dir.join(CERTIFICATE)).ok();
    let former = former.and_then(|text| serde_json::from_slice::<Former>(&text).ok());
    if former.is_some_and(|former| former.task_digest == certificate.task_digest)
        && let Ok(bytes) = fs::read(dir.join(REVOKED))
        && let Ok(path) = RelPath::new(REVOKED)
    {
        tree.insert(path, File { bytes, executable: false });
    }
}

/// Writes a draft that a model gave up: `rejected/<slug>/` or `unconfirmed/<slug>/`.
pub(super) fn publish_unmade(store: &Store, name: &TaskName, unmade: &Unmade) -> Result<(), PublishError> {
    store.dir().remove(&format!("tasks/{name}"))?;
    store.dir().publish_tree(&format!("{}/{name}", unmade.folder()), &unmade.directory)?;
    Ok(())
}

/// Writes `trajectories/<id>.json` of rollouts, with continuation files.
pub fn publish_rollouts(store: &Store, rollouts: &[(Rollout, RolloutLog)]) -> Result<(), PublishError> {
    for (rollout, log) in rollouts {
        publish_trajectory(store, rollout, log)?;
    }
    Ok(())
}

fn publish_trajectory(store: &Store, rollout: &Rollout, log: &RolloutLog) -> Result<(), PublishError> {
    for document in trajectory_documents(store, rollout, log)? {
        let file = File::text(document.trajectory.to_json());
        store.dir().publish_file(&format!("trajectories/{}", document.name), &file)?;
    }
    Ok(())
}

/// A rollout as ATIF, with observed times and the model calls in `store`. The first document is its beginning.
pub fn trajectory_documents(
    store: &ReadStore,
    rollout: &Rollout,
    log: &RolloutLog,
) -> Result<Vec<Document>, PublishError> {
    let details = call_details(store, rollout)?;
    let detail = |call: &Key| details.get(call).cloned();
    Ok(documents(rollout, &rollout.id, Some(&stamps(log)), Calls::Parsed, detail)?)
}

fn with_certificate(mut directory: FileTree, certificate: &Certificate) -> Result<FileTree, StoreError> {
    let text = serde_json::to_string_pretty(certificate).map_err(StoreError::Encode)?;
    if let Ok(path) = RelPath::new(CERTIFICATE) {
        directory.insert(path, File::text(text + "\n"));
    }
    Ok(directory)
}

/// Adds `clauses.toml`, from which the rows of the clauses can be repeated. Harbor does not package it.
pub fn add_clauses(directory: &mut FileTree, task: &TaskName, clauses: &Clauses) -> Result<(), WriteError> {
    if !clauses.is_empty()
        && let Ok(path) = RelPath::new(CLAUSES)
    {
        let text =
            toml::to_string(clauses).map_err(|source| WriteError::Toml { task: task.to_string(), source })?;
        directory.insert(path, File::text(text));
    }
    Ok(())
}

/// Removes derived files of tasks and rollouts that the store's current units do not have: those of units that were replaced, because
/// their recipe was edited, and of a store from which records were removed.
pub(super) fn prune(
    store: &Store,
    tasks: &BTreeSet<String>,
    trajectories: &BTreeSet<String>,
) -> Result<(), StoreError> {
    let drafts: BTreeSet<_> = tasks.iter().cloned().chain(abandoned(store)?).collect();
    let folders =
        [("tasks", tasks), ("rejected", &drafts), ("unconfirmed", &drafts), ("trajectories", trajectories)];
    for (folder, keep) in folders {
        let Ok(entries) = fs::read_dir(store.dir().root().join(folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // `<id>.json` and its continuations: `<id>.cont-1.json`.
            let whose =
                if folder == "trajectories" { name.split('.').next().unwrap_or(&name) } else { &name };
            if !keep.contains(whose) {
                store.dir().remove(&format!("{folder}/{name}"))?;
            }
        }
    }
    Ok(())
}
