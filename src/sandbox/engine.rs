//! The choice of engine, made once at the edge.

use super::docker::DockerEngine;
use super::process::ProcessEngine;
use super::{
    CleanScope, EngineError, Image, ImageConfig, ImageError, ImageSpec, LaunchSpec, LayerFile, Removed,
    Sandbox,
};

/// Where sandboxes live. Cheap to clone; clones share everything.
///
/// An engine knows nothing about commands, files or time-outs: it starts a container whose main process is the guest and
/// hands over the byte stream to it.
#[derive(Clone, Debug)]
pub enum Engine {
    Docker(DockerEngine),
    Process(ProcessEngine),
}

impl Engine {
    /// Docker or Podman, at `DOCKER_HOST` or at the first usual socket that is there.
    pub async fn docker() -> Result<Self, EngineError> {
        DockerEngine::connect().await.map(Self::Docker)
    }

    /// The engine at one address (`unix:///…`, `tcp://…`), wherever `DOCKER_HOST` points.
    pub async fn docker_at(endpoint: &str) -> Result<Self, EngineError> {
        DockerEngine::connect_to(endpoint.to_owned()).await.map(Self::Docker)
    }

    /// The guest as a child of this process in a temporary folder. It isolates nothing and is for tests.
    pub fn process() -> Self {
        Self::Process(ProcessEngine::new())
    }

    /// Its name, for records of what was observed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Docker(_) => "docker",
            Self::Process(_) => "process",
        }
    }

    /// Whether the engine answers.
    pub async fn ping(&self) -> Result<(), EngineError> {
        match self {
            Self::Docker(docker) => docker.ping().await,
            Self::Process(_) => Ok(()),
        }
    }

    /// Whether code in a sandbox of this engine is kept from the host.
    pub fn isolates(&self) -> bool {
        matches!(self, Self::Docker(_))
    }

    /// The image for `spec`, built unless it is there. However many tasks and processes ask, it is built once.
    pub async fn ensure_image(&self, spec: &ImageSpec<'_>) -> Result<Image, ImageError> {
        match self {
            Self::Docker(docker) => docker.ensure_image(spec).await,
            Self::Process(process) => Ok(process.image(spec)),
        }
    }

    /// The image for `spec`, built once more from nothing; it goes with the returned value.
    pub async fn rebuild_image(&self, spec: &ImageSpec<'_>) -> Result<Image, ImageError> {
        match self {
            Self::Docker(docker) => docker.rebuild_image(spec).await,
            Self::Process(_) => {
                Err(EngineError::Unsupported { engine: "process", action: "rebuild an image" }.into())
            }
        }
    }

    /// What containers of `image` start with.
    pub async fn image_config(&self, image: &Image) -> Result<ImageConfig, EngineError> {
        match self {
            Self::Docker(docker) => docker.image_config(image).await,
            Self::Process(_) => Ok(ImageConfig { env: Vec::new(), workdir: "/".to_owned() }),
        }
    }

    /// Regular files of `image` whose size is one of `sizes`, from every layer, also those that a later one deletes.
    pub async fn layer_files(
        &self,
        image: &Image,
        sizes: &std::collections::BTreeSet<u64>,
    ) -> Result<Vec<LayerFile>, EngineError> {
        match self {
            Self::Docker(docker) => docker.layer_files(image, sizes).await,
            Self::Process(_) => {
                Err(EngineError::Unsupported { engine: "process", action: "read an image's layers" })
            }
        }
    }

    /// Starts a container and waits until its guest has said hello.
    pub async fn launch(&self, spec: &LaunchSpec<'_>) -> Result<Sandbox, EngineError> {
        match self {
            Self::Docker(docker) => docker.launch(spec).await,
            Self::Process(process) => process.launch(spec).await,
        }
    }

    /// Removes containers and snapshots whose owner was a process of this host that lives no more. Returns how many.
    pub async fn sweep(&self) -> Result<usize, EngineError> {
        match self {
            Self::Docker(docker) => docker.sweep().await,
            Self::Process(_) => Ok(0),
        }
    }

    /// Removes what carries our labels.
    pub async fn remove_all(&self, scope: CleanScope) -> Result<Removed, EngineError> {
        match self {
            Self::Docker(docker) => docker.remove_all(scope).await,
            Self::Process(_) => Ok(Removed::default()),
        }
    }

    /// Waits for removals under way, then removes what this process still owns. Call it last.
    pub async fn close(&self) {
        match self {
            Self::Docker(docker) => docker.close().await,
            Self::Process(process) => process.close().await,
        }
    }
}
