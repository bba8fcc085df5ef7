//! Images are built once. Images that cannot be built give errors.

use std::time::Duration;

use bollard::Docker;
use bollard::models::ContainerSummary;
use termsmith::model::{Limits, RelPath};
use termsmith::sandbox::{EngineError, Image, ImageError, ImageSpec};
use termsmith::verify::{CLOCK_LIBRARIES, clock_moves};

use crate::support::engine::{DOCKER, context, docker, image_spec, limits, output, run, spec};

#[test]
fn a_bad_build_is_data_with_its_log() {
    run(async {
        let Some(engine) = docker().await else { return };
        let build = async |digest: &str, dockerfile: &str| {
            let context = context(&[("Dockerfile", dockerfile), ("file", "x")]);
            engine.ensure_image(&image_spec(&format!("blake3:test{digest}"), &context)).await
        };
        let failed = build("bad", "FROM debian:bookworm-slim\nRUN echo the reason >&2; exit 7\n").await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains("the reason") && log.contains("returned a non-zero code: 7"), "{log}");
        // A build step has limits of its own: 2 GiB, rounded down to a page, and two processors.
        // The files are those of cgroup v1 and v2.
        let limits =
            "cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us memory.max cpu.max";
        let failed = build("limits", &format!("FROM debian:bookworm-slim\nRUN {limits}; exit 1\n")).await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains("2147479552") && log.contains("200000"), "{log}");
        let failed = build("worse", "FROM debian:bookworm-slim\nNONSENSE\n").await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains("NONSENSE"), "{log}");
        let failed = build("copy", "FROM debian:bookworm-slim\nCOPY none /\n").await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains("COPY failed"), "{log}");
        let failed = build("base", "FROM termsmith-test/no-such-base:1\n").await;
        // If no registry answers, nobody knows that the image does not exist.
        let named = match &failed {
            Err(ImageError::Engine(
                EngineError::MissingImage { base: image, .. } | EngineError::Registry { image, .. },
            )) => image,
            other => panic!("{other:?}"),
        };
        assert_eq!(named, "termsmith-test/no-such-base:1");
        // The engine cannot start this step, but starts other containers of the image.
        let failed = build("exec", "FROM debian:bookworm-slim\nRUN [\"/no/such/program\"]\n").await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains("/no/such/program"), "{log}");
        let context = context(&[("Dockerfile", "FROM debian:bookworm-slim\nRUN sleep 1000\n")]);
        let spec = ImageSpec { timeout: Duration::from_secs(2), ..image_spec("blake3:testslow", &context) };
        let failed = engine.ensure_image(&spec).await;
        assert!(matches!(failed, Err(ImageError::TimedOut { seconds: 2, .. })), "{failed:?}");
    });
}

