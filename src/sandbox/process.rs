//! The process engine, for tests. The guest is a child of this process, in a temporary folder. So
//! it isolates nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::connection::{Closed, Piece, Streams, Symptom};
use super::container::{Container, ContainerApi};
use super::engine::{Engine, EngineApi};
use super::{
    ArchiveError, ContainerId, EngineError, Evidence, Image, ImageError, ImageSpec, LaunchSpec, Loss,
    Network, Sandbox, SandboxError, Spool, Spooled, guest_binary,
};

/// Maximum time that a guest needs to kill its children and end, after its input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
const NAME: &str = "process";
const READ_PIECE: usize = 64 * 1024;
/// The only variable that a guest inherits from the host. Without it `bash` is not found.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs guests as child processes. It ignores limits, capabilities and networks. The only image is
/// the host.
#[derive(Debug)]
struct ProcessEngine {
    removals: TaskTracker,
}

/// One guest and its folder.
#[derive(Debug)]
struct ProcessContainer {
    root: PathBuf,
    child: Arc<tokio::sync::Mutex<Child>>,
    removals: TaskTracker,
    runtime: Handle,
}

/// Runs the guest as a child of this process, in a temporary folder. The registry has no row for
/// it, because a solver's programs could change the host.
pub fn process_engine() -> Engine {
    Arc::new(ProcessEngine { removals: TaskTracker::new() })
}

impl EngineApi for ProcessEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn isolates(&self) -> bool {
        false
    }

    /// The only image is this host.
    fn ensure_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        Box::pin(async { Ok(Image::named(spec.digest)) })
    }

    fn launch<'a>(&'a self, spec: &'a LaunchSpec<'a>) -> BoxFuture<'a, Result<Sandbox, EngineError>> {
        Box::pin(self.start(spec))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.removals.close();
            self.removals.wait().await;
        })
    }
}

impl ProcessEngine {
    /// Starts a guest. Its work directory and home is a new temporary folder. Preloads are unpacked
    /// below it.
    async fn start(&self, spec: &LaunchSpec<'_>) -> Result<Sandbox, EngineError> {
        if spec.network != Network::None {
            return Err(EngineError::Unsupported { engine: "process", action: "join a network" });
        }
        let (id, root) = new_folder()?;
        let failed = |action| {
            let path = root.clone();
            move |source| EngineError::Io { action, path, source }
        };
        for preload in &spec.preload {
            let dest = root.join(preload.dest.trim_start_matches('/'));
            std::fs::create_dir_all(&dest)
                .and_then(|()| tar::Archive::new(preload.tar.reader()).unpack(&dest))
                .map_err(failed("unpack files into"))?;
        }
        let guest = guest_binary::install(&guest_binary::cache_dir())?;
        let mut command = Command::new(guest);
        command.env_clear().env("PATH", PATH).current_dir(&root).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed("start a guest in"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(EngineError::Guest { message: "its streams are missing".to_owned() });
        };
        let handle = ProcessContainer {
            root: root.clone(),
            child: Arc::new(tokio::sync::Mutex::new(child)),
            removals: self.removals.clone(),
            runtime: Handle::current(),
        };
        let container = Container::new(ContainerId(id), handle, spec.image.clone());
        let output = stream::unfold(output, |mut output| async move {
            let mut piece = vec![0; READ_PIECE];
            match output.read(&mut piece).await {
                Ok(0) => None,
                Ok(count) => {
                    piece.truncate(count);
                    Some((Ok(Piece::Out(piece)), output))
                }
                Err(error) => Some((Err(error.to_string()), output)),
            }
        });
        let streams = Streams { input: Box::pin(input), output: Box::pin(output) };
        let workdir = root.to_string_lossy().into_owned();
        Sandbox::connect(container, streams, &workdir, &workdir).await
    }
}

impl ContainerApi for ProcessContainer {
    fn engine(&self) -> &'static str {
        NAME
    }

    /// When its input is closed, the guest kills its children and ends.
    fn ends_with_stream(&self) -> bool {
        true
    }

    fn kill(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            end(&self.child).await;
            Ok(())
        })
    }

    fn why_lost(&self, closed: Closed) -> BoxFuture<'_, SandboxError> {
        Box::pin(async move {
            let status = self.child.lock().await.try_wait();
            let status =
                status.ok().flatten().map_or_else(|| "still runs".to_owned(), |status| status.to_string());
            // Here the guest is not process 1, so any process of the same user can end it.
            let evidence = match closed.symptom {
                Symptom::StreamEnded | Symptom::ClosedByUs => Evidence::Unexplained,
                Symptom::Protocol => Evidence::Protocol,
                Symptom::Silent => Evidence::Silent,
            };
            SandboxError::Lost(Loss { evidence, detail: format!("guest: {status}; {}", closed.detail) })
        })
    }

    fn archive<'a>(&'a self, root: &'a str, max_bytes: u64) -> BoxFuture<'a, Result<Spooled, ArchiveError>> {
        Box::pin(async move { self.pack(root, max_bytes) })
    }

    /// Ends the guest and removes its folder.
    fn remove_later(&self, _image: Image) {
        let (child, root) = (self.child.clone(), self.root.clone());
        let removal = async move {
            end(&child).await;
            // The folder is a temporary one. The operating system removes it some day.
            if let Err(error) = tokio::fs::remove_dir_all(&root).await {
                tracing::warn!(folder = %root.display(), %error, "cannot remove a sandbox's folder");
            }
        };
        self.removals.spawn_on(removal, &self.runtime);
    }
}

impl ProcessContainer {
    /// The archive of a folder below the work directory, with paths as the Docker engine writes
    /// them.
    fn pack(&self, root: &str, max_bytes: u64) -> Result<Spooled, ArchiveError> {
        let path = Path::new(root);
        if !path.starts_with(&self.root) || path.symlink_metadata().is_err() {
            return Err(ArchiveError::Missing { root: root.to_owned() });
        }
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        let mut tar = tar::Builder::new(Spool::new());
        tar.follow_symlinks(false);
        let packed = if path.is_dir() {
            tar.append_dir_all(&name, path)
        } else {
            tar.append_path_with_name(path, &name)
        };
        let bytes = packed.and_then(|()| tar.into_inner()?.finish());
        let bytes =
            bytes.map_err(|source| EngineError::Io { action: "pack", path: path.to_owned(), source })?;
        if bytes.len() > max_bytes {
            return Err(ArchiveError::TooLarge { root: root.to_owned(), max: max_bytes });
        }
        Ok(bytes)
    }
}

/// A new folder, and the container name derived from it.
fn new_folder() -> Result<(String, PathBuf), EngineError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let id = format!("termsmith-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(&id);
        match std::fs::create_dir(&root) {
            Ok(()) => return Ok((id, root)),
            // An earlier process with the same number left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(EngineError::Io { action: "make", path: root, source }),
        }
    }
}

/// Waits until the guest has killed its children and ended. Kills it after a time-out.
async fn end(child: &tokio::sync::Mutex<Child>) {
    let mut child = child.lock().await;
    if tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await.is_err() {
        // Nobody has waited for the child, so its process number cannot have been reused.
        if let Err(error) = child.kill().await {
            tracing::warn!(%error, "cannot kill a guest");
        }
    }
}
