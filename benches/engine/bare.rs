//! Baseline: the engine alone, with one API call per operation, as a harness uses it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use bollard::Docker;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use termsmith::sandbox::{Engine, Image};

use crate::fixture;

/// The label of a container's owner. Any termsmith removes containers whose owner has died.
const OWNER_LABEL: &str = "termsmith.owner";
/// The label with this process's number.
const BENCH_LABEL: &str = "termsmith.bench";
/// A command that outlives every section. As process 1 it ignores every signal but SIGKILL.
const IDLE: [&str; 2] = ["/bin/sleep", "3600"];

/// A separate connection to the engine. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct Bare {
    pub(crate) docker: Docker,
    labels: HashMap<String, String>,
    made: Arc<AtomicU64>,
}

impl Bare {
    /// Connects to the engine of `engine`, and checks that it is the same one.
    pub(crate) async fn connect(engine: &Engine) -> anyhow::Result<Self> {
        let docker = Docker::connect_with_defaults()?.negotiate_version().await?;
        let sandbox = fixture::launch(engine, &Image::named(fixture::BASE)).await?;
        let inspected = docker.inspect_container(sandbox.id().as_str(), None).await;
        sandbox.destroy().await;
        let inspected = inspected.context("the bench and termsmith found two engines; set DOCKER_HOST")?;
        let labels = inspected.config.and_then(|config| config.labels).unwrap_or_default();
        // Bare containers have our owner's label, so the next sweep removes them if this process is
        // killed.
        let owner = labels.get(OWNER_LABEL).cloned().unwrap_or_default();
        let labels = HashMap::from([
            (OWNER_LABEL.to_owned(), owner),
            (BENCH_LABEL.to_owned(), std::process::id().to_string()),
        ]);
        Ok(Self { docker, labels, made: Arc::default() })
    }

    /// Creates and starts an idle container without a network. All else is the engine's default.
    pub(crate) async fn start(&self, image: &str) -> anyhow::Result<String> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("termsmith-bench-{}-{number}", std::process::id());
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(Vec::new()),
            cmd: Some(IDLE.map(str::to_owned).to_vec()),
            labels: Some(self.labels.clone()),
            host_config: Some(HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(&name).build();
        self.docker.create_container(Some(options), body).await?;
        self.docker.start_container(&name, None).await?;
        Ok(name)
    }

    /// Removes a container, running or not.
    pub(crate) async fn remove(&self, name: &str) -> anyhow::Result<()> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        Ok(self.docker.remove_container(name, Some(options)).await?)
    }

    /// Runs a command in the usual way: creates an exec, starts it, reads its output to the end,
    /// asks for its status.
    pub(crate) async fn exec(&self, container: &str, argv: &[&str]) -> anyhow::Result<()> {
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(argv.iter().map(|word| (*word).to_owned()).collect()),
            ..CreateExecOptions::default()
        };
        let exec = self.docker.create_exec(container, options).await?.id;
        let started = self.docker.start_exec(&exec, None::<StartExecOptions>).await?;
        if let StartExecResults::Attached { mut output, .. } = started {
            while let Some(piece) = output.next().await {
                piece?;
            }
        }
        let status = self.docker.inspect_exec(&exec).await?.exit_code;
        ensure!(status == Some(0), "exec of {argv:?} ended with {status:?}");
        Ok(())
    }

    /// The host's number of a container's first process.
    pub(crate) async fn pid(&self, container: &str) -> anyhow::Result<Option<u32>> {
        let state = self.docker.inspect_container(container, None).await?.state;
        let pid = state.and_then(|state| state.pid).and_then(|pid| u32::try_from(pid).ok());
        Ok(pid.filter(|pid| *pid != 0))
    }

    /// Removes every container of [`start`](Self::start) that is left after a failure or an
    /// interrupt.
    pub(crate) async fn clear(&self) {
        let label = format!("{BENCH_LABEL}={}", std::process::id());
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let left = self.docker.list_containers(Some(options)).await.unwrap_or_default();
        for id in left.into_iter().filter_map(|container| container.id) {
            // If this fails, a sweep removes the container.
            let _ = self.remove(&id).await;
        }
    }
}
