//! One running or stopped container. It is removed with its last user.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::clock::Pauses;
use super::connection::Closed;
use super::{
    ArchiveError, Change, EngineError, Image, Loss, Preload, Sandbox, SandboxError, Spooled, StoppedState,
};

/// The engine's name for a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerId(pub(super) String);

impl ContainerId {
    /// A name that is unique among containers.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One container, as its engine handles it. Methods with a default are capabilities that an engine
/// may lack.
pub trait ContainerApi: fmt::Debug + Send + Sync + 'static {
    /// Name of the engine, for errors.
    fn engine(&self) -> &'static str;

    /// Whether the guest must be ended by closing its stream before [`ContainerApi::kill`].
    fn ends_with_stream(&self) -> bool {
        false
    }

    /// Kills every process in the container at once. A container that has ended is no error.
    fn kill(&self) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Collects evidence about the end of a sandbox that the host observed as `closed`.
    fn why_lost(&self, closed: Closed) -> BoxFuture<'_, SandboxError>;

    /// A write failed with ENOSPC. Returns the container's own limit or the host's disk, if one of
    /// them explains it.
    fn why_full(&self) -> BoxFuture<'_, Option<Loss>> {
        Box::pin(async { None })
    }

    /// Evidence that the host's disk was full while the container ran, so that its programs could
    /// not write.
    fn host_disk_full(&self) -> BoxFuture<'_, Option<Loss>> {
        Box::pin(async { None })
    }

    /// The container's threads that run or could run now. `None` if that is not known.
    fn runnable_threads(&self) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async { None })
    }

    /// The container's pauses, now and later. `None` if the engine does not report pauses.
    fn pauses(&self) -> Option<watch::Receiver<Pauses>> {
        None
    }

    /// How often the kernel killed one of its processes for lack of memory, as far as that is
    /// known.
    fn out_of_memory_kills(&self) -> usize {
        0
    }

    /// One folder or file of the stopped container, with everything below it, as tar bytes.
    fn archive<'a>(&'a self, root: &'a str, max_bytes: u64) -> BoxFuture<'a, Result<Spooled, ArchiveError>>;

    /// Unpacks an archive of any size into the folder `preload.dest`. Processes of the container
    /// may run meanwhile.
    fn upload<'a>(&'a self, _preload: &'a Preload) -> BoxFuture<'a, Result<(), EngineError>> {
        unsupported(self.engine(), "upload an archive")
    }

    /// Differences from its image.
    fn changes(&self) -> BoxFuture<'_, Result<Vec<Change>, EngineError>> {
        unsupported(self.engine(), "list changes")
    }

    /// Commits the container's files as an image.
    fn commit(&self, _pause: Pause) -> BoxFuture<'_, Result<Image, EngineError>> {
        unsupported(self.engine(), "commit a container")
    }

    /// Starts the container again. `container` is the owner of this value.
    fn restart<'a>(
        &'a self,
        _container: Container,
        _workdir: &'a str,
    ) -> BoxFuture<'a, Result<Sandbox, EngineError>> {
        unsupported(self.engine(), "restart a container")
    }

    /// Exit state of its main process.
    fn state(&self) -> BoxFuture<'_, Result<StoppedState, EngineError>> {
        unsupported(self.engine(), "inspect a container")
    }

    /// Kills and removes the container in the background. Then drops `image`.
    fn remove_later(&self, image: Image);
}

/// Whether a container is paused while its state is committed. A running one must be paused, so
/// that no file is half written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    NotNeeded,
    WhileCommitting,
}

fn unsupported<'a, T: Send + 'a>(
    engine: &'static str,
    action: &'static str,
) -> BoxFuture<'a, Result<T, EngineError>> {
    Box::pin(async move { Err(EngineError::Unsupported { engine, action }) })
}

/// A container that must be removed. Dropping this value schedules the removal.
#[derive(Debug)]
pub struct Container {
    pub(super) id: ContainerId,
    pub(super) handle: Arc<dyn ContainerApi>,
    /// The container's image. A snapshot must outlive its container.
    image: Image,
}

impl Container {
    /// A container of `image`. `handle` removes it when this value is dropped.
    pub fn new(id: ContainerId, handle: impl ContainerApi, image: Image) -> Self {
        Self { id, handle: Arc::new(handle), image }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.handle.remove_later(self.image.clone());
    }
}
