//! Builds and pulls that fail because of the engine, a registry or the task. The engine is a fake.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use termsmith::model::Blame;
use termsmith::sandbox::{Engine, EngineError, ImageError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::support::engine::{DOCKER, context, image_spec, run};

/// How the fake engine answers.
#[derive(Clone, Copy)]
struct Answers {
    /// The error of the build's second step, a RUN.
    build: &'static str,
    /// The status and message for every new container.
    create: (u16, &'static str),
    /// The status and message for a pull. With status 200 it succeeds.
    pull: (u16, &'static str),
}

const FINE: Answers = Answers { build: "", create: (500, "not asked for"), pull: (200, "") };

/// The lines of a build before its error.
const LINES: [&str; 4] = ["Step 1/2 : FROM here:1", "\n", " ---> f930023b6bde\n", "Step 2/2 : RUN make"];

struct Fake {
    folder: tempfile::TempDir,
    builds: Arc<AtomicUsize>,
    pulls: Arc<AtomicUsize>,
}

impl Fake {
    /// Starts an engine that has only the image `here:1`.
    fn start(answers: Answers) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("sock")).unwrap();
        let (builds, pulls) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (builds.clone(), pulls.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (builds, pulls) = counts.clone();
                tokio::spawn(serve(client, answers, builds, pulls));
            }
        });
        Self { folder, builds, pulls }
    }

    async fn engine(&self) -> Engine {
        let socket: &Path = &self.folder.path().join("sock");
        DOCKER.connect_at(format!("unix://{}", socket.display())).await.unwrap()
    }
}

async fn serve(mut client: UnixStream, answers: Answers, builds: Arc<AtomicUsize>, pulls: Arc<AtomicUsize>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let lower = head.to_ascii_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    client.read_exact(&mut body).await.unwrap();
    let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap();
    let said = |message: &str| serde_json::json!({ "message": message }).to_string();
    let (status, text) = match path {
        _ if path.ends_with("/version") => (200, r#"{"ApiVersion":"1.41"}"#.to_owned()),
        _ if path.ends_with("/build") => {
            builds.fetch_add(1, Ordering::Relaxed);
            let lines = LINES.iter().map(|line| format!("{}\n", serde_json::json!({ "stream": line })));
            let error =
                serde_json::json!({ "errorDetail": { "message": answers.build }, "error": answers.build });
            (200, lines.chain([format!("{error}\n")]).collect())
        }
        _ if path.ends_with("/images/create") => {
            pulls.fetch_add(1, Ordering::Relaxed);
            (answers.pull.0, said(answers.pull.1))
        }
        _ if path.ends_with("/images/here:1/json") => (200, "{}".to_owned()),
        _ if path.ends_with("/containers/create") => (answers.create.0, said(answers.create.1)),
        _ if path.contains("/images/") => (404, said("No such image: x")),
        _ if path.ends_with("/json") => (200, "[]".to_owned()),
        _ => (200, "{}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let _ = client.write_all(format!("{head}{text}").as_bytes()).await;
}

/// The engine ended a build step without a status. If it starts no other container of that image
/// either, it is at fault.
#[test]
fn an_engine_without_network_or_disk_is_no_fault_of_the_dockerfile() {
    run(async {
        let check = async |build: &'static str, create: &'static str| {
            let fake = Fake::start(Answers { build, create: (500, create), ..FINE });
            let engine = fake.engine().await;
            let context = context(&[("Dockerfile", "FROM here:1\nRUN make\n")]);
            let failed = engine.ensure_image(&image_spec("blake3:fake", &context)).await;
            let Err(ImageError::Engine(error)) = failed else { panic!("{build}: {failed:?}") };
            assert_eq!(error.blame(), Blame::Infra, "{error}");
            assert!(error.to_string().contains(build), "{error}");
            engine.close().await;
        };
        let bridge = "failed to create endpoint a on network bridge: could not find bridge docker0: no such network interface";
        check(bridge, bridge).await;
        let iptables = "driver failed programming external connectivity on endpoint a: iptables failed";
        check(iptables, iptables).await;
        check("failed to set up container networking: no bridge", "no bridge").await;
        let overlay = "error creating overlay mount to /var/lib/docker/overlay2/a/merged: invalid argument";
        check(overlay, overlay).await;
    });
}

#[test]
fn a_step_that_ends_with_a_status_is_the_dockerfiles() {
    run(async {
        let build = "The command '/bin/sh -c make' returned a non-zero code: 2";
        // The engine is not asked for another container.
        let fake = Fake::start(Answers { build, ..FINE });
        let engine = fake.engine().await;
        let context = context(&[("Dockerfile", "FROM here:1\nRUN make\n")]);
        let failed = engine.ensure_image(&image_spec("blake3:fake", &context)).await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains(build), "{log}");
        assert_eq!(fake.builds.load(Ordering::Relaxed), 1);
        engine.close().await;
    });
}

#[test]
fn the_registrys_answer_decides_who_is_at_fault_for_a_base() {
    run(async {
        let check = async |dockerfile: &str, pull: (u16, &'static str), pulls: usize, expect: &str| {
            let fake = Fake::start(Answers { pull, ..FINE });
            let engine = fake.engine().await;
            let context = context(&[("Dockerfile", dockerfile)]);
            let failed = engine.ensure_image(&image_spec("blake3:fake", &context)).await;
            let said = match &failed {
                Err(ImageError::Build { log }) => format!("task: {log}"),
                Err(ImageError::Engine(error)) => format!("{:?}: {error}", error.blame()),
                other => panic!("{dockerfile}: {other:?}"),
            };
            assert!(said.starts_with(expect), "{dockerfile}: {said}");
            assert_eq!(
                (fake.pulls.load(Ordering::Relaxed), fake.builds.load(Ordering::Relaxed)),
                (pulls, 0),
                "{said}"
            );
            engine.close().await;
        };
        check(
            "FROM a:1",
            (404, "manifest unknown"),
            1,
            "Caller: image `a:1` is not on the engine, and no registry",
        )
        .await;
        check(
            "FROM a:1",
            (500, "connection refused"),
            1,
            "Infra: image `a:1` is not on the engine, and its registry",
        )
        .await;
        check("FROM a:1", (429, "toomanyrequests"), 1, "Infra: image `a:1`").await;
        // The engine says that it has pulled the image, but has no image.
        check("FROM a:1", (200, ""), 1, "Infra: image `a:1`").await;
        check("FROM here:1\nCOPY --from=b:1 x y", (404, "no"), 1, "Caller: image `b:1`").await;
        let empty =
            "task: Dockerfile, line 3: the base `${B}` is empty: FROM does not see an ARG between stages";
        check("FROM here:1 AS one\nARG B=here:1\nFROM ${B}", (200, ""), 0, empty).await;
    });
}

#[test]
fn a_named_image_is_pulled_if_the_engine_lacks_it() {
    run(async {
        let fake = Fake::start(Answers { pull: (404, "not found"), ..FINE });
        let engine = fake.engine().await;
        let limit = Duration::from_secs(10);
        assert_eq!(engine.pulled("here:1", limit).await.unwrap().reference(), "here:1");
        assert_eq!(fake.pulls.load(Ordering::Relaxed), 0);
        let failed = engine.pulled("there:1", limit).await;
        assert!(
            matches!(&failed, Err(EngineError::MissingImage { base, .. }) if base == "there:1"),
            "{failed:?}"
        );
        assert_eq!(fake.pulls.load(Ordering::Relaxed), 1);
        engine.close().await;
    });
}
