//! A container without processes. Its files are data.

use super::container::{Container, Pause};
use super::{ArchiveError, ContainerId, EngineError, Image, Sandbox, Spooled};

/// A stopped container. Dropping it removes it.
#[derive(Debug)]
pub struct Stopped {
    container: Container,
}

/// Uncompressed tar bytes of one folder. They come from an untrusted container, and nobody has
/// checked them.
#[derive(Clone, Debug)]
pub struct Archive {
    /// Paths of entries begin with the last component of the folder, as the engine writes them.
    pub tar: Spooled,
}

/// One difference between a container and its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Absolute path.
    pub path: String,
    pub kind: ChangeKind,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// How a container's main process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedState {
    /// Exit status. 137 after [`super::Sandbox::stop`].
    pub exit_code: i64,
    /// The kernel's OOM killer killed one of its processes.
    pub oom_killed: bool,
}

impl Stopped {
    pub(super) fn new(container: Container) -> Self {
        Self { container }
    }

    /// The engine's name for the container.
    pub fn id(&self) -> &ContainerId {
        &self.container.id
    }

    /// One folder or file with everything below it. Links are archived as links, also in the last
    /// component of `root`.
    pub async fn archive(&self, root: &str, max_bytes: u64) -> Result<Archive, ArchiveError> {
        let tar = self.container.handle.archive(root, max_bytes).await?;
        Ok(Archive { tar })
    }

    /// Differences from the image, with deletions. The guest's own mount point is left out.
    pub async fn changes(&self) -> Result<Vec<Change>, EngineError> {
        self.container.handle.changes().await
    }

    /// Commits the state as an image. The image lives as long as the returned value and its clones.
    pub async fn commit(&self) -> Result<Image, EngineError> {
        self.container.handle.commit(Pause::NotNeeded).await
    }

    /// Starts the container again, with the same files, limits and isolation, and without
    /// processes. File systems that the engine mounts, e.g. `/dev/shm`, are empty. A new container
    /// of the committed state would be the same, and takes twice as long.
    pub async fn restart(self, workdir: &str) -> Result<Sandbox, EngineError> {
        let handle = self.container.handle.clone();
        handle.restart(self.container, workdir).await
    }

    /// How the container ended.
    pub async fn state(&self) -> Result<StoppedState, EngineError> {
        self.container.handle.state().await
    }

    /// Removes the container in the background. Dropping it does the same.
    pub async fn destroy(self) {}
}
