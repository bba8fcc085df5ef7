//! Screening of task directories that are there already, whoever made them.

use std::path::{Path, PathBuf};

use super::assets::PipelineAssets;
use super::error::Fault;
use crate::harbor::{HarborTask, ReadError, read_task};
use crate::lint::lint_task;
use crate::model::environment_digest;
use crate::screen::{Extent, Only, Ours, Screening, screen_in_place, screen_ours};
use crate::verify::{Foreign, HashedTask, TrialRunner};

/// Who judges tasks of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifierMode {
    /// Our clean room; tasks of other makers as they declare.
    AsDeclared,
    /// Every task in Harbor's shared mode, so that its hardness elsewhere is known.
    AsHarbor,
}

/// What a directory came to.
#[derive(Debug)]
pub enum Examined {
    Screened(Box<Screening>),
    /// Nothing is known of it: this engine cannot try it.
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
    let screening = match ours(&directory, verifier_mode) {
        Some(task) => {
            let base = assets.kit.base(&task.base).unwrap_or_default();
            let digest = environment_digest(&task.environment, base);
            let hashed = HashedTask::new(&task, digest).map_err(Fault::from)?;
            let ours = Ours { draft: None, hashed: &hashed, digest: directory.digest() };
            screen_ours(runner, &assets.suite, &ours, &findings, extent, only).await
        }
        None => match Foreign::new(&directory) {
            Ok(task) => {
                screen_in_place(runner, &assets.suite, &directory, &task, &findings, extent, only).await
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
    // One that says it is ours and cannot be read as such is a task all the same.
    directory.clone().into_task().ok()
}

/// The task directories among and directly below `places`, in order of their names.
pub fn task_directories(capacity: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for place in capacity {
        if place.join("task.toml").is_file() {
            found.push(place.clone());
            continue;
        }
        let mut below: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(place)? {
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
