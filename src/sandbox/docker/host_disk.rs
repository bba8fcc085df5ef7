//! Notes which containers ran while the host's disk was full. Their programs could not write, and
//! the engine does not report that. Without this note, such a failure would look like the solver's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::sandbox::{ContainerId, Evidence, HostSize, Loss};

use super::watchdog::{self, FULL_FREE_BYTES, Watched};
use super::writable_layer::Held;
use super::{DockerEngine, Shared};

/// Interval between two looks. Each look is one system call. A disk that is full for a shorter time
/// can be missed.
const EVERY: Duration = Duration::from_millis(200);
/// Interval while the disk is full. Each look then counts the files of containers.
const EVERY_WHILE_FULL: Duration = Duration::from_secs(1);
const MIB: u64 = 1024 * 1024;

/// A disk that was full this long ago may have been full when a program wrote. It is longer than
/// the interval between two looks.
const RECENTLY: Duration = Duration::from_millis(1_500);

/// Observations of the disk.
#[derive(Debug, Default)]
pub(super) struct HostDisk {
    /// The engine's folder, once it is known.
    root: Option<PathBuf>,
    /// When the disk was last full, and how many bytes were free.
    full: Option<(Instant, u64)>,
}

impl HostDisk {
    /// Looks at the disk. Returns the free bytes if they are too few.
    fn look(&mut self) -> Option<u64> {
        let free = self.root.as_ref().and_then(|root| watchdog::free_bytes(root));
        let full = free.filter(|free| *free < FULL_FREE_BYTES)?;
        self.full = Some((Instant::now(), full));
        Some(full)
    }

    /// Looks at the disk. Returns the free bytes if they are too few, or were recently.
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

/// Notes the full disk for a container that has used at most half of its own limit. A container
/// that has used more may have filled the disk itself. It could then turn its failure into one of
/// the host, and so could a container whose use cannot be counted.
async fn note(shared: &Shared, id: &ContainerId, free: u64) {
    let unnoted = shared
        .live()
        .get(id)
        .filter(|watched| watched.host_disk_full.is_none() && !watched.held_disk)
        .map(|watched| watched.max_bytes);
    let Some(max_bytes) = unnoted else { return };
    // The container does not exist yet, or the engine does not answer. The next look asks again.
    let Some(layer) = shared.writable_layer(id.as_str()).await else { return };
    // The walk blocks, so it runs in a thread for blocking work.
    let held = tokio::task::spawn_blocking(move || layer.held(max_bytes)).await.unwrap_or(Held::Unknown);
    if held == Held::Unknown {
        tracing::warn!(container = %id, "the disk of the host is full, and it is unknown how much of it a container holds");
    }
    let mut live = shared.live();
    let Some(watched) = live.get_mut(id) else { return };
    watched.note(free, held);
    if let Some(loss) = &watched.host_disk_full {
        tracing::warn!(container = %id, %loss, "disk full");
    }
}

impl Watched {
    /// Notes that only `free` bytes are free while the container holds `held` of the disk.
    fn note(&mut self, free: u64, held: Held) {
        match held {
            Held::Little => {
                let detail = format!("{} MiB were free while the container ran", free / MIB);
                self.host_disk_full = Some(Loss { evidence: Evidence::HostDiskFull, detail });
            }
            // The container may delete its files before the next look.
            Held::Much | Held::Unknown => self.held_disk = true,
        }
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
    /// The memory of the engine's host, and the disk that its containers share.
    pub(in crate::sandbox) async fn host_size(&self) -> Option<HostSize> {
        let info = self.shared.docker.info().await.ok()?;
        let memory_mb = u64::try_from(info.mem_total?).ok()? >> 20;
        let root = info.docker_root_dir.filter(|_| self.shared.is_on_this_host());
        let disk = root.and_then(|root| rustix::fs::statvfs(root.as_str()).ok());
        Some(HostSize { memory_mb, storage_mb: disk.map(|disk| (disk.f_blocks * disk.f_frsize) >> 20) })
    }

    /// Evidence that the host's disk was full while this container ran. The container may have
    /// started after the last look.
    pub(in crate::sandbox) async fn host_disk_full(&self, id: &ContainerId) -> Option<Loss> {
        let full = self.shared.host_disk().look_back();
        if let Some(free) = full {
            note(&self.shared, id, free).await;
        }
        self.shared.live().get(id).and_then(|watched| watched.host_disk_full.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Limits;

    #[test]
    fn a_full_disk_is_the_hosts_only_for_containers_that_hold_little_of_it() {
        let check = |held: Held, evidence: Option<Evidence>, held_disk: bool| {
            let mut watched = Watched::new(&Limits::default());
            watched.note(0, held);
            let noted = watched.host_disk_full.map(|loss| loss.evidence);
            assert_eq!((noted, watched.held_disk), (evidence, held_disk), "{held:?}");
        };
        check(Held::Little, Some(Evidence::HostDiskFull), false);
        check(Held::Much, None, true);
        check(Held::Unknown, None, true);
    }
}
