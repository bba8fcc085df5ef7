//! Writes files for people and trainers: task directories and trajectories. They are derived from
//! the store.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::authored::{REJECTED, UNCONFIRMED, Unmade, abandoned};
use super::error::PublishError;
use super::gather::Gathered;
use super::outputs::{call_details, stamps};
use crate::export::atif::{Calls, Document, documents};
use crate::folder::{LARGEST_TEXT, read_file};
use crate::harbor::{CLAUSES, Publication, WriteError, add_classes, write_task};
use crate::model::{
    Certificate, Clauses, File, FileTree, Key, RelPath, Rollout, Screened, TaskDigest, TaskName, task_digest,
};
use crate::rollout::RolloutLog;
use crate::store::{ReadStore, Store, StoreError};

/// The folder in a run folder for certified tasks.
const TASKS: &str = "tasks";

/// The folders in a run folder for task directories. A task is in one of them.
const FOLDERS: [&str; 3] = [TASKS, REJECTED, UNCONFIRMED];

/// Name of the certificate in a task directory.
const CERTIFICATE: &str = "certificate.json";

/// File in a task directory that marks its certificate as revoked. A rollout causes it, so no unit
/// contains it.
pub const REVOKED: &str = "revoked.json";

/// Writes the files of one unit: `tasks/<slug>/` or `rejected/<slug>/`, and
/// `trajectories/<id>.json`.
pub fn publish(store: &Store, unit: &Gathered, publication: &Publication) -> Result<(), PublishError> {
    publish_task(store, unit, task_files(unit, publication)?)?;
    publish_rollouts(store, &unit.rollouts)
}

/// Like [`publish`], for a unit that this run did not make. Its certificate may be about another
/// form of the task than `publication` gives, e.g. another mode or image prefix. Then the directory
/// stays as it is.
pub(super) fn publish_former(
    store: &Store,
    unit: &Gathered,
    publication: &Publication,
) -> Result<(), PublishError> {
    let files = task_files(unit, publication)?;
    let is_there = store.dir().root().join(directory(unit)).exists();
    if !is_there || task_digest(&files) == unit.certificate.task_digest {
        publish_task(store, unit, files)?;
    } else {
        remove_others(store, &unit.draft.task.name, folder(unit))?;
    }
    publish_rollouts(store, &unit.rollouts)
}

/// The files that the certificate's digest covers.
fn task_files(unit: &Gathered, publication: &Publication) -> Result<FileTree, WriteError> {
    let mut files = write_task(&unit.draft.task, publication)?;
    add_classes(&mut files, &unit.certificate.checks);
    Ok(files)
}

fn publish_task(store: &Store, unit: &Gathered, files: FileTree) -> Result<(), PublishError> {
    let name = &unit.draft.task.name;
    let mut tree = with_certificate(files, &unit.certificate)?;
    add_clauses(&mut tree, name, &unit.draft.clauses)?;
    let here = directory(unit);
    keep_revocation(&mut tree, &store.dir().root().join(&here), &unit.certificate);
    remove_others(store, name, folder(unit))?;
    store.dir().publish_tree(&here, &tree)?;
    Ok(())
}

/// The folder that a unit's task belongs to: certified, rejected or unconfirmed.
fn folder(unit: &Gathered) -> &'static str {
    match unit.certificate.screened() {
        Screened::Certified => TASKS,
        Screened::Rejected => REJECTED,
    }
}

/// The path of a unit's task directory in the run folder.
fn directory(unit: &Gathered) -> String {
    format!("{}/{}", folder(unit), unit.draft.task.name)
}

/// Removes directories of a task that former runs left in other folders than `here`.
fn remove_others(store: &Store, task: &TaskName, here: &str) -> Result<(), StoreError> {
    for folder in FOLDERS.iter().filter(|folder| **folder != here) {
        store.dir().remove(&format!("{folder}/{task}"))?;
    }
    Ok(())
}

