//! The container engine: does one answer, what is it, and how to get one.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::Duration;

use super::endpoint::{self, DEFAULT_SOCKET, DockerHost, ProbeFailure};
use super::error::FixError;
use super::http::{self, Endpoint, Timeouts};
use super::{Context, Events, Finding, System, apt, leftover, start};

/// Engines that the test suite passes on; others may work, and we say that we do not know.
const TESTED: [(&str, &str); 1] = [("Docker", "20.10")];
/// Packages of Debian and its kin; iptables is what the engine's networks are made with.
const PACKAGES: [&str; 2] = ["docker.io", "iptables"];
/// A question about the engine's state; slow while it is busy with many containers.
const QUESTION: Timeouts = Timeouts { idle: Duration::from_secs(20), total: Duration::from_secs(20) };

/// Is an engine there, and is it one that was tested?
pub(super) fn look(context: &Context<'_>) -> Finding {
    let system = context.system;
    let endpoint = match Engine::of(system) {
        Engine::Answers(endpoint) => endpoint,
        absent => return absent.describe(),
    };
    match (ask::<Version>(&endpoint, "/version"), ask::<Info>(&endpoint, "/info")) {
        (Ok(version), Ok(info)) => judge(&endpoint, &version, &info),
        (Err(error), _) | (_, Err(error)) => Finding::missing(format!(
            "the engine at {endpoint} does not describe itself: {}",
            error.explain()
        )),
    }
}

/// Can it hold a container to its limits?
pub(super) fn look_at_limits(context: &Context<'_>) -> Finding {
    let Ok(endpoint) = endpoint::find(context.system) else { return Finding::needs_engine() };
    match ask::<Info>(&endpoint, "/info") {
        Ok(info) => judge_limits(&info),
        Err(error) => Finding::missing(error.explain()),
    }
}

/// Starts or installs an engine.
pub(super) fn fix(context: &Context<'_>, events: &mut Events<'_>) -> Result<(), FixError> {
    let system = context.system;
    if matches!(Engine::of(system), Engine::Missing) {
        apt::install(system, &PACKAGES, events)?;
    }
    match Engine::of(system) {
        Engine::Answers(_) => Ok(()),
        Engine::Elsewhere { host, .. } => Err(FixError::Elsewhere { endpoint: host }),
        Engine::Denied { socket } => Err(FixError::Denied { socket }),
        Engine::Running { pid } => start::wait_for(system, pid, events),
        Engine::Stopped { dockerd } => start::start(system, &dockerd, events),
        Engine::Missing => Err(FixError::NoEngine),
    }
}

/// What there is of an engine.
#[derive(Debug, PartialEq, Eq)]
enum Engine {
    Answers(Endpoint),
    /// DOCKER_HOST names a place that is silent and not ours to start.
    Elsewhere {
        host: String,
        why: String,
    },
    /// It listens, but not to this user.
    Denied {
        socket: PathBuf,
    },
    /// Its process lives, but it does not answer (yet).
    Running {
        pid: u32,
    },
    /// Installed, not running.
    Stopped {
        dockerd: PathBuf,
    },
    Missing,
}

impl Engine {
    fn of(system: &System) -> Self {
        let silences = match endpoint::find(system) {
            Ok(endpoint) => return Self::Answers(endpoint),
            Err(silences) => silences,
        };
        let host = system.var("DOCKER_HOST").unwrap_or_default().to_owned();
        match endpoint::docker_host(system) {
            DockerHost::Unknown(_) => {
                let why = "only unix:// and tcp:// without TLS are spoken".to_owned();
                return Self::Elsewhere { host, why };
            }
            DockerHost::This(wanted) if !is_default(system, &wanted) => {
                let why = silences.first().map(ProbeFailure::explain).unwrap_or_default();
                return Self::Elsewhere { host, why };
            }
            DockerHost::This(_) | DockerHost::Any => {}
        }
        if let Some(socket) = silences.iter().find(|probe_failure| probe_failure.is_denied()) {
            let socket = match &socket.endpoint {
                Endpoint::Unix(path) => path.clone(),
                Endpoint::Tcp(address) => PathBuf::from(address),
            };
            return Self::Denied { socket };
        }
        if let Some(pid) = leftover::running_dockerd(system) {
            return Self::Running { pid };
        }
        system.find_program("dockerd").map_or(Self::Missing, |dockerd| Self::Stopped { dockerd })
    }

