//! Docker and Podman, over the Docker API.

mod account_files;
mod api;
mod archive;
mod build_control;
mod build_disk;
mod container;
mod diagnosis;
mod discovery;
mod events;
mod evidence;
mod host_cpu;
mod host_disk;
mod image;
mod in_flight;
mod kernel_log;
mod launch;
mod layers;
mod open_files;
mod own_guest;
mod pauses;
mod pools;
mod pull;
mod quota;
mod snapshot;
mod state;
mod sweep;
mod tcp;
mod terminals;
mod volumes;
mod watchdog;
mod writable_layer;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::guest_binary;
use super::owner::Owner;
use super::{
    CleanScope, ContainerId, Engine, EngineApi, EngineEntry, EngineError, HostLoad, HostSize, Image,
    ImageConfig, ImageError, ImageSpec, KeptLayer, LaunchSpec, Layer, LayerFile, LayerId, LayerState,
    Removed, Sandbox,
};

use discovery::Environment;
use host_disk::HostDisk;
use watchdog::Watched;

/// The engine's row in the registry.
pub(super) const ENTRY: EngineEntry = EngineEntry {
    name: NAME,
    description: "Docker or Podman, at DOCKER_HOST or at the first usual socket that answers",
    connect: |address| Box::pin(connect(address)),
    diagnose: |host| Box::pin(diagnosis::diagnose(host)),
    fix_script: Some(diagnosis::FIX_SCRIPT),
};

const NAME: &str = "docker";

/// Label with the owner of a container or snapshot.
const OWNER_LABEL: &str = "termsmith.owner";
/// Label with the purpose of a container.
const PURPOSE_LABEL: &str = "termsmith.purpose";
/// Label of a task's image, with the digest that the image was built for.
const TASK_LABEL: &str = "termsmith.task";

/// API of Docker 20.10 and Podman 4, the oldest tested versions.
const OLDEST_API: (usize, usize) = (1, 41);
/// Bollard's limit on the time until an answer begins. Commits of large containers take minutes.
const API_TIMEOUT_SECS: u64 = 300;
/// Interval between sweeps. Other processes may crash at any time, and a cancelled create can
/// complete after a sweep.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Hint if no engine answers.
const UNREACHABLE_HINT: &str =
    "start Docker or Podman, or set `DOCKER_HOST`; `termsmith doctor --fix` can install one";

/// A connection to one engine. Cheap to clone. Clones share everything.
#[derive(Clone)]
pub(super) struct DockerEngine {
    shared: Arc<Shared>,
}

impl fmt::Debug for DockerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DockerEngine").field(&self.shared.endpoint).finish()
    }
}

struct Shared {
    docker: Docker,
    endpoint: String,
    owner: Owner,
    /// The runtime for removals that `Drop` schedules.
    runtime: Handle,
    removals: TaskTracker,
    /// One lock for each image that this process is building.
    builds: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    cache: PathBuf,
    /// The guest binary on this host.
    guest: PathBuf,
    /// Whether the guest must be uploaded, because the engine cannot see files of this host. The
    /// engine is remote, or this process runs in one of its containers.
    guest_is_uploaded: AtomicBool,
    /// Whether the engine's storage may limit a container's disk itself. False from its first
    /// refusal on.
    has_quotas: AtomicBool,
    /// Whether the user was warned that the disk of containers is not limited.
    warned_of_layers: AtomicBool,
    /// Whether the engine can limit a container's pseudo-terminals.
    limits_terminals: bool,
    /// Processors of the engine's host. 0 if the engine does not say.
    processors: usize,
    /// Start of the names of all objects that this value creates. Another value of this process
    /// must not remove them.
    prefix: String,
    launched: AtomicU64,
    /// Names of containers in use.
    live: Mutex<HashMap<ContainerId, Watched>>,
    host_disk: Mutex<HostDisk>,
    /// Ends the sweeper and the watchdog with the last clone.
    _background: DropGuard,
}

async fn connect(address: Option<String>) -> Result<Engine, EngineError> {
    let engine = match address {
        Some(address) => DockerEngine::connect_to(address).await?,
        None => DockerEngine::find().await?,
    };
    Ok(Arc::new(engine))
}

impl DockerEngine {
    /// Finds the engine, agrees on an API version, and starts the sweeper.
    async fn find() -> Result<Self, EngineError> {
        match discovery::find(&Environment::current()).await {
            Ok(endpoint) => Self::connect_to(endpoint.to_string()).await,
            Err(error) => Err(EngineError::Unreachable {
                endpoint: error.endpoint(),
                message: error.to_string(),
                hint: UNREACHABLE_HINT,
            }),
        }
    }

