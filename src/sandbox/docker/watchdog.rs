//! Enforces limits that the engine does not have: of disk space (overlay2 on ext4 does not support
//! [`super::quota`]), of files, and of kernel objects that all containers share ([`super::pools`]).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::Limits;
use crate::sandbox::{ContainerId, Evidence, Loss, Pauses};

use super::in_flight::Look;
use super::quota::POLLED_EVERY;
use super::snapshot::VOLUME;
use super::writable_layer::{Held, MAX_FILES, MAX_PATHS, Most, Usage, WritableLayer, level};
use super::{DockerEngine, Shared, pools, volumes};

/// Free space on the host below which a warning is logged. It is no reason to kill a container that
/// is within its own limits.
pub(super) const LOW_FREE_BYTES: u64 = 512 * 1024 * 1024;
/// Free space on the host below which the host is blamed for an ENOSPC. Ext4 reserves up to 5 % for
/// root, so only the space for other users counts. Single writes of programs are no larger.
pub(super) const FULL_FREE_BYTES: u64 = 16 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// The watchdog's state of a container.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) max_bytes: u64,
    pub(super) max_memory: u64,
    /// Its writable paths on this host. `None` until the engine was asked for them.
    layer: Option<LayerPlace>,
    /// The last look at which it had no descriptors in flight, or else the first look.
    settled: Option<Arc<Look>>,
    /// Why the watchdog killed it.
    pub(super) killed: Option<Loss>,
    /// Times of its out-of-memory events, in seconds since 1970.
    pub(super) oom_times: Vec<i64>,
    /// Its pauses by the engine. They belong to the container's clock, so they outlive a restart.
    pub(super) pauses: watch::Sender<Pauses>,
    /// The host's disk was full while the container ran.
    pub(super) host_disk_full: Option<Loss>,
    /// The container held much of that disk then, or may have.
    pub(super) held_disk: bool,
}

/// Where a container's writable layer is.
#[derive(Clone, Debug)]
pub(super) enum LayerPlace {
    At(WritableLayer),
    /// It cannot be read here. The engine is remote, it has another storage driver, or this process
    /// is not root.
    Elsewhere,
}

impl LayerPlace {
    /// How much of a full disk the container holds. It walks folders, so it blocks.
    pub(super) fn held(&self, max_bytes: u64) -> Held {
        match self {
            Self::At(layer) => layer.held(max_bytes),
            Self::Elsewhere => Held::Unknown,
        }
    }

    /// Whether the bytes that the container writes can be counted.
    fn is_counted(&self) -> bool {
        matches!(self, Self::At(WritableLayer { has_layer: true, .. }))
    }
}

impl Watched {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            max_bytes: u64::from(limits.storage_mb) * MIB,
            max_memory: u64::from(limits.memory_mb) * MIB,
            layer: None,
            settled: None,
            killed: None,
            oom_times: Vec::new(),
            pauses: watch::Sender::default(),
            host_disk_full: None,
            held_disk: false,
        }
    }

    /// The container is restarted, so its former state no longer applies.
    pub(super) fn restarted(&mut self) {
        (self.layer, self.settled, self.killed) = (None, None, None);
        (self.host_disk_full, self.held_disk) = (None, false);
        self.oom_times.clear();
    }
}

