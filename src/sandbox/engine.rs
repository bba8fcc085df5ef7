//! The engine trait, and the choice of an engine, made once at the edge of the program.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::docker::DockerEngine;
use super::process::ProcessEngine;
use super::{
    CleanScope, EngineError, HostLoad, HostSize, Image, ImageConfig, ImageError, ImageSpec, LaunchSpec,
    LayerFile, Removed, Sandbox, guest_binary,
};

/// Starts containers. An engine knows nothing about commands, files or time-outs: it starts a container whose main process is the guest
/// and provides the byte stream to it ([`Sandbox::connect`]).
///
/// A new engine is one module that implements this and [`super::ContainerApi`], and one constructor in [`Engine`]. Methods with a default
/// are capabilities that an engine may lack.
pub trait EngineApi: fmt::Debug + Send + Sync + 'static {
    /// Its name, for observation records.
    fn name(&self) -> &'static str;

    /// Whether sandboxes of this engine are isolated from the host.
    fn isolates(&self) -> bool;

    /// What the processors of the sandboxes' host have to do now. `None` where that is not known, as with an engine on another host.
    fn host_load(&self) -> Option<HostLoad> {
        None
    }

    /// The image for `spec`, built if it does not exist.
    fn ensure_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>>;

    /// The image with this name, pulled within `timeout` if the engine does not have it.
    fn pulled<'a>(&'a self, name: &'a str, _timeout: Duration) -> BoxFuture<'a, Result<Image, EngineError>> {
        Box::pin(async move { Ok(Image::named(name)) })
    }

    /// The size of the host of the sandboxes. `None` where that is not known.
    fn host_size(&self) -> BoxFuture<'_, Option<HostSize>> {
        Box::pin(async { None })
    }

    /// Starts a container and waits until its guest has answered.
    fn launch<'a>(&'a self, spec: &'a LaunchSpec<'a>) -> BoxFuture<'a, Result<Sandbox, EngineError>>;

    /// Whether the engine answers.
    fn ping(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }

    /// Waits for pending removals, then removes what this process still owns.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Builds the image for `spec` without a cache; it is removed with the returned value.
    fn rebuild_image<'a>(&'a self, _spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        let error = EngineError::Unsupported { engine: self.name(), action: "rebuild an image" };
        Box::pin(async { Err(error.into()) })
    }

    /// Configuration that containers of `image` inherit.
    fn image_config<'a>(&'a self, _image: &'a Image) -> BoxFuture<'a, Result<ImageConfig, EngineError>> {
        Box::pin(async { Ok(ImageConfig { workdir: "/".to_owned(), ..ImageConfig::default() }) })
    }

    /// Regular files of `image` whose size is one of `sizes`, from every layer, also those that a later one deletes.
    fn layer_files<'a>(
        &'a self,
        _image: &'a Image,
        _sizes: &'a BTreeSet<u64>,
    ) -> BoxFuture<'a, Result<Vec<LayerFile>, EngineError>> {
        let error = EngineError::Unsupported { engine: self.name(), action: "read the layers of an image" };
        Box::pin(async { Err(error) })
    }

    /// Removes containers and snapshots whose owner was a process of this host that has ended. Returns their number.
    fn sweep(&self) -> BoxFuture<'_, Result<usize, EngineError>> {
        Box::pin(async { Ok(0) })
    }

    /// Removes what carries our labels.
    fn remove_all(&self, _scope: CleanScope) -> BoxFuture<'_, Result<Removed, EngineError>> {
        Box::pin(async { Ok(Removed::default()) })
    }
}

/// A container engine. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Engine(Arc<dyn EngineApi>);

impl Engine {
    /// An engine of any kind.
    pub fn new(engine: impl EngineApi) -> Self {
        Self(Arc::new(engine))
    }

    /// The engine that this host offers. At present that is [`Self::docker`].
    pub async fn of_host() -> Result<Self, EngineError> {
        Self::docker().await
    }

    /// Docker or Podman, at `DOCKER_HOST` or at the first usual socket that answers.
    pub async fn docker() -> Result<Self, EngineError> {
        DockerEngine::connect().await.map(Self::new)
    }

    /// The engine at one address (`unix:///…`, `tcp://…`), independent of `DOCKER_HOST`.
    pub async fn docker_at(endpoint: &str) -> Result<Self, EngineError> {
        DockerEngine::connect_to(endpoint.to_owned()).await.map(Self::new)
    }

    /// Runs the guest as a child of this process in a temporary folder. Provides no isolation; for tests.
    pub fn process() -> Self {
        Self::new(ProcessEngine::new())
    }

    /// The static program that an engine starts as the first process of its containers.
    pub fn guest_binary() -> &'static [u8] {
        guest_binary::BYTES
    }

    /// See [`EngineApi::name`].
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// See [`EngineApi::ping`].
    pub async fn ping(&self) -> Result<(), EngineError> {
        self.0.ping().await
    }

    /// See [`EngineApi::isolates`].
    pub fn isolates(&self) -> bool {
        self.0.isolates()
    }

    /// See [`EngineApi::host_load`].
    pub fn host_load(&self) -> Option<HostLoad> {
        self.0.host_load()
    }

    /// The image for `spec`, built if it does not exist. Concurrent requests of tasks and processes build it once.
    pub async fn ensure_image(&self, spec: &ImageSpec<'_>) -> Result<Image, ImageError> {
        self.0.ensure_image(spec).await
    }

    /// See [`EngineApi::pulled`].
    pub async fn pulled(&self, name: &str, timeout: Duration) -> Result<Image, EngineError> {
        self.0.pulled(name, timeout).await
    }

    /// See [`EngineApi::host_size`].
    pub async fn host_size(&self) -> Option<HostSize> {
        self.0.host_size().await
    }

    /// See [`EngineApi::rebuild_image`].
    pub async fn rebuild_image(&self, spec: &ImageSpec<'_>) -> Result<Image, ImageError> {
        self.0.rebuild_image(spec).await
    }

    /// See [`EngineApi::image_config`].
    pub async fn image_config(&self, image: &Image) -> Result<ImageConfig, EngineError> {
        self.0.image_config(image).await
    }

    /// See [`EngineApi::layer_files`].
    pub async fn layer_files(
        &self,
        image: &Image,
        sizes: &BTreeSet<u64>,
    ) -> Result<Vec<LayerFile>, EngineError> {
        self.0.layer_files(image, sizes).await
    }

    /// See [`EngineApi::launch`].
    pub async fn launch(&self, spec: &LaunchSpec<'_>) -> Result<Sandbox, EngineError> {
        self.0.launch(spec).await
    }

    /// See [`EngineApi::sweep`].
    pub async fn sweep(&self) -> Result<usize, EngineError> {
        self.0.sweep().await
    }

    /// See [`EngineApi::remove_all`].
    pub async fn remove_all(&self, scope: CleanScope) -> Result<Removed, EngineError> {
        self.0.remove_all(scope).await
    }

    /// See [`EngineApi::close`]. Call it last.
    pub async fn close(&self) {
        self.0.close().await;
    }
}