    /// Agrees on an API version with the engine at `endpoint`, and starts the sweeper.
    async fn connect_to(endpoint: String) -> Result<Self, EngineError> {
        let unreachable = |error: bollard::errors::Error| EngineError::Unreachable {
            endpoint: endpoint.clone(),
            message: api::full_message(&error),
            hint: UNREACHABLE_HINT,
        };
        let docker = Docker::connect_with_host(&endpoint).map_err(unreachable)?;
        let docker = docker.with_timeout(Duration::from_secs(API_TIMEOUT_SECS));
        let docker = docker.negotiate_version().await.map_err(unreachable)?;
        let version = docker.client_version();
        if (version.major_version, version.minor_version) < OLDEST_API {
            let have = format!("{}.{}", version.major_version, version.minor_version);
            return Err(EngineError::ApiVersion { endpoint, have, need: "1.41 (Docker 20.10, Podman 4)" });
        }
        // Without an answer, the watchdog limits disks.
        let info = docker.info().await.unwrap_or_default();
        let has_quotas = quota::is_possible(&info);
        let limits_terminals = terminals::are_limited(&info, &docker.version().await.unwrap_or_default());
        let processors = info.ncpu.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        let cache = guest_binary::cache_dir();
        let guest = guest_binary::install(&cache)?;
        let stop = CancellationToken::new();
        let owner = Owner::current();
        let engine = Self {
            shared: Arc::new(Shared {
                docker,
                endpoint,
                prefix: prefix(&owner),
                owner,
                runtime: Handle::current(),
                removals: TaskTracker::new(),
                builds: Mutex::default(),
                cache,
                guest,
                guest_is_uploaded: AtomicBool::new(false),
                has_quotas: AtomicBool::new(has_quotas),
                warned_of_layers: AtomicBool::new(false),
                limits_terminals,
                processors,
                launched: AtomicU64::new(0),
                live: Mutex::default(),
                host_disk: Mutex::default(),
                _background: stop.clone().drop_guard(),
            }),
        };
        sweep::start(&engine.shared, stop.clone());
        watchdog::start(&engine.shared, stop.clone());
        host_disk::start(&engine.shared, stop.clone());
        events::start(&engine.shared, stop);
        Ok(engine)
    }
}

// Other operations are methods of `DockerEngine`. Each is in the file of its theme.
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

    fn host_size(&self) -> BoxFuture<'_, Option<HostSize>> {
        Box::pin(self.host_size())
    }

    fn ensure_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        Box::pin(self.ensure_image(spec))
    }

    fn rebuild_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        Box::pin(self.rebuild_image(spec))
    }

    fn pulled<'a>(&'a self, name: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Image, EngineError>> {
        Box::pin(self.pulled(name, timeout))
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

    fn launch<'a>(&'a self, spec: &'a LaunchSpec<'a>) -> BoxFuture<'a, Result<Sandbox, EngineError>> {
        Box::pin(self.launch(spec))
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            let answered = self.shared.docker.ping().await;
            answered.map(drop).map_err(|error| self.shared.error("ping the engine", error))
        })
    }

    fn keep_layer<'a>(&'a self, layer: &'a Layer) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(self.keep_layer(layer))
    }

    fn layer_state<'a>(&'a self, layer: &'a LayerId) -> BoxFuture<'a, Result<LayerState, EngineError>> {
        Box::pin(self.layer_state(layer))
    }

    fn kept_layers(&self) -> BoxFuture<'_, Result<Vec<KeptLayer>, EngineError>> {
        Box::pin(self.kept_layers())
    }

    fn sweep(&self) -> BoxFuture<'_, Result<usize, EngineError>> {
        Box::pin(self.sweep())
    }

    fn remove_all(&self, scope: CleanScope) -> BoxFuture<'_, Result<Removed, EngineError>> {
        Box::pin(self.remove_all(scope))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.shared.removals.close();
            self.shared.removals.wait().await;
            // The next sweep of any termsmith process on this host removes the rest.
            if let Err(error) = self.shared.sweep(sweep::SweepScope::OrphansAndOwn).await {
                tracing::warn!(%error, "sweep at the end failed");
            }
        })
    }
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, HashMap<ContainerId, Watched>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn host_disk(&self) -> MutexGuard<'_, HostDisk> {
        self.host_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A unique container name. It is chosen here, so that a container can be removed even if the
    /// engine never answered its creation.
    fn new_name(&self) -> ContainerId {
        ContainerId(format!("{}{}", self.prefix, self.launched.fetch_add(1, Ordering::Relaxed)))
    }

    /// Kills and removes a container with its volumes. A missing one is no error.
    async fn remove(&self, name: &str) -> Result<(), EngineError> {
        self.make_removable(name).await;
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.docker.remove_container(name, Some(options)).await {
            Err(error) if !matches!(api::status(&error), Some(404 | 409)) => {
                Err(self.error("remove a container", error))
            }
            Ok(()) | Err(_) => {
                self.forget_guest(name);
                Ok(())
            }
        }
    }

    fn error(&self, action: &'static str, error: bollard::errors::Error) -> EngineError {
        api::engine_error(action, &self.endpoint, error)
    }
}

fn prefix(owner: &Owner) -> String {
    static ENGINES: AtomicU64 = AtomicU64::new(0);
    let Owner { host, pid, started, .. } = owner;
    format!("termsmith-{host}-{pid}-{started}-{}-", ENGINES.fetch_add(1, Ordering::Relaxed))
}