/// Watches until `stop`.
pub(super) fn start(shared: &Arc<Shared>, stop: CancellationToken) {
    let weak = Arc::downgrade(shared);
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(POLLED_EVERY).await;
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
        .filter(|(_, watched)| watched.layer.is_none())
        .map(|(id, _)| id.clone())
        .collect();
    for id in new {
        // A container that does not run yet is looked at again.
        let layer = shared
            .writable_layer(id.as_str())
            .await
            .filter(|layer| !matches!(layer, LayerPlace::At(layer) if layer.pid == 0));
        if layer.as_ref().is_some_and(|layer| !layer.is_counted()) {
            shared.warn_of_uncounted_layers();
        }
        if let Some(watched) = shared.live().get_mut(&id) {
            watched.layer = layer;
        }
    }
    let watched: Vec<Watching> = shared
        .live()
        .iter()
        .filter_map(|(id, watched)| match &watched.layer {
            Some(LayerPlace::At(layer)) if watched.killed.is_none() => Some(Watching {
                id: id.clone(),
                layer: layer.clone(),
                max_bytes: watched.max_bytes,
                settled: watched.settled.clone(),
            }),
            _ => None,
        })
        .collect();
    let disk = if shared.has_quotas.load(Ordering::Relaxed) { Disk::Quotas } else { Disk::Polled };
    // The walk blocks, so it runs in a thread for blocking work.
    let Ok(seen) = tokio::task::spawn_blocking(move || see(&watched, disk)).await else {
        tracing::warn!("the disk watchdog failed to look");
        return;
    };
    for id in &seen.settled {
        if let Some(watched) = shared.live().get_mut(id) {
            watched.settled = Some(seen.look.clone());
        }
    }
    let offenders = seen.offenders;
    for (id, loss) in offenders {
        if let Some(watched) = shared.live().get_mut(&id) {
            tracing::debug!(container = %id, %loss, "killing a container for its own limit");
            watched.killed = Some(loss);
        }
        // If it has ended by itself, the cause is recorded anyway.
        if let Err(error) = shared.kill(id.as_str()).await {
            tracing::warn!(container = %id, %error, "cannot kill a container that exceeds its limit");
        }
    }
}

impl Shared {
    /// Makes a container removable for the engine: no process runs in it, and its folders are not
    /// nested too deeply.
    pub(super) async fn make_removable(&self, name: &str) {
        // The container is gone, or the engine has failed. The removal itself reports that.
        if let Err(error) = self.kill(name).await {
            tracing::debug!(container = name, %error, "cannot kill a container before its removal");
        }
        if let Some(LayerPlace::At(WritableLayer { folders, pid: 0, .. })) = self.writable_layer(name).await {
            // The walk blocks, so it runs in a thread for blocking work.
            let walk = tokio::task::spawn_blocking(move || folders.iter().for_each(|folder| level(folder)));
            if let Err(error) = walk.await {
                tracing::warn!(container = name, %error, "cannot level folders before a removal");
            }
        }
    }

    /// Warns once that nothing limits the disk of this engine's containers.
    fn warn_of_uncounted_layers(&self) {
        let is_limited = self.has_quotas.load(Ordering::Relaxed);
        if self.is_on_this_host() && !is_limited && !self.warned_of_layers.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                endpoint = self.endpoint,
                "the disk of containers is not limited: only root can read their layers, and only with the storage driver overlay2"
            );
        }
    }

    /// The container's writable paths, if they can be read here. `None` if it does not exist yet,
    /// or if the engine does not answer.
    pub(super) async fn writable_layer(&self, name: &str) -> Option<LayerPlace> {
        let inspected = self.docker.inspect_container(name, None).await.ok()?;
        let pid = inspected.state.and_then(|state| state.pid).unwrap_or_default();
        let layers = inspected.graph_driver.map(|driver| driver.data).unwrap_or_default();
        // Only overlay2 names such a folder. The files that the engine mounts are counted with
        // every driver.
        let layer = layers.get("UpperDir").map(PathBuf::from).filter(|path| fs::read_dir(path).is_ok());
        let has_layer = layer.is_some();
        let volumes = inspected.mounts.into_iter().flatten();
        let volumes =
            volumes.filter(|mount| mount.typ.as_deref() == Some(VOLUME) && !volumes::is_ours(mount));
        let folders: Vec<_> =
            layer.into_iter().chain(volumes.filter_map(|mount| mount.source).map(PathBuf::from)).collect();
        let files = [inspected.hostname_path, inspected.hosts_path, inspected.resolv_conf_path];
        let files = files.into_iter().flatten().filter(|path| !path.is_empty()).map(PathBuf::from);
        let files: Vec<_> = files.filter(|path| fs::symlink_metadata(path).is_ok()).collect();
        if folders.is_empty() && files.is_empty() {
            return Some(LayerPlace::Elsewhere);
        }
        Some(LayerPlace::At(WritableLayer { folders, has_layer, files, pid }))
    }
}

/// A container that the watchdog looks at.
#[derive(Debug)]
struct Watching {
    id: ContainerId,
    layer: WritableLayer,
    max_bytes: u64,
    settled: Option<Arc<Look>>,
}

