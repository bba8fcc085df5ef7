//! One container of a Docker engine.

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::sandbox::connection::Closed;
use crate::sandbox::container::{Container, ContainerApi, Pause};
use crate::sandbox::{
    ArchiveError, Change, ContainerId, EngineError, Image, Loss, Pauses, Preload, Sandbox, SandboxError,
    Spooled, StoppedState,
};

use super::{DockerEngine, NAME};

#[derive(Debug)]
pub(super) struct DockerContainer {
    pub(super) engine: DockerEngine,
    pub(super) id: ContainerId,
}

// The operations are methods of the engine. Each is in the file of its theme.
impl ContainerApi for DockerContainer {
    fn engine(&self) -> &'static str {
        NAME
    }

    fn kill(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(self.engine.kill(&self.id))
    }

    fn why_lost(&self, closed: Closed) -> BoxFuture<'_, SandboxError> {
        Box::pin(self.engine.why_lost(&self.id, closed))
    }

    fn why_full(&self) -> BoxFuture<'_, Option<Loss>> {
        Box::pin(self.engine.why_full(&self.id))
    }

    fn runnable_threads(&self) -> BoxFuture<'_, Option<u32>> {
        Box::pin(self.engine.runnable_threads(&self.id))
    }

    fn out_of_memory_kills(&self) -> usize {
        self.engine.out_of_memory_kills(&self.id)
    }

    fn pauses(&self) -> Option<watch::Receiver<Pauses>> {
        self.engine.pauses(&self.id)
    }

    fn host_disk_full(&self) -> BoxFuture<'_, Option<Loss>> {
        Box::pin(self.engine.host_disk_full(&self.id))
    }

    fn upload<'a>(&'a self, preload: &'a Preload) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(self.engine.upload(&self.id, preload))
    }

    fn archive<'a>(&'a self, root: &'a str, max_bytes: u64) -> BoxFuture<'a, Result<Spooled, ArchiveError>> {
        Box::pin(self.engine.archive(&self.id, root, max_bytes))
    }

    fn changes(&self) -> BoxFuture<'_, Result<Vec<Change>, EngineError>> {
        Box::pin(self.engine.changes(&self.id))
    }

    fn commit(&self, pause: Pause) -> BoxFuture<'_, Result<Image, EngineError>> {
        Box::pin(self.engine.commit(&self.id, pause))
    }

    fn restart<'a>(
        &'a self,
        container: Container,
        workdir: &'a str,
    ) -> BoxFuture<'a, Result<Sandbox, EngineError>> {
        Box::pin(self.engine.restart(container, workdir))
    }

    fn state(&self) -> BoxFuture<'_, Result<StoppedState, EngineError>> {
        Box::pin(self.engine.state(&self.id))
    }

    fn remove_later(&self, image: Image) {
        let (shared, id) = (self.engine.shared.clone(), self.id.clone());
        shared.live().remove(&id);
        let removal = async move {
            tracing::debug!(container = %id, "removing a container");
            if let Err(error) = shared.remove(id.as_str()).await {
                tracing::warn!(container = %id, %error, "cannot remove a container");
            }
            // Dropped last: a snapshot cannot be removed before the last container made from it.
            drop(image);
        };
        self.engine.shared.removals.spawn_on(removal, &self.engine.shared.runtime);
    }
}
