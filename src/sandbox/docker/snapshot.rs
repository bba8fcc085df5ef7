//! Snapshots: images of containers' states. A snapshot is never larger than its container's disk
//! limit, and is removed with its last user.

use std::collections::HashMap;

use bollard::models::{ContainerConfig, ContainerInspectResponse, MountPoint};
use bollard::query_parameters::{CommitContainerOptionsBuilder, InspectContainerOptionsBuilder};

use crate::sandbox::container::Pause;
use crate::sandbox::{Change, ContainerId, EngineError, Image};

use super::api::{self, asked_again};
use super::{DockerEngine, OWNER_LABEL, Shared, volumes};

/// The engine's word for a mount that an image declares.
pub(super) const VOLUME: &str = "volume";
/// Repository of snapshots.
pub(super) const SNAPSHOTS: &str = "termsmith/snapshot";
/// Start of names that mean deletions in the archives of layers. A commit reads and writes such
/// archives.
const WHITEOUT: &str = ".wh.";

impl DockerEngine {
    /// Commits a container's state as an image.
    pub(in crate::sandbox) async fn commit(
        &self,
        id: &ContainerId,
        pause: Pause,
    ) -> Result<Image, EngineError> {
        // The container is paused for the checks too. Otherwise a program could change files
        // between the checks and the commit.
        let _paused = match pause {
            Pause::WhileCommitting => Some(self.paused(id).await?),
            Pause::NotNeeded => None,
        };
        let unkept = |change: &Change| change.path.split('/').any(|name| name.starts_with(WHITEOUT));
        if let Some(change) = self.changes(id).await?.into_iter().find(unkept) {
            return Err(EngineError::NotSavable { path: change.path });
        }
        let inspected = self.shared.inspected_with_size(id).await?;
        let size = inspected.size_rw;
        let mut mounts = inspected.mounts.into_iter().flatten().filter(|mount| !volumes::is_ours(mount));
        if let Some(path) = mounts.find_map(volume_at) {
            return Err(EngineError::VolumeNotSavable { path });
        }
        let limit = self.shared.live().get(id).map(|watched| watched.max_bytes);
        check_size(size, limit)?;
        // The guard is created first, since the engine may complete a commit whose request was
        // cancelled.
        let reference = format!("{SNAPSHOTS}:{}", self.shared.new_name());
        let guard = SnapshotGuard { engine: self.clone(), reference: reference.clone() };
        let (repository, tag) = reference.split_once(':').unwrap_or((SNAPSHOTS, ""));
        let options = CommitContainerOptionsBuilder::new()
            .container(id.as_str())
            .repo(repository)
            .tag(tag)
            .pause(pause == Pause::WhileCommitting)
            .build();
        let labels = HashMap::from([(OWNER_LABEL.to_owned(), self.shared.owner.to_string())]);
        let config = ContainerConfig { labels: Some(labels), ..ContainerConfig::default() };
        tracing::debug!(container = %id, reference, "committing a container");
        let committed = self.shared.docker.commit_container(options, config).await;
        committed.map_err(|error| self.shared.error("commit a container", error))?;
        Ok(Image::guarded(reference, guard))
    }

    /// Pauses a container until the returned value is dropped.
    async fn paused(&self, id: &ContainerId) -> Result<PauseGuard, EngineError> {
        // The guard is created first, since the engine may complete a request that was cancelled.
        let mut guard = PauseGuard { engine: self.clone(), id: Some(id.clone()) };
        match self.shared.docker.pause_container(id.as_str()).await {
            Ok(()) => {}
            // The container has ended. Or someone else has paused it, and will resume it.
            Err(error) if api::status(&error) == Some(409) => guard.id = None,
            // E.g. a rootless engine on cgroup v1 cannot pause. Such an engine commits without a
            // pause.
            Err(error) if api::status(&error).is_some() => {
                let error = api::full_message(&error);
                tracing::debug!(container = %id, error, "cannot pause a container for its commit");
            }
            Err(error) => return Err(self.shared.error("pause a container", error)),
        }
        Ok(guard)
    }
}

