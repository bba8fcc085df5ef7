//! Notes which containers ran while the disk of the host was full. Their programs could not write, and an engine does not report that:
//! without this note the failure of a program would look like the solver's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::sandbox::{ContainerId, Evidence, Loss};

use super::watchdog::{self, FULL_FREE_BYTES, MAX_FILES};
use super::{DockerEngine, Shared};

/// Interval between two looks, each of one system call. A disk that is full for a shorter time can be missed.
const EVERY: Duration = Duration::from_millis(200);
/// Interval while the disk is full, when the files of containers are counted.
const EVERY_WHILE_FULL: Duration = Duration::from_secs(1);
const MIB: u64 = 1024 * 1024;

/// Watches until `stop`.
pub(super) fn start(shared: &Arc<Shared>, stop: CancellationToken) {
    let weak = Arc::downgrade(shared);
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        let mut root = None;
        loop {
            let Some(shared) = weak.upgrade() else { return };
            if root.is_none() {
                root = shared.root_on_this_host().await;
            }
            let free = root.as_ref().and_then(|root| watchdog::free_bytes(root));
            let full = free.filter(|free| *free < FULL_FREE_BYTES);
            if let Some(free) = full {
                note(&shared, free).await;
            }
            drop(shared);
            tokio::time::sleep(if full.is_some() { EVERY_WHILE_FULL } else { EVERY }).await;
        }
    }));
}

/// Notes it for all containers that have used less than half of their own limit. One that has used more may have filled the disk itself,
/// and could turn its failure into one of the host.
async fn note(shared: &Arc<Shared>, free: u64) {
    let unnoted: Vec<(ContainerId, u64)> = shared
        .live()
        .iter()
        .filter(|(_, watched)| watched.host_disk_full.is_none())
        .map(|(id, watched)| (id.clone(), watched.max_bytes))
        .collect();
    for (id, max_bytes) in unnoted {
        let most = max_bytes / 2;
        if let Some(upper) = shared.upper(id.as_str()).await {
            // Walking folders blocks.
            let used = tokio::task::spawn_blocking(move || upper.usage(most, MAX_FILES).bytes).await;
            if used.is_ok_and(|used| used > most) {
                continue;
            }
        }
        if let Some(watched) = shared.live().get_mut(&id) {
            let detail = format!("{} MiB were free while the container ran", free / MIB);
            let loss = Loss { evidence: Evidence::HostDiskFull, detail };
            tracing::warn!(container = %id, %loss, "disk full");
            watched.host_disk_full = Some(loss);
        }
    }
}

impl Shared {
    /// The engine's folder. `None` if the engine is remote or does not answer.
    pub(super) async fn root_on_this_host(&self) -> Option<PathBuf> {
        if !self.endpoint.starts_with("unix://") {
            return None;
        }
        self.docker.info().await.ok()?.docker_root_dir.map(PathBuf::from)
    }
}

impl DockerEngine {
    /// What was noted about the disk of the host while this container ran.
    pub(in crate::sandbox) fn host_disk_full(&self, id: &ContainerId) -> Option<Loss> {
        self.shared.live().get(id).and_then(|watched| watched.host_disk_full.clone())
    }
}
