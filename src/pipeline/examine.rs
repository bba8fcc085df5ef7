//! Screening of existing task directories of any maker.

use std::path::{Path, PathBuf};

use tracing::Instrument as _;

use super::assets::PipelineAssets;
use super::error::Fault;
use crate::harbor::{HarborTask, ReadError, read_clauses, read_task};
use crate::lint::lint_task;
use crate::model::environment_digest;
use crate::screen::{Extent, Only, Ours, Screening, screen_in_place, screen_ours};
use crate::verify::{Foreign, HashedTask, TrialRunner};

/// How our own tasks are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifierMode {
    /// Our tasks in the clean room, tasks of other makers as they declare.
    AsDeclared,
    /// Every task in Harbor's shared mode, to measure how robust it is there.
    AsHarbor,
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
        None => match Foreign::new(&directory) {
            Ok(task) => {
                screen_in_place(runner, &assets.suite, &directory, &task, &clauses, &findings, extent, only)
                    .instrument(span)
                    .await
            }
            Err(unsupported) => return Ok(Examined::Unsupported(unsupported.to_string())),
        },
    };
    Ok(Examined::Screened(Box::new(screening.map_err(Fault::from)?)))
}

fn ours(directory: &HarborTask, verifier_mode: VerifierMode) -> Option<crate::model::Task> {
    if verifier_mode == VerifierMode::AsHarbor {
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