/// Adds the revocation in the former directory `dir` to `tree`, if both hold the same version of
/// the task. A task with a mended verifier is another version, and is not revoked.
fn keep_revocation(tree: &mut FileTree, dir: &Path, certificate: &Certificate) {
    /// The one field that certificates of all versions have.
    #[derive(Deserialize)]
    struct Former {
        task_digest: TaskDigest,
    }
    let former = read_file(&dir.join(CERTIFICATE), LARGEST_TEXT).ok().flatten();
    let former = former.and_then(|text| serde_json::from_slice::<Former>(&text).ok());
    if former.is_some_and(|former| former.task_digest == certificate.task_digest)
        && let Ok(Some(bytes)) = read_file(&dir.join(REVOKED), LARGEST_TEXT)
        && let Ok(path) = RelPath::new(REVOKED)
    {
        tree.insert(path, File { bytes, executable: false });
    }
}

/// Writes a draft that a model gave up: `rejected/<slug>/` or `unconfirmed/<slug>/`.
pub(super) fn publish_unmade(store: &Store, name: &TaskName, unmade: &Unmade) -> Result<(), PublishError> {
    let revoked = store.dir().root().join(format!("{TASKS}/{name}/{REVOKED}"));
    // The store may have a former unit of the task, which the end of the run publishes again. Only
    // this directory has the unit's revocation.
    if !revoked.exists() {
        remove_others(store, name, unmade.folder())?;
    }
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

/// A rollout as ATIF documents, the first part first. Observed times and model calls in `store` are
/// added.
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

/// Adds `clauses.toml`. With it, others can repeat the rows of the clauses. Harbor does not package
/// the file.
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

/// Removes derived files of tasks and rollouts that no current unit of the store has, e.g. those of
/// a unit that was replaced after its recipe was edited.
pub(super) fn prune(
    store: &Store,
    tasks: &BTreeSet<String>,
    trajectories: &BTreeSet<String>,
) -> Result<(), StoreError> {
    let abandoned = abandoned(store)?;
    let drafts: BTreeSet<_> = tasks.union(&abandoned).cloned().collect();
    // A unit of any run wins over a draft that was given up.
    let unconfirmed: BTreeSet<_> = abandoned.difference(tasks).cloned().collect();
    let folders =
        [(TASKS, tasks), (REJECTED, &drafts), (UNCONFIRMED, &unconfirmed), ("trajectories", trajectories)];
    for (folder, keep) in folders {
        let Ok(entries) = fs::read_dir(store.dir().root().join(folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Continuations of `<id>.json` are named `<id>.cont-1.json` and so on.
            let whose =
                if folder == "trajectories" { name.split('.').next().unwrap_or(&name) } else { &name };
            if !keep.contains(whose) {
                store.dir().remove(&format!("{folder}/{name}"))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::assets::Assets;
    use crate::authoring::GivenUp;
    use crate::domain::{Domains, plan};
    use crate::harbor::DeclaredVerifier;
    use crate::model::{AuthoringMode, AuthoringOutcome, AuthoringRecord, Blueprint, Seed, StageName};
    use crate::pipeline::PipelineAssets;
    use crate::pipeline::authored::AUTHORING;
    use crate::pipeline::unit::{UNIT, UnitRecord, hash_draft};
    use crate::store::{RunDir, key};

    fn blueprint(assets: &PipelineAssets) -> Blueprint {
        let recipes: BTreeMap<_, _> =
            assets.recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
        plan(&assets.domains, &recipes, Seed(7), 1, &Domains::All).blueprints.remove(0)
    }

    /// A unit without trials.
    fn unit(assets: &PipelineAssets, store: &Store, blueprint: &Blueprint, certified: bool) -> Gathered {
        let hashed = hash_draft(assets, store, blueprint, &Publication::default()).unwrap();
        let (name, digest) = (hashed.draft.task.name.as_str(), task_digest(&hashed.directory));
        let certificate =
            Certificate { certified, ..Certificate::without_rows(name, digest, hashed.environment_digest) };
        let certificate_key = key(UNIT, &certificate).unwrap();
        let record = UnitRecord {
            blueprint: blueprint.clone(),
            draft: hashed.key,
            certificate: certificate_key,
            rollouts: Vec::new(),
        };
        Gathered { record, draft: hashed.draft, certificate, rollouts: Vec::new() }
    }

    /// The files of a task are in one folder, whatever former runs made of it.
    #[test]
    fn a_task_is_in_one_folder() {
        let assets = PipelineAssets::load(&Assets::embedded()).unwrap();
        let blueprint = blueprint(&assets);
        let name = crate::harbor::task_name(&blueprint);
        let check = |former: &[&str], write: &dyn Fn(&Store), expect: &[&str]| {
            let out = tempfile::tempdir().unwrap();
            let store = Store::new(RunDir::open(out.path()).unwrap());
            for place in former {
                let file = out.path().join(place.replace('*', name.as_str()));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "{}").unwrap();
            }
            write(&store);
            let found = FOLDERS.iter().filter(|folder| out.path().join(folder).join(name.as_str()).exists());
            assert_eq!(found.copied().collect::<Vec<_>>(), expect, "{former:?}");
        };
        let every = ["tasks/*/a", "rejected/*/a", "unconfirmed/*/a"];
        let made = |certified: bool| {
            let (assets, blueprint) = (&assets, &blueprint);
            move |store: &Store| {
                let unit = unit(assets, store, blueprint, certified);
                publish(store, &unit, &Publication::default()).unwrap();
            }
        };
        check(&every, &made(true), &["tasks"]);
        check(&every, &made(false), &["rejected"]);
        // The directory has another form than this run would write, so it stays.
        let other_form = |store: &Store| {
            let unit = unit(&assets, store, &blueprint, true);
            let shared = Publication { verifier: DeclaredVerifier::Shared, ..Publication::default() };
            publish_former(store, &unit, &shared).unwrap();
            assert!(store.dir().root().join(format!("tasks/{name}/a")).exists());
        };
        check(&every, &other_form, &["tasks"]);
        let stage = || StageName::of("checks");
        let unmade = |given_up: GivenUp| {
            let name = &name;
            move |store: &Store| {
                let (stage, directory) = (stage(), FileTree::default());
                let unmade = Unmade { stage, given_up, problems: Vec::new(), directory };
                publish_unmade(store, name, &unmade).unwrap();
            }
        };
        check(&every, &unmade(GivenUp::Unconfirmed), &["unconfirmed"]);
        check(&every, &unmade(GivenUp::Rejected), &["rejected"]);
        // A revocation is in no record. It is lost when its directory is removed.
        check(&["tasks/*/revoked.json"], &unmade(GivenUp::Rejected), &["tasks", "rejected"]);
        let pruned = |units: &[&TaskName]| {
            let units: BTreeSet<_> = units.iter().map(ToString::to_string).collect();
            let blueprint = &blueprint;
            move |store: &Store| {
                let record = AuthoringRecord {
                    blueprint: blueprint.clone(),
                    sampling: "chat".to_owned(),
                    recording: None,
                    mode: AuthoringMode::OneShot,
                    request: String::new(),
                    versions: Vec::new(),
                    difficulty_bands: Vec::new(),
                    outcome: AuthoringOutcome::Rejected(stage()),
                };
                store.put(AUTHORING, &key(AUTHORING, &record).unwrap(), &record).unwrap();
                prune(store, &units, &BTreeSet::new()).unwrap();
            }
        };
        check(&["tasks/*/a", "unconfirmed/*/a"], &pruned(&[&name]), &["tasks"]);
        check(&["tasks/*/a", "unconfirmed/*/a"], &pruned(&[]), &["unconfirmed"]);
    }
}