/// Refuses a state whose image would be larger than the container's disk limit. The engine counts
/// the length of files, e.g. 1 GB for `truncate -s 1G x`, which has no blocks. An image holds all
/// zeros of such a file. A file with several names counts once, and an image holds it once.
fn check_size(bytes: Option<i64>, limit: Option<u64>) -> Result<(), EngineError> {
    // A negative number is a sum that did not fit into the engine's type.
    let bytes = bytes.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
    match (bytes, limit) {
        (Some(bytes), Some(limit)) if bytes > limit => {
            Err(EngineError::StateTooLarge { limit_mib: limit >> 20 })
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// Whether `image` is a container's state, so that a solver's processes may have made it.
pub(super) fn is_snapshot(image: &Image) -> bool {
    image.reference().strip_prefix(SNAPSHOTS).is_some_and(|rest| rest.starts_with(':'))
}

/// The path of a mount, if it is a volume.
fn volume_at(mount: MountPoint) -> Option<String> {
    mount.destination.filter(|_| mount.typ.as_deref() == Some(VOLUME))
}

/// Removes a snapshot with its last user.
pub(super) struct SnapshotGuard {
    pub(super) engine: DockerEngine,
    pub(super) reference: String,
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        let shared = self.engine.shared.clone();
        let reference = std::mem::take(&mut self.reference);
        let removal = async move {
            // A later sweep finds the image by its owner label.
            if let Err(error) = shared.remove_image(&reference).await {
                tracing::warn!(reference, %error, "cannot remove a snapshot");
            }
        };
        self.engine.shared.removals.spawn_on(removal, &self.engine.shared.runtime);
    }
}

/// Resumes a container when it is dropped, also if its commit is cancelled.
struct PauseGuard {
    engine: DockerEngine,
    /// `None` if the container must not be resumed.
    id: Option<ContainerId>,
}

impl Drop for PauseGuard {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let shared = self.engine.shared.clone();
        let resumption = async move {
            if let Err(error) = asked_again(|| shared.docker.unpause_container(id.as_str())).await {
                let error = api::full_message(&error);
                // If the container is lost, the evidence says whether it is still paused.
                tracing::debug!(container = %id, error, "cannot resume a container after its commit");
            }
        };
        self.engine.shared.removals.spawn_on(resumption, &self.engine.shared.runtime);
    }
}

impl Shared {
    /// The engine's description of a container, with the size of its changes to the image.
    async fn inspected_with_size(&self, id: &ContainerId) -> Result<ContainerInspectResponse, EngineError> {
        let options = InspectContainerOptionsBuilder::new().size(true).build();
        let inspect = || self.docker.inspect_container(id.as_str(), Some(options.clone()));
        asked_again(inspect).await.map_err(|error| self.error("inspect a container", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::ImageConfig;

    #[test]
    fn states_larger_than_the_disk_limit_are_refused() {
        let check = |bytes: Option<i64>, limit: Option<u64>, refused: bool| {
            assert_eq!(check_size(bytes, limit).is_err(), refused, "{bytes:?} {limit:?}");
        };
        check(Some(0), Some(100), false);
        check(Some(100), Some(100), false);
        check(Some(101), Some(100), true);
        check(Some(-1), Some(100), true);
        // The engine does not say the size, or nobody watches the container.
        check(None, Some(100), false);
        check(Some(101), None, false);
    }

    #[test]
    fn volumes_are_told_from_other_mounts() {
        let check = |mount: &str, expect: Option<&str>| {
            assert_eq!(volume_at(serde_json::from_str(mount).unwrap()).as_deref(), expect, "{mount}");
        };
        check(r#"{"Type":"volume","Name":"a1","Source":"/x/_data","Destination":"/data"}"#, Some("/data"));
        // The guest's mount is no volume.
        check(r#"{"Type":"bind","Source":"/x","Destination":"/.termsmith/guest"}"#, None);
        check("{}", None);
        let config = ImageConfig { volumes: vec!["/data".to_owned()], ..ImageConfig::default() };
        let refused = config.check_savable().unwrap_err();
        assert!(refused.to_string().ends_with("`VOLUME /data`"), "{refused}");
        assert!(ImageConfig::default().check_savable().is_ok());
    }
}
