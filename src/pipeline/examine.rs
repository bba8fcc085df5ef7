//! Screening of existing task directories of any maker.

use std::path::{Path, PathBuf};

use tracing::Instrument as _;

use super::assets::PipelineAssets;
use super::error::Fault;
use crate::harbor::{
    DeclaredVerifier, HarborTask, Publication, ReadError, parse_manifest, read_clauses, read_task, write_task,
};
use crate::lint::lint_task;
use crate::model::environment_digest;
use crate::screen::{Extent, Only, Ours, Screening, Theirs, screen_in_place, screen_ours};
use crate::verify::{Foreign, HashedTask, TrialRunner};

/// How our own tasks are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifierMode {
    /// Our tasks in the clean room, tasks of other makers as they declare.
    AsDeclared,
    /// Our tasks as Harbor judges those that declare this mode, to measure how robust they are there. Other tasks are judged as they declare.
    AsHarbor(DeclaredVerifier),
}

/// Result of screening a directory.
#[derive(Debug)]
pub enum Examined {
    Screened(Box<Screening>),
    /// Not screened: this engine does not support the task.
    Unsupported(String),
}

/// Why a directory was not examined.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Screens the task in `dir`.
pub async fn examine(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    dir: &Path,
    verifier_mode: VerifierMode,
    extent: Extent,
    only: &Only,
) -> Result<Examined, ExamineError> {
    let directory = read_task(dir)?;
    let findings = lint_task(&assets.rules, &directory);
    let clauses = read_clauses(dir)?;
    let span = tracing::info_span!("unit", task = directory.name);
    let screening = match ours(&directory, verifier_mode) {
        Some(task) => {
            let base = assets.kit.base(&task.base).unwrap_or_default();
            let digest = environment_digest(&task.environment, base);
            let hashed = HashedTask::new(&task, digest).map_err(Fault::from)?;
            let ours = Ours { draft: None, clauses: &clauses, hashed: &hashed, digest: directory.digest() };
            screen_ours(runner, &assets.suite, &ours, &findings, extent, only).instrument(span).await
        }
        None => match Foreign::new(&declaring(directory.clone(), verifier_mode)?) {
            Ok(task) => {
                let theirs = Theirs { directory: &directory, task: &task, clauses: &clauses };
                screen_in_place(runner, &assets.suite, theirs, &findings, extent, only).instrument(span).await
            }
            Err(unsupported) => return Ok(Examined::Unsupported(unsupported.to_string())),
        },
    };
    Ok(Examined::Screened(Box::new(screening.map_err(Fault::from)?)))
}

/// Our own task, written as it would declare this mode.
fn declaring(directory: HarborTask, verifier_mode: VerifierMode) -> Result<HarborTask, Fault> {
    let VerifierMode::AsHarbor(verifier) = verifier_mode else { return Ok(directory) };
    let Ok(task) = directory.clone().into_task() else { return Ok(directory) };
    let written = write_task(&task, &Publication { verifier, ..Publication::default() })?;
    let Some(manifest) = written.text("task.toml").and_then(|text| parse_manifest(text).ok()) else {
        return Ok(directory);
    };
    Ok(HarborTask { manifest: manifest.0, ..directory })
}

fn ours(directory: &HarborTask, verifier_mode: VerifierMode) -> Option<crate::model::Task> {
    if matches!(verifier_mode, VerifierMode::AsHarbor(_)) {
        return None;
    }
    // A task that declares our format but cannot be parsed as such is treated as a foreign task.
    directory.clone().into_task().ok()
}

/// The task directories among `paths` and directly below them, ordered by name.
pub fn task_directories(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.join("task.toml").is_file() {
            found.push(path.clone());
            continue;
        }
        let mut below: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            if path.join("task.toml").is_file() || path.join("expect.toml").is_file() {
                below.push(path);
            }
        }
        below.sort();
        found.extend(below);
    }
    Ok(found)
}
