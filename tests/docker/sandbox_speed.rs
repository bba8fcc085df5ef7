//! Measurements without assertions: `cargo test --test docker sandbox_speed -- --ignored
//! --nocapture`.

use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use termsmith::sandbox::Process;

use crate::support::engine::{DOCKER, base, launch, run, shell};

const ACTIONS: usize = 500;
const LAUNCHES: usize = 12;

/// Median and 95th percentile in milliseconds.
fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    println!("{what:<55} p50 {:>8.2} ms  p95 {:>8.2} ms", at(0.5), at(0.95));
}

async fn measure(what: &str, times: usize, action: impl AsyncFn()) {
    let mut took = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        action().await;
        took.push(start.elapsed());
    }
    report(what, took);
}

#[test]
#[ignore = "prints figures"]
fn figures() {
    run(async {
        let engine = DOCKER.connect().await.unwrap();
        let sandbox = launch(&engine).await;
        let long = format!(": {}", "x".repeat(10_000));
        for command in [":", "true", "/bin/true", long.as_str(), "head -c 1000000 /dev/zero"] {
            let name: String = command.chars().take(30).collect();
            measure(&format!("shell `{name}`"), ACTIONS, async || {
                shell(&sandbox, command).await;
            })
            .await;
        }
        measure("spawn /bin/true", ACTIONS, async || {
            sandbox.spawn(&Process::new("/bin/true")).await.unwrap();
        })
        .await;
        let megabyte = vec![7; 1_000_000];
        measure("put and get 1 MB", 50, async || {
            sandbox.put("/tmp/x", &megabyte, 0o644).await.unwrap();
            sandbox.get("/tmp/x", 1 << 20).await.unwrap();
        })
        .await;
        let docker = Docker::connect_with_defaults().unwrap();
        let (mut ours, mut ours_removed, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        // The two alternate, so that a busy machine affects both equally.
        for _ in 0..LAUNCHES {
            let start = Instant::now();
            let sandbox = launch(&engine).await;
            shell(&sandbox, "true").await;
            ours.push(start.elapsed());
            let name = sandbox.id().as_str().to_owned();
            sandbox.destroy().await;
            while docker.inspect_container(&name, None).await.is_ok() {}
            ours_removed.push(start.elapsed());
            let start = Instant::now();
            bare_round(&docker).await;
            bare.push(start.elapsed());
        }
        report("launch, first command", ours);
        report("launch, first command, destroy, gone", ours_removed);
        report("bare create, start, remove of `sleep`", bare);
        measure("launch, stop, archive", LAUNCHES, async || {
            let stopped = launch(&engine).await.stop().await.unwrap();
            stopped.archive("/app", 1 << 20).await.unwrap();
        })
        .await;
        engine.close().await;
    });
}

async fn bare_round(docker: &Docker) {
    let body = ContainerCreateBody {
        image: Some(base().reference().to_owned()),
        cmd: Some(vec!["sleep".to_owned(), "1000".to_owned()]),
        host_config: Some(HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() }),
        ..ContainerCreateBody::default()
    };
    let created = docker.create_container(None, body).await.unwrap();
    docker.start_container(&created.id, None).await.unwrap();
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    docker.remove_container(&created.id, Some(options)).await.unwrap();
}
