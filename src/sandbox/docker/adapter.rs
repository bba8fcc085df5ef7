//! Implements the engine traits for Docker.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::sandbox::connection::Closed;
use crate::sandbox::container::{Container, ContainerApi, Pause};
use crate::sandbox::engine::EngineApi;
use crate::sandbox::{
    ArchiveError, Change, CleanScope, ContainerId, EngineError, HostLoad, HostSize, Image, ImageConfig,
    ImageError, ImageSpec, LaunchSpec, LayerFile, Loss, Pauses, Preload, Removed, Sandbox, SandboxError,
    Spooled, StoppedState,
};

use super::DockerEngine;

const NAME: &str = "docker";

/// One container of a Docker engine.
#[derive(Debug)]
pub(super) struct DockerContainer {
    pub(super) engine: DockerEngine,
    pub(super) id: ContainerId,
}

// Each method calls the inherent method of the same name.
impl EngineApi for DockerEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn isolates(&self) -> bool {
        true
    }

    fn host_load(&self) -> Option<HostLoad> {
        self.shared.host_load()
    }

    fn ensure_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        Box::pin(self.ensure_image(spec))
    }

    fn pulled<'a>(&'a self, name: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Image, EngineError>> {
        Box::pin(self.pulled(name, timeout))
    }

    fn host_size(&self) -> BoxFuture<'_, Option<HostSize>> {
        Box::pin(self.host_size())
    }

    fn launch<'a>(&'a self, spec: &'a LaunchSpec<'a>) -> BoxFuture<'a, Result<Sandbox, EngineError>> {
        Box::pin(self.launch(spec))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(self.ping())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    fn rebuild_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        Box::pin(self.rebuild_image(spec))
    }

    fn image_config<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<ImageConfig, EngineError>> {
        Box::pin(self.image_config(image))
    }

    fn layer_files<'a>(
        &'a self,
        image: &'a Image,
        sizes: &'a BTreeSet<u64>,
    ) -> BoxFuture<'a, Result<Vec<LayerFile>, EngineError>> {
        Box::pin(self.layer_files(image, sizes))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<usize, EngineError>> {
        Box::pin(self.sweep())
    }

    fn remove_all(&self, scope: CleanScope) -> BoxFuture<'_, Result<Removed, EngineError>> {
        Box::pin(self.remove_all(scope))
    }
}

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
        self.engine.remove_later(&self.id, image);
    }
}