/// The result of one look.
struct Seen {
    look: Arc<Look>,
    /// The containers whose later looks are compared with this one.
    settled: Vec<ContainerId>,
    /// Containers that exceed their limits, with the reasons.
    offenders: Vec<(ContainerId, Loss)>,
}

/// The mechanism that limits the disk of containers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Quotas,
    Polled,
}

fn see(watched: &[Watching], disk: Disk) -> Seen {
    let free = watched.first().and_then(|first| host_free_bytes(&first.layer));
    if let Some(free) = free.filter(|free| *free < LOW_FREE_BYTES) {
        tracing::warn!(free_mib = free / MIB, "the disk of the host is nearly full");
    }
    let usage = |watching: &Watching| watching.layer.usage(&Most::of_bytes(watching.max_bytes));
    let usages: Vec<Usage> = watched.iter().map(usage).collect();
    let used: HashMap<_, _> =
        watched.iter().zip(&usages).map(|(watching, usage)| (watching.id.clone(), usage.bytes)).collect();
    // A quota also holds for deleted files in flight.
    let look = Arc::new(Look { free: free.filter(|_| disk == Disk::Polled), used });
    let (mut settled, mut offenders) = (Vec::new(), Vec::new());
    for (watching, usage) in watched.iter().zip(&usages) {
        let counted = excess(usage, watching.max_bytes);
        let counted = counted.map(|detail| Loss { evidence: Evidence::OwnLimit, detail });
        let hidden = || {
            let detail = watching.hidden_excess(usage, &look)?;
            Some(Loss { evidence: Evidence::FilesInFlight, detail })
        };
        offenders.extend(counted.or_else(hidden).map(|loss| (watching.id.clone(), loss)));
        if usage.open.in_flight == 0 || watching.settled.is_none() {
            settled.push(watching.id.clone());
        }
    }
    Seen { look, settled, offenders }
}

impl Watching {
    /// Whether files in flight exceed the limit. Programs have descriptors in flight only for a
    /// moment. So two things are needed: descriptors in flight now, and a disk that has lost that
    /// much space.
    fn hidden_excess(&self, usage: &Usage, now: &Look) -> Option<String> {
        let settled = self.settled.as_ref().filter(|_| usage.open.in_flight > 0)?;
        let hidden = now.unexplained_since(settled);
        let exceeds = usage.bytes.saturating_add(hidden) > self.max_bytes;
        exceeds.then(|| {
            let limit = self.max_bytes / MIB;
            format!("disk limit of {limit} MiB exceeded, by {} MiB of files in flight", hidden / MIB)
        })
    }
}

/// The limit of its own that a container exceeds.
fn excess(used: &Usage, max_bytes: u64) -> Option<String> {
    if used.bytes > max_bytes {
        Some(format!("disk limit of {} MiB exceeded", max_bytes / MIB))
    } else if used.files > MAX_FILES {
        Some(format!("disk limit of {MAX_FILES} files exceeded"))
    } else if used.paths > MAX_PATHS {
        Some(format!("disk limit of {} MiB of paths exceeded", MAX_PATHS >> 20))
    } else if used.too_deep {
        Some("folders are nested deeper than they can be removed".to_owned())
    } else {
        pools::excess(&used.open)
    }
}

/// Which disk is full after an ENOSPC in the container. The container's own limit is checked first,
/// since a container may fill a small disk between two looks of the watchdog.
pub(super) async fn why_full(shared: &Shared, id: &ContainerId) -> Option<Loss> {
    let LayerPlace::At(layer) = shared.writable_layer(id.as_str()).await? else { return None };
    let (max_bytes, held_disk) =
        shared.live().get(id).map(|watched| (watched.max_bytes, watched.held_disk))?;
    let look = tokio::task::spawn_blocking(move || {
        let free = host_free_bytes(&layer).filter(|free| *free < FULL_FREE_BYTES);
        let excess = excess(&layer.usage(&Most::of_bytes(max_bytes)), max_bytes);
        let held = match (&excess, free) {
            (None, Some(_)) if !held_disk => layer.held(max_bytes),
            // The container has filled the disk, or may have done so earlier. Or no disk is full.
            (Some(_) | None, Some(_) | None) => Held::Much,
        };
        full_disk(excess, free, held)
    });
    look.await.ok()?
}

