//! Ends containers of this process, as somebody else on the host could.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use bollard::Docker;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// Interval between requests for the list of containers.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const OWNER_LABEL: &str = "termsmith.owner";
const PURPOSE_LABEL: &str = "termsmith.purpose";

/// The container that is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    /// The container that the solver works in.
    Solver,
    Verifier,
    /// The container in which the verifier runs the solver's programs, i.e. the solver's, started
    /// again.
    Programs,
}

/// How the container is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// `docker kill`.
    Kill,
    /// `docker rm --force`.
    Remove,
}

/// Ends containers of this process only.
pub(crate) struct Killer {
    api: Docker,
    random: ChaCha8Rng,
    pub(crate) killed: u32,
}

impl Killer {
    pub(crate) fn new(socket: &Path, seed: u64) -> Self {
        let socket = socket.to_string_lossy();
        let api = Docker::connect_with_unix(&socket, 60, bollard::API_DEFAULT_VERSION).unwrap();
        Self { api, random: ChaCha8Rng::seed_from_u64(seed), killed: 0 }
    }

    /// Ends a random container about every `pause`, until the caller drops this future.
    pub(crate) async fn storm(&mut self, pause: Duration) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(pause.mul_f64(self.random.random_range(0.5..1.5))).await;
            let running = self.running().await;
            if running.is_empty() {
                continue;
            }
            let how = if self.random.random_bool(0.2) { How::Remove } else { How::Kill };
            let victim = &running[self.random.random_range(0..running.len())];
            self.end(victim, how).await;
        }
    }

    /// Ends a container of this kind, and waits for its replacement. The container lives for up to
    /// `longest` first. If none replaces it, the trial did not need it any more.
    pub(crate) async fn strike(&mut self, victim: Victim, how: How, longest: Duration) {
        let mut struck = Vec::new();
        loop {
            if let Some(found) = self.find(victim).await
                && !struck.contains(&found.id)
            {
                if !struck.is_empty() {
                    return;
                }
                tokio::time::sleep(longest.mul_f64(self.random.random_range(0.0..1.0))).await;
                if self.end(&found, how).await {
                    struck.push(found.id);
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn find(&self, victim: Victim) -> Option<ContainerSummary> {
        let running = self.running().await;
        let with =
            |purpose: &str| running.iter().find(|found| label(found, PURPOSE_LABEL) == purpose).cloned();
        match victim {
            Victim::Solver => with("solver"),
            Victim::Verifier => with("verifier"),
            // A single trial has a verifier beside programs only while programs run. For a service,
            // the solver's own container is started again for them.
            Victim::Programs => with("verifier").and_then(|_| with("programs").or_else(|| with("solver"))),
        }
    }

    async fn end(&mut self, victim: &ContainerSummary, how: How) -> bool {
        let id = victim.id.as_deref().unwrap();
        let ended = match how {
            How::Kill => {
                let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
                self.api.kill_container(id, Some(options)).await
            }
            How::Remove => {
                let options = RemoveContainerOptionsBuilder::new().force(true).build();
                self.api.remove_container(id, Some(options)).await
            }
        };
        // A container that had ended by itself was not killed.
        self.killed += u32::from(ended.is_ok());
        ended.is_ok()
    }

    /// Containers of this process that run.
    async fn running(&self) -> Vec<ContainerSummary> {
        let filters = HashMap::from([("label", vec![OWNER_LABEL])]);
        let options = ListContainersOptionsBuilder::new().filters(&filters).build();
        let listed = self.api.list_containers(Some(options)).await.unwrap_or_default();
        let pid = std::process::id().to_string();
        listed.into_iter().filter(|found| label(found, OWNER_LABEL).split(':').nth(2) == Some(&pid)).collect()
    }
}

fn label<'a>(container: &'a ContainerSummary, name: &str) -> &'a str {
    container.labels.as_ref().and_then(|labels| labels.get(name)).map_or("", String::as_str)
}
