//! The engine trait, and the row of an engine in the registry.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{
    CleanScope, Diagnosis, EngineError, Host, HostLoad, HostSize, Image, ImageConfig, ImageError, ImageSpec,
    KeptLayer, LaunchSpec, Layer, LayerFile, LayerId, LayerState, Removed, Sandbox,
};

/// Starts containers. An engine knows nothing about commands, files or time-outs. It starts a
/// container whose main process is the guest, and provides the byte stream to it
/// ([`Sandbox::connect`]).
///
/// A new engine is one module that implements this trait and [`super::ContainerApi`], and one row
/// in [`super::ENGINES`]. Methods with a default are capabilities that an engine may lack.
pub trait EngineApi: fmt::Debug + Send + Sync + 'static {
    /// The engine's name, for records of observations.
    fn name(&self) -> &'static str;

    /// Whether sandboxes of this engine are isolated from the host.
    fn isolates(&self) -> bool;

    /// The present load of the host's processors. `None` if it is not known, e.g. on another host.
    fn host_load(&self) -> Option<HostLoad> {
        None
    }

    /// The image for `spec`. It is built if it does not exist. Tasks and processes that ask at the
    /// same time build it once.
    fn ensure_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>>;

    /// The image with this name. If the engine does not have it, it is pulled within `timeout`.
    fn pulled<'a>(&'a self, name: &'a str, _timeout: Duration) -> BoxFuture<'a, Result<Image, EngineError>> {
        Box::pin(async move { Ok(Image::named(name)) })
    }

    /// The size of the sandboxes' host. `None` if it is not known.
    fn host_size(&self) -> BoxFuture<'_, Option<HostSize>> {
        Box::pin(async { None })
    }

    /// Starts a container, and waits until its guest has answered.
    fn launch<'a>(&'a self, spec: &'a LaunchSpec<'a>) -> BoxFuture<'a, Result<Sandbox, EngineError>>;

    /// Whether the engine answers.
    fn ping(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }

    /// Waits for pending removals, and removes everything that this process still owns. Call it
    /// last.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Builds the image for `spec` without a cache. The image is removed with the returned value.
    fn rebuild_image<'a>(&'a self, _spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        let error = EngineError::Unsupported { engine: self.name(), action: "rebuild an image" };
        Box::pin(async { Err(error.into()) })
    }

    /// Configuration that containers of `image` inherit.
    fn image_config<'a>(&'a self, _image: &'a Image) -> BoxFuture<'a, Result<ImageConfig, EngineError>> {
        Box::pin(async { Ok(ImageConfig { workdir: "/".to_owned(), ..ImageConfig::default() }) })
    }

    /// Regular files of `image` with one of the `sizes`. Every layer is searched, so files that a
    /// later layer deletes are found.
    fn layer_files<'a>(
        &'a self,
        _image: &'a Image,
        _sizes: &'a BTreeSet<u64>,
    ) -> BoxFuture<'a, Result<Vec<LayerFile>, EngineError>> {
        let error = EngineError::Unsupported { engine: self.name(), action: "read the layers of an image" };
        Box::pin(async { Err(error) })
    }

    /// Keeps a layer, for containers with [`LaunchSpec::layer`]. One that is whole is not filled
    /// again.
    fn keep_layer<'a>(&'a self, _layer: &'a Layer) -> BoxFuture<'a, Result<(), EngineError>> {
        let error = EngineError::Unsupported { engine: self.name(), action: "keep the layer of an agent" };
        Box::pin(async { Err(error) })
    }

    /// What the engine has of a layer.
    fn layer_state<'a>(&'a self, _layer: &'a LayerId) -> BoxFuture<'a, Result<LayerState, EngineError>> {
        Box::pin(async { Ok(LayerState::Missing) })
    }

    /// The layers that the engine keeps, whole or not, in the order of their titles.
    fn kept_layers(&self) -> BoxFuture<'_, Result<Vec<KeptLayer>, EngineError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Removes containers and snapshots of processes of this host that have ended. Returns their
    /// number.
    fn sweep(&self) -> BoxFuture<'_, Result<usize, EngineError>> {
        Box::pin(async { Ok(0) })
    }

    /// Removes the objects that have our labels.
    fn remove_all(&self, _scope: CleanScope) -> BoxFuture<'_, Result<Removed, EngineError>> {
        Box::pin(async { Ok(Removed::default()) })
    }
}

/// A container engine of any kind. Cheap to clone; clones share everything.
pub type Engine = Arc<dyn EngineApi>;

/// The declaration of an engine: its name, its help, and how it is reached. Each engine that a
/// command can use has one row in [`super::ENGINES`].
#[derive(Clone, Copy, Debug)]
pub struct EngineEntry {
    /// The value of `--engine`. It is also the engine's [`EngineApi::name`].
    pub name: &'static str,
    /// One line of help.
    pub description: &'static str,
    pub connect: ConnectEngine,
    pub diagnose: DiagnoseEngine,
    /// A shell script that provides what a diagnosis finds missing. Its argument is
    /// [`super::Finding::part`], or `clock` for libfaketime.
    pub fix_script: Option<&'static str>,
}

/// Connects to the engine at an address. Without an address it looks where hosts usually have the
/// engine.
pub type ConnectEngine = fn(Option<String>) -> BoxFuture<'static, Result<Engine, EngineError>>;

/// Inspects a host's engine, even if the engine does not answer. Changes nothing.
pub type DiagnoseEngine = for<'a> fn(&'a Host) -> BoxFuture<'a, Diagnosis>;

impl EngineEntry {
    /// The engine of this host.
    pub async fn connect(&self) -> Result<Engine, EngineError> {
        (self.connect)(None).await
    }

    /// The engine at one address, e.g. `unix:///run/docker.sock`. The environment is not read.
    pub async fn connect_at(&self, address: impl Into<String>) -> Result<Engine, EngineError> {
        (self.connect)(Some(address.into())).await
    }

    /// The state of this engine on `host`.
    pub async fn diagnose(&self, host: &Host) -> Diagnosis {
        (self.diagnose)(host).await
    }
}
