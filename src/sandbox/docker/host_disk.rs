//! Notes which containers ran while the disk of the host was full. Their programs could not write, and an engine does not report that:
//! without this note the failure of a program would look like the solver's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::sandbox::{ContainerId, Evidence, Loss};

use super::watchdog::{self, FULL_FREE_BYTES, MAX_FILES};
use super::{DockerEngine, Shared};

/// Interval between two looks, each of one system call. A disk that is full for a shorter time can be missed.
const EVERY: Duration = Duration::from_millis(200);
/// Interval while the disk is full, when the files of containers are counted.
const EVERY_WHILE_FULL: Duration = Duration::from_secs(1);
const MIB: u64 = 1024 * 1024;

/// A disk that was full so long ago may have been full when a program wrote: longer than between two looks.
const RECENTLY: Duration = Duration::from_millis(1_500);

/// What was seen of the disk.
#[derive(Debug, Default)]
pub(super) struct HostDisk {
    /// The engine's folder, once it is known.
    root: Option<PathBuf>,
    /// When the disk was full last, and the bytes that were free.
    full: Option<(Instant, u64)>,
}

impl HostDisk {
    /// Looks. The bytes that are free, if these are too few.
    fn look(&mut self) -> Option<u64> {
        let free = self.root.as_ref().and_then(|root| watchdog::free_bytes(root));
        let full = free.filter(|free| *free < FULL_FREE_BYTES)?;
        self.full = Some((Instant::now(), full));
        Some(full)
    }

    /// Looks. The bytes that are free, or were recently, if these are too few.
    fn look_back(&mut self) -> Option<u64> {
        self.look();
        self.full.filter(|(at, _)| at.elapsed() < RECENTLY).map(|(_, free)| free)
    }
}

/// Watches until `stop`.
pub(super) fn start(shared: &Arc<Shared>, stop: CancellationToken) {
    let weak = Arc::downgrade(shared);
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            let Some(shared) = weak.upgrade() else { return };
            if shared.host_disk().root.is_none() {
                let root = shared.root_on_this_host().await;
                shared.host_disk().root = root;
            }
            let full = shared.host_disk().look();
            if let Some(free) = full {
                let ids: Vec<_> = shared.live().keys().cloned().collect();
                for id in ids {
                    note(&shared, &id, free).await;
                }
            }
            drop(shared);
            tokio::time::sleep(if full.is_some() { EVERY_WHILE_FULL } else { EVERY }).await;
        }
    }));
}

/// Notes it for a container that has used less than half of its own limit. One that has used more may have filled the disk itself, and
/// could turn its failure into one of the host.
async fn note(shared: &Shared, id: &ContainerId, free: u64) {
    let unnoted = shared
        .live()
        .get(id)
        .filter(|watched| watched.host_disk_full.is_none() && !watched.held_disk)
        .map(|watched| watched.max_bytes);
    let Some(max_bytes) = unnoted else { return };
    let most = max_bytes / 2;
    if let Some(upper) = shared.upper(id.as_str()).await {
        // Walking folders blocks.
        let used = tokio::task::spawn_blocking(move || upper.usage(most, MAX_FILES).bytes).await;
        if used.is_ok_and(|used| used > most) {
            // It may delete its files before the next look.
            if let Some(watched) = shared.live().get_mut(id) {
                watched.held_disk = true;
            }
            return;
        }
    }
    if let Some(watched) = shared.live().get_mut(id) {
        let detail = format!("{} MiB were free while the container ran", free / MIB);
        let loss = Loss { evidence: Evidence::HostDiskFull, detail };
        tracing::warn!(container = %id, %loss, "disk full");
        watched.host_disk_full = Some(loss);
    }
}

impl Shared {
    /// Whether the containers run on this host.
    pub(super) fn is_on_this_host(&self) -> bool {
        self.endpoint.starts_with("unix://")
    }

    /// The engine's folder. `None` if the engine is remote or does not answer.
    pub(super) async fn root_on_this_host(&self) -> Option<PathBuf> {
        if !self.is_on_this_host() {
            return None;
        }
        self.docker.info().await.ok()?.docker_root_dir.map(PathBuf::from)
    }
}

impl DockerEngine {
    /// What is known about the disk of the host while this container ran, which may have begun after the last look.
    pub(in crate::sandbox) async fn host_disk_full(&self, id: &ContainerId) -> Option<Loss> {
        let full = self.shared.host_disk().look_back();
        if let Some(free) = full {
            note(&self.shared, id, free).await;
        }
        self.shared.live().get(id).and_then(|watched| watched.host_disk_full.clone())
    }
}