/// Kills the first build step that runs `command`, as another process on the host could.
async fn kill_step(api: &Docker, command: &str) {
    loop {
        let containers = api.list_containers(None).await.unwrap();
        let runs = |container: &&ContainerSummary| {
            container.command.as_deref().is_some_and(|line| line.contains(command))
        };
        if let Some(step) = containers.iter().find(runs) {
            return api.kill_container(step.id.as_deref().unwrap(), None).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_killed_build_step_is_tried_again_and_then_the_dockerfiles_fault() {
    run(async {
        let api = Docker::connect_with_defaults().unwrap();
        let Some(engine) = docker().await else { return };
        let marker = format!("sleep 2 && echo {}", std::process::id());
        let dockerfile = format!("FROM debian:bookworm-slim\nRUN {marker}\n");
        let killed_once = context(&[("Dockerfile", &dockerfile)]);
        let digest = format!("blake3:{}killed", std::process::id());
        let spec = image_spec(&digest, &killed_once);
        let (built, ()) = tokio::join!(engine.ensure_image(&spec), kill_step(&api, &marker));
        let image = built.unwrap();
        let remove = bollard::query_parameters::RemoveImageOptionsBuilder::new().force(true).build();
        api.remove_image(image.reference(), Some(remove), None).await.unwrap();
        // These steps end like this by themselves, at every attempt. The third one fills a file
        // system in memory of its own.
        for (digest, step, expect) in [
            ("own-kill", "exit 137", "returned a non-zero code: 137"),
            ("printed", "echo No space left on device; exit 1", "No space left on device"),
            ("full", "dd if=/dev/zero of=/dev/shm/x bs=1M count=100", "No space left on device"),
            // The out-of-memory killer ends the shell's only child. The shell then ends with its
            // status.
            ("memory", "tail /dev/zero", "returned a non-zero code: 137"),
        ] {
            let context = context(&[("Dockerfile", &format!("FROM debian:bookworm-slim\nRUN {step}\n"))]);
            let failed = engine.ensure_image(&image_spec(&format!("blake3:test{digest}"), &context)).await;
            let Err(ImageError::Build { log }) = failed else { panic!("{step}: {failed:?}") };
            assert!(log.contains(expect), "{log}");
        }
    });
}

#[test]
fn an_image_is_built_once_however_many_ask() {
    run(async {
        let api = Docker::connect_with_defaults().unwrap();
        let Some(engine) = docker().await else { return };
        let digest = format!("blake3:{}once", std::process::id());
        // The layer differs at each build, so two builds would give two ids.
        let dockerfile = format!(
            "FROM debian:bookworm-slim\nRUN echo {} && sleep 0.5 && cat /proc/sys/kernel/random/uuid >/id\nCOPY file /app/\n",
            std::process::id()
        );
        let context = context(&[("Dockerfile", &dockerfile), ("file", "content\n")]);
        let image = image_spec(&digest, &context);
        // Two engines share no memory, like two processes. The tasks of one engine share a map of
        // locks.
        let other = DOCKER.connect().await.unwrap();
        let started = std::time::SystemTime::now();
        let (a, b, c) = tokio::join!(
            engine.ensure_image(&image),
            engine.ensure_image(&image),
            other.ensure_image(&image)
        );
        let built = a.unwrap();
        assert_eq!(built.reference(), b.unwrap().reference());
        assert_eq!(built.reference(), c.unwrap().reference());
        let inspected = api.inspect_image(built.reference()).await.unwrap();
        assert_eq!(inspected.config.unwrap().labels.unwrap()["termsmith.task"], digest);
        // A second build would leave an untagged image with the same label.
        let filters = std::collections::HashMap::from([("label", vec![format!("termsmith.task={digest}")])]);
        let options = bollard::query_parameters::ListImagesOptionsBuilder::new().filters(&filters).build();
        assert_eq!(api.list_images(Some(options)).await.unwrap().len(), 1);
        let again = engine.ensure_image(&image).await.unwrap();
        assert_eq!(api.inspect_image(again.reference()).await.unwrap().id, inspected.id, "{started:?}");
        let sandbox = engine.launch(&spec(&built, &limits())).await.unwrap();
        assert_eq!(output(&sandbox, "pwd; cat file").await, "/app\ncontent\n");
        drop(sandbox);
        other.close().await;
        let remove = bollard::query_parameters::RemoveImageOptionsBuilder::new().force(true).build();
        api.remove_image(built.reference(), Some(remove), None).await.unwrap();
    });
}

#[test]
fn the_image_decides_the_environment() {
    run(async {
        let Some(engine) = docker().await else { return };
        let dockerfile = "FROM debian:bookworm-slim\nENV GREETING=hello PATH=/opt/bin:/usr/bin:/bin\nUSER nobody\nENTRYPOINT [\"/bin/false\"]\n";
        let context = context(&[("Dockerfile", dockerfile)]);
        let image = engine.ensure_image(&image_spec("blake3:testenv", &context)).await.unwrap();
        let sandbox = engine.launch(&spec(&image, &limits())).await.unwrap();
        let text = output(&sandbox, "echo $GREETING $PATH $HOME $PWD; id -u").await;
        assert_eq!(text, "hello /opt/bin:/usr/bin:/bin /root /app\n0\n");
    });
}

/// Docker keeps a link in the build context as a link.
#[test]
fn links_of_a_build_context_stay_links() {
    run(async {
        let Some(engine) = docker().await else { return };
        let dockerfile = "FROM debian:bookworm-slim\nCOPY data /data\nCOPY data/latest /one\n";
        let mut context = context(&[("Dockerfile", dockerfile), ("data/v1.txt", "content\n")]);
        context.links.insert(RelPath::new("data/latest").unwrap(), "v1.txt".to_owned());
        let image = engine.ensure_image(&image_spec("blake3:testlinks", &context)).await.unwrap();
        let sandbox = engine.launch(&spec(&image, &limits())).await.unwrap();
        assert_eq!(output(&sandbox, "readlink /data/latest; cat /one").await, "v1.txt\ncontent\n");
    });
}

#[test]
fn a_clock_that_does_not_move_is_told_with_the_reason() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (image, limits) = (Image::named("debian:bookworm-slim"), limits());
        let check = async |library: &[u8], expect: Result<(), &str>| {
            let moved = clock_moves(&engine, &spec(&image, &limits), library).await.unwrap();
            match (&moved, expect) {
                (Ok(()), Ok(())) => {}
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (Ok(()) | Err(_), _) => panic!("{} bytes: {moved:?}", library.len()),
            }
        };
        // The dynamic linker ignores each of these with a warning.
        check(b"", Err("cannot be preloaded")).await;
        check(b"no library", Err("cannot be preloaded")).await;
        check(b"\x7fELF\x01\x01\x01", Err("cannot be preloaded")).await;
        if let Some(library) = CLOCK_LIBRARIES.iter().find_map(|path| std::fs::read(path).ok()) {
            check(&library, Ok(())).await;
            check(&library[..library.len() / 2], Err("`date` fails")).await;
        }
    });
}

#[test]
fn a_missing_image_is_named() {
    run(async {
        let Some(engine) = docker().await else { return };
        let image = Image::named("termsmith-test/none:1");
        let limits = Limits::default();
        let Err(error) = engine.launch(&spec(&image, &limits)).await else { panic!("launched") };
        assert!(
            matches!(&error, EngineError::MissingImage { base, .. } if base == "termsmith-test/none:1"),
            "{error:?}"
        );
        assert!(!error.is_transient());
    });
}

/// A container's image lacks the content of its volumes. A further round would begin without it.
#[test]
fn a_container_with_a_volume_is_not_committed() {
    run(async {
        let Some(engine) = docker().await else { return };
        let context = context(&[("Dockerfile", "FROM debian:bookworm-slim\nVOLUME /data\n")]);
        let image = engine.ensure_image(&image_spec("blake3:testvolume", &context)).await.unwrap();
        let config = engine.image_config(&image).await.unwrap();
        assert_eq!(config.volumes, ["/data"]);
        let limits = limits();
        let sandbox = engine.launch(&spec(&image, &limits)).await.unwrap();
        assert_eq!(output(&sandbox, "echo kept > /data/file; cat /data/file").await, "kept\n");
        let refused = sandbox.snapshot().await.unwrap_err();
        assert!(matches!(&refused, EngineError::VolumeNotSavable { path } if path == "/data"), "{refused}");
        let refused = sandbox.stop().await.unwrap().commit().await.unwrap_err();
        assert!(matches!(&refused, EngineError::VolumeNotSavable { path } if path == "/data"), "{refused}");
    });
}
