//! Disk limits for engines that have none: overlay2 on ext4 takes no `storage-opt`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::Limits;
use crate::sandbox::ContainerId;

use super::{DockerEngine, Shared};

/// How often disks are looked at. A container can overshoot by what it writes in that time; no single file can.
const EVERY: Duration = Duration::from_secs(3);
/// Files that a container may add. More than any task needs, less than what makes a host's file system run out of inodes.
const MAX_FILES: u64 = 500_000;
/// Below this the host itself is in danger, and the container that has written most is killed.
const MIN_FREE_BYTES: u64 = 512 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;
/// `st_blocks` counts in these, whatever the file system's blocks are.
const BLOCK: u64 = 512;

/// What the watchdog knows of a container.
#[derive(Debug)]
pub(super) struct Watched {
    max_bytes: u64,
    /// The writable layer on this host; `None` until it was asked for.
    upper: Option<Upper>,
    /// Why it was killed.
    pub(super) killed: Option<String>,
}

#[derive(Clone, Debug)]
enum Upper {
    At(PathBuf),
    /// Not readable here: a remote engine, another storage driver, or we are not root.
    Elsewhere,
}

impl Watched {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { max_bytes: u64::from(limits.storage_mb) * MIB, upper: None, killed: None }
    }
}

/// Watches until `stop`.
pub(super) fn start(shared: &Arc<Shared>, stop: CancellationToken) {
    let weak = Arc::downgrade(shared);
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(shared) = weak.upgrade() else { return };
            look(&DockerEngine { shared }).await;
        }
    }));
}

async fn look(engine: &DockerEngine) {
    let shared = &engine.shared;
    let new: Vec<ContainerId> = shared
        .live()
        .iter()
        .filter(|(_, watched)| watched.upper.is_none())
        .map(|(id, _)| id.clone())
        .collect();
    for id in new {
        let upper = shared.upper(&id).await;
        if let Some(watched) = shared.live().get_mut(&id) {
            watched.upper = upper;
        }
    }
    let watched: Vec<(ContainerId, PathBuf, u64)> = shared
        .live()
        .iter()
        .filter_map(|(id, watched)| match &watched.upper {
            Some(Upper::At(path)) if watched.killed.is_none() => {
                Some((id.clone(), path.clone(), watched.max_bytes))
            }
            _ => None,
        })
        .collect();
    // Walking folders blocks.
    let Ok(offenders) = tokio::task::spawn_blocking(move || offenders(&watched)).await else { return };
    for (id, cause) in offenders {
        if let Some(watched) = shared.live().get_mut(&id) {
            watched.killed = Some(cause);
        }
        // If it has ended by itself, the cause is recorded all the same.
        let _ = engine.kill(&id).await;
    }
}

impl Shared {
    async fn upper(&self, id: &ContainerId) -> Option<Upper> {
        // Not created yet, or gone: to be asked again.
        let inspected = self.docker.inspect_container(id.as_str(), None).await.ok()?;
        let data = inspected.graph_driver.map(|driver| driver.data).unwrap_or_default();
        let path = data.get("UpperDir").map(PathBuf::from).filter(|path| fs::read_dir(path).is_ok());
        Some(path.map_or(Upper::Elsewhere, Upper::At))
    }
}

/// Who has written too much, and why it is too much.
fn offenders(watched: &[(ContainerId, PathBuf, u64)]) -> Vec<(ContainerId, String)> {
    let mut found = Vec::new();
    let mut largest: Option<(&ContainerId, &Path, u64)> = None;
    for (id, upper, max_bytes) in watched {
        let used = usage(upper, *max_bytes);
        if used.bytes > *max_bytes {
            found.push((id.clone(), format!("disk limit of {} MiB exceeded", max_bytes / MIB)));
        } else if used.files > MAX_FILES {
            found.push((id.clone(), format!("disk limit of {MAX_FILES} files exceeded")));
        }
        if largest.is_none_or(|(_, _, bytes)| used.bytes > bytes) {
            largest = Some((id, upper, used.bytes));
        }
    }
    if found.is_empty()
        && let Some((id, upper, _)) = largest
        && free_bytes(upper).is_some_and(|free| free < MIN_FREE_BYTES)
    {
        found.push((id.clone(), "disk of the host is full, and this container has written most".to_owned()));
    }
    found
}

fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Usage {
    bytes: u64,
    files: u64,
}

/// Allocated bytes and files below `root`, counted until one limit is passed. Links are not followed.
fn usage(root: &Path, max_bytes: u64) -> Usage {
    let mut used = Usage::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        // Folders come and go while we look.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            used.files += 1;
            used.bytes += metadata.blocks() * BLOCK;
            if used.bytes > max_bytes || used.files > MAX_FILES {
                return used;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offender_is_who_wrote_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let container = |name: &str, bytes: usize, max: u64| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("deep")).unwrap();
            fs::write(path.join("deep/file"), vec![1; bytes]).unwrap();
            (ContainerId(name.to_owned()), path, max)
        };
        let watched = [
            container("small", 10, MIB),
            container("large", 3 << 20, MIB),
            container("allowed", 3 << 20, 8 * MIB),
        ];
        let expected = vec![(ContainerId("large".to_owned()), "disk limit of 1 MiB exceeded".to_owned())];
        assert_eq!(offenders(&watched), expected);
    }
}