/// Which disk is full: the container's own, by `own_excess`, or the host's, which has `free` bytes.
/// If the container may have filled the host's disk itself, the host is not blamed.
fn full_disk(own_excess: Option<String>, free: Option<u64>, held: Held) -> Option<Loss> {
    match (own_excess, free, held) {
        (Some(detail), _, _) => Some(Loss { evidence: Evidence::OwnLimit, detail }),
        (None, Some(free), Held::Little) => {
            Some(Loss { evidence: Evidence::HostDiskFull, detail: format!("{} MiB are free", free / MIB) })
        }
        (None, Some(_) | None, Held::Little | Held::Much | Held::Unknown) => None,
    }
}

/// Free space of the engine's storage. A container's own folder would report the rest of its quota.
fn host_free_bytes(layer: &WritableLayer) -> Option<u64> {
    // The path is STORAGE/ID/diff.
    free_bytes(layer.folders.first()?.ancestors().nth(2)?)
}

pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::super::open_files::OpenFiles;
    use super::*;

    #[test]
    fn a_full_disk_is_the_containers_own_or_the_hosts_or_neither() {
        let check = |excess: Option<&str>, free: Option<u64>, held: Held, expect: Option<Evidence>| {
            let loss = full_disk(excess.map(str::to_owned), free, held);
            assert_eq!(loss.map(|loss| loss.evidence), expect, "{excess:?} {free:?} {held:?}");
        };
        check(None, Some(0), Held::Little, Some(Evidence::HostDiskFull));
        check(None, None, Held::Little, None);
        // The container may have filled the disk itself.
        check(None, Some(0), Held::Much, None);
        check(None, Some(0), Held::Unknown, None);
        // A container that fills the host's disk beyond its own limit is at fault.
        check(Some("disk limit"), Some(0), Held::Much, Some(Evidence::OwnLimit));
        check(Some("disk limit"), None, Held::Much, Some(Evidence::OwnLimit));
    }

    #[test]
    fn the_container_above_its_limit_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let container = |name: &str, bytes: usize, max_bytes: u64| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("deep")).unwrap();
            fs::write(path.join("deep/file"), vec![1; bytes]).unwrap();
            let layer = WritableLayer { folders: vec![path], has_layer: true, files: Vec::new(), pid: 0 };
            Watching { id: ContainerId(name.to_owned()), layer, max_bytes, settled: None }
        };
        let watched = [
            container("small", 10, MIB),
            container("large", 3 << 20, MIB),
            container("allowed", 3 << 20, 8 * MIB),
        ];
        let seen = see(&watched, Disk::Polled);
        let found =
            seen.offenders.iter().map(|(id, loss)| (id.as_str(), loss.evidence, loss.detail.as_str()));
        let expected = [("large", Evidence::OwnLimit, "disk limit of 1 MiB exceeded")];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!((seen.settled.len(), seen.look.used.len()), (3, 3));
    }

    #[test]
    fn files_in_flight_count_as_the_space_that_the_disk_has_lost() {
        const MOST: u64 = 100 * MIB;
        let look = |free: Option<u64>| Look { free: free.map(|mib| mib * MIB), used: HashMap::new() };
        let layer = WritableLayer { folders: Vec::new(), has_layer: true, files: Vec::new(), pid: 0 };
        let check = |settled: Option<Look>, in_flight: u64, now: Option<u64>, expect: Option<&str>| {
            let name = format!("{settled:?} {in_flight} {now:?}");
            let settled = settled.map(Arc::new);
            let (id, layer) = (ContainerId("x".to_owned()), layer.clone());
            let watching = Watching { id, layer, max_bytes: MOST, settled };
            let open = OpenFiles { in_flight, ..OpenFiles::default() };
            let usage = Usage { bytes: 40 * MIB, open, ..Usage::default() };
            assert_eq!(watching.hidden_excess(&usage, &look(now)).as_deref(), expect, "{name}");
        };
        let found = "disk limit of 100 MiB exceeded, by 61 MiB of files in flight";
        check(Some(look(Some(1000))), 1, Some(939), Some(found));
        check(Some(look(Some(1000))), 1, Some(940), None);
        // Others filled the disk.
        check(Some(look(Some(1000))), 0, Some(100), None);
        // This is the first look, or the disk has quotas.
        check(None, 1, Some(100), None);
        check(Some(look(None)), 1, None, None);
    }
}
