//! Disk limits for engines that have none: overlay2 on ext4 takes no `storage-opt`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::Limits;
use crate::sandbox::ContainerId;

use super::upper::{Upper, level};
use super::{DockerEngine, Shared};

/// How often disks are looked at. A container can overshoot by what it writes in that time; no single file can.
const EVERY: Duration = Duration::from_secs(3);
/// Files that a container may add. More than any task needs, less than what makes a host's file system run out of inodes or
/// takes minutes to remove.
const MAX_FILES: u64 = 250_000;
/// Below this the host itself is in danger, and the container that has written most is killed.
const MIN_FREE_BYTES: u64 = 512 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// What the watchdog knows of a container.
#[derive(Debug)]
pub(super) struct Watched {
    max_bytes: u64,
    /// Where it writes on this host; `None` until it was asked for.
    upper: Option<Place>,
    /// Why it was killed.
    pub(super) killed: Option<String>,
}

#[derive(Clone, Debug)]
enum Place {
    At(Upper),
    /// Not readable here: a remote engine, another storage driver, or we are not root.
    Elsewhere,
}

impl Watched {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { max_bytes: u64::from(limits.storage_mb) * MIB, upper: None, killed: None }
    }

    /// It is started again: what was known of its last life does not hold any more.
    pub(super) fn restarted(&mut self) {
        (self.upper, self.killed) = (None, None);
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
        // One that does not run (yet) is asked again.
        let place = shared
            .place(id.as_str())
            .await
            .filter(|place| !matches!(place, Place::At(upper) if upper.pid == 0));
        if let Some(watched) = shared.live().get_mut(&id) {
            watched.upper = place;
        }
    }
    let watched: Vec<(ContainerId, Upper, u64)> = shared
        .live()
        .iter()
        .filter_map(|(id, watched)| match &watched.upper {
            Some(Place::At(upper)) if watched.killed.is_none() => {
                Some((id.clone(), upper.clone(), watched.max_bytes))
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
        let _ = shared.kill(id.as_str()).await;
    }
}

impl Shared {
    /// Makes sure that the engine can remove a container: nothing runs in it, and its folders lie flat enough.
    pub(super) async fn make_removable(&self, name: &str) {
        // Gone, not running, or the engine is in trouble: the removal itself will tell.
        let _ = self.kill(name).await;
        if let Some(Place::At(Upper { folders, pid: 0 })) = self.place(name).await {
            // Walking folders blocks. A walk that failed is a removal that may fail.
            let _ =
                tokio::task::spawn_blocking(move || folders.iter().for_each(|folder| level(folder))).await;
        }
    }

    /// `None` when it is not there (yet).
    async fn place(&self, name: &str) -> Option<Place> {
        let inspected = self.docker.inspect_container(name, None).await.ok()?;
        let pid = inspected.state.and_then(|state| state.pid).unwrap_or_default();
        let layers = inspected.graph_driver.map(|driver| driver.data).unwrap_or_default();
        let Some(upper) = layers.get("UpperDir").map(PathBuf::from).filter(|path| fs::read_dir(path).is_ok())
        else {
            return Some(Place::Elsewhere);
        };
        let volumes = inspected.mounts.into_iter().flatten();
        let volumes = volumes.filter(|mount| mount.typ.as_deref() == Some("volume"));
        let folders = [upper].into_iter().chain(volumes.filter_map(|mount| mount.source).map(PathBuf::from));
        Some(Place::At(Upper { folders: folders.collect(), pid }))
    }
}

/// Who has written too much, and why it is too much.
fn offenders(watched: &[(ContainerId, Upper, u64)]) -> Vec<(ContainerId, String)> {
    let mut found = Vec::new();
    let mut largest: Option<(&ContainerId, &Upper, u64)> = None;
    for (id, upper, max_bytes) in watched {
        let used = upper.usage(*max_bytes, MAX_FILES);
        if used.bytes > *max_bytes {
            found.push((id.clone(), format!("disk limit of {} MiB exceeded", max_bytes / MIB)));
        } else if used.files > MAX_FILES {
            found.push((id.clone(), format!("disk limit of {MAX_FILES} files exceeded")));
        } else if used.too_deep {
            found.push((id.clone(), "folders nested deeper than can be looked after".to_owned()));
        }
        if largest.is_none_or(|(_, _, bytes)| used.bytes > bytes) {
            largest = Some((id, upper, used.bytes));
        }
    }
    if found.is_empty()
        && let Some((id, upper, _)) = largest
        && upper
            .folders
            .first()
            .and_then(|folder| free_bytes(folder))
            .is_some_and(|free| free < MIN_FREE_BYTES)
    {
        found.push((id.clone(), "disk of the host is full, and this container has written most".to_owned()));
    }
    found
}

fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
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
            (ContainerId(name.to_owned()), Upper { folders: vec![path], pid: 0 }, max)
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
