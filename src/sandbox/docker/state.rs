//! What the engine knows of one container: its state, files and differences.

use bollard::models::ChangeType;
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder, KillContainerOptionsBuilder,
    WaitContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use std::time::Duration;

use crate::sandbox::{
    ArchiveError, Change, ChangeKind, ContainerId, EngineError, Evidence, Loss, SandboxError, StoppedState,
};

use super::launch::GUEST_FOLDER;
use super::{DockerEngine, Shared, api};

/// The stream ends a moment before the engine has noted the exit. Longer than that, the container still runs.
const EXIT_NOTED: Duration = Duration::from_secs(5);
/// Exit status of a process that was killed.
const KILLED: i64 = 128 + 9;

impl Shared {
    pub(super) async fn kill(&self, name: &str) -> Result<(), EngineError> {
        // Never a stop: process 1 ignores SIGTERM, and nobody waits ten seconds for that.
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        match self.docker.kill_container(name, Some(options)).await {
            Ok(()) => Ok(()),
            Err(error) if api::status(&error) == Some(409) => Ok(()),
            Err(error) => Err(self.error("kill a container", error)),
        }
    }

    /// Whether the engine can look up anything at all in a container.
    async fn can_read(&self, id: &ContainerId) -> bool {
        let options = ContainerArchiveInfoOptionsBuilder::new().path("/").build();
        self.docker.get_container_archive_info(id.as_str(), Some(options)).await.is_ok()
    }
}

impl DockerEngine {
    /// Ends every process now. A container that has ended already is no error.
    pub(in crate::sandbox) async fn kill(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.shared.kill(id.as_str()).await
    }

    /// How the container ended.
    pub(in crate::sandbox) async fn state(&self, id: &ContainerId) -> Result<StoppedState, EngineError> {
        let inspected = self.shared.docker.inspect_container(id.as_str(), None).await;
        let inspected = inspected.map_err(|error| self.shared.error("inspect a container", error))?;
        let state = inspected.state.unwrap_or_default();
        Ok(StoppedState {
            exit_code: state.exit_code.unwrap_or_default(),
            oom_killed: state.oom_killed.unwrap_or_default(),
        })
    }

    /// Waits until the engine has noted the end of a container that was killed.
    pub(super) async fn ended(&self, id: &ContainerId) -> Result<(), EngineError> {
        let options = WaitContainerOptionsBuilder::new().condition("not-running").build();
        let mut exit = Box::pin(self.shared.docker.wait_container(id.as_str(), Some(options)));
        match tokio::time::timeout(EXIT_NOTED, exit.next()).await {
            // A status other than 0 comes as an error of its own.
            Ok(None | Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. }))) => Ok(()),
            Ok(Some(Err(error))) => Err(self.shared.error("wait for a container", error)),
            Err(_) => Err(EngineError::Transport {
                action: "wait for a container",
                message: format!("killed, but not gone after {} s", EXIT_NOTED.as_secs()),
            }),
        }
    }

    /// The connection has ended with `wire`. An engine that answers makes it the sandbox's fault.
    pub(in crate::sandbox) async fn why_lost(&self, id: &ContainerId, wire: String) -> SandboxError {
        let options = WaitContainerOptionsBuilder::new().condition("not-running").build();
        let mut exit = Box::pin(self.shared.docker.wait_container(id.as_str(), Some(options)));
        let noted = tokio::time::timeout(EXIT_NOTED, exit.next()).await;
        let state = match self.state(id).await {
            Ok(state) => state,
            Err(error) => return SandboxError::Engine(error),
        };
        let watchdog = self.shared.live().get(id).and_then(|watched| watched.killed.clone());
        let (evidence, detail) = match (watchdog, noted) {
            (Some(cause), _) => (Evidence::DiskLimit, cause),
            (None, Err(_)) => (Evidence::StreamBroken, wire),
            (None, Ok(_)) if state.oom_killed && state.exit_code == KILLED => (Evidence::OutOfMemory, wire),
            (None, Ok(_)) if state.exit_code == KILLED => (Evidence::KilledFromOutside, wire),
            (None, Ok(_)) => (Evidence::Unexplained, format!("status {}; {wire}", state.exit_code)),
        };
        SandboxError::Lost(Loss { evidence, detail })
    }

    /// The archive of one folder, bounded while it arrives.
    pub(in crate::sandbox) async fn archive(
        &self,
        id: &ContainerId,
        root: &str,
        max_bytes: u64,
    ) -> Result<Vec<u8>, ArchiveError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(root).build();
        let mut pieces = Box::pin(self.shared.docker.download_from_container(id.as_str(), Some(options)));
        let mut tar = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = match piece.map_err(|error| self.shared.error("fetch files", error)) {
                Ok(piece) => piece,
                Err(EngineError::Refused { status: 404, .. }) => {
                    return Err(ArchiveError::Missing { root: root.to_owned() });
                }
                // To a loop of links on the way the engine says the same 500 as to trouble of its own.
                Err(EngineError::Refused { .. }) if self.shared.can_read(id).await => {
                    return Err(ArchiveError::Unreadable { root: root.to_owned() });
                }
                Err(error) => return Err(error.into()),
            };
            if tar.len() as u64 + piece.len() as u64 > max_bytes {
                return Err(ArchiveError::TooLarge { root: root.to_owned(), max: max_bytes });
            }
            tar.extend_from_slice(&piece);
        }
        Ok(tar)
    }

    /// What differs from the image.
    pub(in crate::sandbox) async fn changes(&self, id: &ContainerId) -> Result<Vec<Change>, EngineError> {
        let changes = self.shared.docker.container_changes(id.as_str()).await;
        let changes = changes.map_err(|error| self.shared.error("list changes", error))?.unwrap_or_default();
        let kind = |kind| match kind {
            ChangeType::_0 => ChangeKind::Modified,
            ChangeType::_1 => ChangeKind::Added,
            ChangeType::_2 => ChangeKind::Deleted,
        };
        let ours = |path: &str| {
            path.strip_prefix(GUEST_FOLDER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let changes = changes.into_iter().filter(|change| !ours(&change.path));
        Ok(changes.map(|change| Change { path: change.path, kind: kind(change.kind) }).collect())
    }
}