    fn describe(&self) -> Finding {
        match self {
            Self::Answers(endpoint) => Finding::ok(endpoint.to_string()),
            Self::Elsewhere { host, why } => Finding::missing(format!("DOCKER_HOST is `{host}`: {why}"))
                .hint("start the engine there, or unset DOCKER_HOST"),
            Self::Denied { socket } => {
                let error = FixError::Denied { socket: socket.clone() };
                Finding { hint: error.hint(), ..Finding::missing(error.to_string()) }
            }
            Self::Running { pid } => {
                Finding::missing(format!("dockerd runs (process {pid}) but does not answer"))
                    .hint("`termsmith doctor --fix` waits for it")
            }
            Self::Stopped { dockerd } => {
                Finding::missing(format!("`{}` is installed but not running", dockerd.display()))
                    .hint("`termsmith doctor --fix` starts it")
            }
            Self::Missing => Finding::missing("no Docker or Podman answers, and Docker is not installed")
                .hint(format!(
                    "`termsmith doctor --fix` installs {} where apt is at hand",
                    PACKAGES.join(" and ")
                )),
        }
    }
}

/// Whether this is the place where an engine of this machine would listen.
fn is_default(system: &System, endpoint: &Endpoint) -> bool {
    let ours = [DEFAULT_SOCKET, "/run/docker.sock"].map(|socket| Endpoint::Unix(system.path(socket)));
    ours.contains(endpoint)
}

/// Asks the engine for a JSON document.
pub(super) fn ask<T: DeserializeOwned>(endpoint: &Endpoint, path: &str) -> Result<T, FixError> {
    let refused = |status, message| FixError::Refused { what: "describe itself", status, message };
    let reply = http::get(endpoint, path, QUESTION)?;
    if !reply.is_success() {
        return Err(refused(reply.status, message_of(&reply.body)));
    }
    serde_json::from_slice(&reply.body)
        .map_err(|error| refused(reply.status, format!("not the expected JSON: {error}")))
}

/// What the engine says about a failure: `{"message": …}`, or the plain body.
pub(super) fn message_of(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Failure {
        message: String,
    }
    serde_json::from_slice::<Failure>(body)
        .map_or_else(|_| String::from_utf8_lossy(body).trim().to_owned(), |failure| failure.message)
}

/// `GET /version`, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Version {
    version: String,
    components: Vec<Component>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Component {
    name: String,
}

/// `GET /info`, as far as it matters here. Absent fields are those of older engines.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Info {
    driver: String,
    cgroup_version: String,
    memory_limit: bool,
    pids_limit: bool,
    cpu_cfs_quota: bool,
    /// Where images and containers lie, on the engine's machine.
    pub(super) docker_root_dir: PathBuf,
}

impl Default for Info {
    fn default() -> Self {
        Self {
            driver: "unknown storage".to_owned(),
            // Engines that do not say know only the first.
            cgroup_version: "1".to_owned(),
            memory_limit: false,
            pids_limit: false,
            cpu_cfs_quota: false,
            docker_root_dir: PathBuf::new(),
        }
    }
}

fn judge(endpoint: &Endpoint, version: &Version, info: &Info) -> Finding {
    let podman = version.components.iter().any(|component| component.name.starts_with("Podman"));
    let product = if podman { "Podman" } else { "Docker" };
    let number = &version.version;
    let detail =
        format!("{product} {number} at {endpoint}, {}, cgroup v{}", info.driver, info.cgroup_version);
    let is_tested = TESTED.iter().any(|(name, release)| {
        // 20.1 must not pass for 20.10, nor 20.10 for 20.100.
        let rest = number.strip_prefix(release);
        *name == product && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    });
    if info.driver == "vfs" {
        return Finding::warn(detail)
            .hint("vfs copies the whole image for every container: slow, and large on disk");
    }
    if !is_tested {
        let tested: Vec<String> = TESTED.iter().map(|(name, release)| format!("{name} {release}")).collect();
        return Finding::warn(detail)
            .hint(format!("not among the versions that were tested: {}", tested.join(", ")));
    }
    Finding::ok(detail)
}

fn judge_limits(info: &Info) -> Finding {
    let limits = [("memory", info.memory_limit), ("processes", info.pids_limit), ("CPU", info.cpu_cfs_quota)];
    let absent: Vec<&str> = limits.iter().filter(|(_, present)| !present).map(|(name, _)| *name).collect();
    if absent.is_empty() {
        Finding::ok("memory, processes and CPU can be limited")
    } else {
        Finding::warn(format!("the engine cannot limit {}", absent.join(", ")))
            .hint("a task may use up the machine; enable these cgroup controllers in the kernel")
    }
}

#[cfg(test)]
mod tests;
