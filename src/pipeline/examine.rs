//! Screening of task directories that are there already, whoever made them.

use std::path::{Path, PathBuf};

use super::error::Fault;
use super::workshop::Workshop;
use crate::harbor::{HarborTask, ReadError, read_task};
use crate::lint::lint_task;
use crate::model::environment_digest;
use crate::screen::{Extent, Only, Ours, Screening, screen_in_place, screen_ours};
use crate::verify::{Filed, Foreign, Lab};

/// Who judges tasks of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
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
    lab: &Lab<'_>,
    workshop: &Workshop,
    dir: &Path,
    ring: Ring,
    extent: Extent,
    only: &Only,
) -> Result<Examined, ExamineError> {
    let directory = read_task(dir)?;
    let findings = lint_task(&workshop.rules, &directory);
    let screening = match ours(&directory, ring) {
        Some(task) => {
            let base = workshop.kit.base(&task.base).unwrap_or_default();
            let digest = environment_digest(&task.environment, base);
            let filed = Filed::new(&task, digest).map_err(Fault::from)?;
            let ours = Ours { draft: None, filed: &filed, digest: directory.digest() };
            screen_ours(lab, &workshop.gear, &ours, &findings, extent, only).await
        }
        None => match Foreign::new(&directory) {
            Ok(task) => {
                screen_in_place(lab, &workshop.gear, &directory, &task, &findings, extent, only).await
            }
            Err(unsupported) => return Ok(Examined::Unsupported(unsupported.to_string())),
        },
    };
    Ok(Examined::Screened(Box::new(screening.map_err(Fault::from)?)))
}

fn ours(directory: &HarborTask, ring: Ring) -> Option<crate::model::Task> {
    if ring == Ring::AsHarbor {
        return None;
    }
    // One that says it is ours and cannot be read as such is a task all the same.
    directory.clone().into_task().ok()
}

/// The task directories among and directly below `places`, in order of their names.
pub fn task_directories(places: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for place in places {
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
