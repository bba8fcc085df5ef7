//! A toy engine in one file. It runs the guest as a plain child process, and shows how to add an
//! engine.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::stream;
use termsmith::model::Blame;
use termsmith::model::ShellOutcome::Exited;
use termsmith::sandbox::{
    ArchiveError, Closed, Container, ContainerApi, ContainerId, Diagnosis, Engine, EngineApi, EngineEntry,
    EngineError, Evidence, Finding, GUEST_BINARY, Host, Image, ImageError, ImageSpec, LaunchSpec, Loss,
    Piece, Sandbox, SandboxError, Spooled, Status, Streams,
};
use tokio::io::AsyncReadExt as _;

use crate::support::engine::{context, image_spec, launch, output, run, shell};

/// Its row. A real engine's would be in `ENGINES`.
const ENTRY: EngineEntry = EngineEntry {
    name: NAME,
    description: "The guest as a plain child process",
    connect: |_| Box::pin(async { Ok(Arc::new(ToyEngine) as Engine) }),
    diagnose: |_| {
        let rows = vec![("engine", Finding::warn("it isolates nothing"))];
        Box::pin(async move { Diagnosis { rows, ..Diagnosis::default() } })
    },
    fix_script: None,
};

const NAME: &str = "toy";

#[derive(Debug)]
struct ToyEngine;

#[derive(Debug)]
struct ToyContainer {
    child: Mutex<tokio::process::Child>,
    _folder: tempfile::TempDir,
}

impl EngineApi for ToyEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn isolates(&self) -> bool {
        false
    }

    fn ensure_image<'a>(&'a self, spec: &'a ImageSpec<'a>) -> BoxFuture<'a, Result<Image, ImageError>> {
        Box::pin(async { Ok(Image::named(spec.digest)) })
    }

    fn launch<'a>(&'a self, spec: &'a LaunchSpec<'a>) -> BoxFuture<'a, Result<Sandbox, EngineError>> {
        Box::pin(async {
            let folder = tempfile::tempdir().unwrap();
            let guest = folder.path().join("guest");
            std::fs::write(&guest, GUEST_BINARY).unwrap();
            std::fs::set_permissions(&guest, std::fs::Permissions::from_mode(0o755)).unwrap();
            let mut command = tokio::process::Command::new(&guest);
            command.env_clear().env("PATH", "/usr/bin:/bin").process_group(0).kill_on_drop(true);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let output = stream::unfold(output, |mut output| async move {
                let mut bytes = vec![0; 4096];
                let count = output.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
                bytes.truncate(count);
                Some((Ok(Piece::Out(bytes)), output))
            });
            let streams = Streams { input: Box::pin(input), output: Box::pin(output) };
            let workdir = folder.path().to_str().unwrap().to_owned();
            let handle = ToyContainer { child: Mutex::new(child), _folder: folder };
            let container = Container::new(ContainerId::new("toy-1"), handle, spec.image.clone());
            Sandbox::connect(container, streams, &workdir, &workdir).await
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl ContainerApi for ToyContainer {
    fn engine(&self) -> &'static str {
        NAME
    }

    fn kill(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        self.child.lock().unwrap().start_kill().unwrap();
        Box::pin(async { Ok(()) })
    }

    fn why_lost(&self, closed: Closed) -> BoxFuture<'_, SandboxError> {
        Box::pin(async {
            SandboxError::Lost(Loss { evidence: Evidence::Unexplained, detail: closed.detail })
        })
    }

    fn archive<'a>(&'a self, root: &'a str, _max_bytes: u64) -> BoxFuture<'a, Result<Spooled, ArchiveError>> {
        Box::pin(async { Err(ArchiveError::Missing { root: root.to_owned() }) })
    }

    fn remove_later(&self, _image: Image) {}
}

#[test]
fn a_new_engine_is_one_file() {
    run(async {
        let engine = ENTRY.connect().await.unwrap();
        let diagnosis = ENTRY.diagnose(&Host::of_process()).await;
        assert_eq!(diagnosis.rows[0].1.status, Status::Warn);
        assert_eq!((engine.name(), engine.isolates()), ("toy", false));
        let context = context(&[("Dockerfile", "FROM nothing\n")]);
        let image = engine.ensure_image(&image_spec("blake3:toy", &context)).await.unwrap();
        assert_eq!(image.reference(), "blake3:toy");
        let sandbox = launch(&engine).await;
        assert_eq!(shell(&sandbox, "echo text >file").await.outcome, Exited(0));
        assert_eq!(output(&sandbox, "cat file").await, "text\n");
        let path = format!("{}/file", sandbox.workdir());
        assert_eq!(sandbox.get(&path, 100).await.unwrap(), b"text\n");
        // An operation that an engine does not support is an error with the engine's name.
        let refused = sandbox.snapshot().await.unwrap_err();
        assert_eq!(refused.to_string(), "the toy engine cannot commit a container");
        assert_eq!(refused.blame(), Blame::Caller);
        let stopped = sandbox.stop().await.unwrap();
        assert!(matches!(stopped.archive("/", 1).await, Err(ArchiveError::Missing { .. })));
        assert!(stopped.restart("/").await.is_err());
    });
}
