//! The container engine: whether one answers, which one it is, and how to get one.

use std::path::{Path, PathBuf};

use bollard::models::{SystemInfo, SystemVersion};

use super::error::FixError;
use super::{Context, Events, Finding, System, apt, client, daemon, stale};
use crate::sandbox::discovery::{DEFAULT_SOCKET, DockerHost, Endpoint, NotFound, ProbeFailure};
use crate::sandbox::quota;

/// Engines with which the test suite passes. With others termsmith may work as well; the doctor warns that it does not know.
const TESTED: [(&str, &str); 1] = [("Docker", "20.10")];
/// Packages of Debian and its derivatives; the engine needs iptables for its networks.
const PACKAGES: [&str; 2] = ["docker.io", "iptables"];

/// Whether an engine answers, and whether it is one that was tested.
pub(super) fn inspect(context: &Context<'_>) -> Finding {
    let endpoint = match Engine::of(context.system) {
        Engine::Answers(endpoint) => endpoint,
        absent => return absent.describe(),
    };
    match (client::version(&endpoint), client::info(&endpoint)) {
        (Ok(version), Ok(info)) => judge(&endpoint, &version, &info),
        (Err(error), _) | (_, Err(error)) => Finding::missing(error.explain()),
    }
}

/// Whether the engine can limit a container's resources.
pub(super) fn inspect_limits(context: &Context<'_>) -> Finding {
    let Ok(endpoint) = client::find(context.system) else { return Finding::needs_engine() };
    match client::info(&endpoint) {
        Ok(info) => judge_limits(&info, &mounts(context.system), reads_layers(context.system, &endpoint)),
        Err(error) => Finding::missing(error.explain()),
    }
}

/// Whether this user can count what containers write: their layers are root's, on the machine of the engine.
pub(super) fn reads_layers(system: &System, endpoint: &Endpoint) -> bool {
    system.uid == 0 && matches!(endpoint, Endpoint::Unix(_))
}

/// Starts or installs an engine.
pub(super) fn fix(context: &Context<'_>, events: &mut Events<'_>) -> Result<(), FixError> {
    let system = context.system;
    if matches!(Engine::of(system), Engine::Missing) {
        apt::install(system, &PACKAGES, events)?;
    }
    match Engine::of(system) {
        Engine::Answers(_) => Ok(()),
        Engine::NotLocal { host, .. } => Err(FixError::NotLocal { endpoint: host }),
        Engine::Denied { socket } => Err(FixError::Denied { socket }),
        Engine::Running { pid } => daemon::wait_for(system, pid, events),
        Engine::Stopped { dockerd } => daemon::start(system, &dockerd, events),
        Engine::Missing => Err(FixError::NoEngine),
    }
}

/// The state of this machine's engine.
#[derive(Debug, PartialEq, Eq)]
enum Engine {
    Answers(Endpoint),
    /// `DOCKER_HOST` names an endpoint that does not answer and that this machine cannot start.
    NotLocal {
        host: String,
        why: String,
    },
    /// It listens, but this user may not connect.
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
        let environment = system.environment();
        let host = environment.docker_host.clone().unwrap_or_default();
        let failures = match client::find(system) {
            Ok(endpoint) => return Self::Answers(endpoint),
            Err(error @ NotFound::UnsupportedHost { .. }) => {
                return Self::NotLocal { host, why: error.to_string() };
            }
            Err(NotFound::NoAnswer { failures }) => failures,
        };
        match DockerHost::of(&environment) {
            DockerHost::Endpoint(endpoint) if !is_default(system, &endpoint) => {
                let why = failures.first().map(|failure| failure.cause.to_string()).unwrap_or_default();
                return Self::NotLocal { host, why };
            }
            DockerHost::Endpoint(_) | DockerHost::Unset | DockerHost::Unsupported(_) => {}
        }
        if let Some(socket) = denied(system, &failures) {
            return Self::Denied { socket };
        }
        if let Some(pid) = stale::running_dockerd(system) {
            return Self::Running { pid };
        }
        system.find_program("dockerd").map_or(Self::Missing, |dockerd| Self::Stopped { dockerd })
    }

    fn describe(&self) -> Finding {
        match self {
            Self::Answers(endpoint) => Finding::ok(endpoint.to_string()),
            Self::NotLocal { host, why } => Finding::missing(format!("DOCKER_HOST is `{host}`: {why}"))
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
                    "`termsmith doctor --fix` installs {} on systems with apt",
                    PACKAGES.join(" and ")
                )),
        }
    }
}

/// The socket of this machine's Docker, if that refused this user. Membership in Docker's group does not open other sockets.
fn denied(system: &System, failures: &[ProbeFailure]) -> Option<PathBuf> {
    failures.iter().filter(|failure| failure.is_denied()).find_map(|failure| match &failure.endpoint {
        Endpoint::Unix(path) if is_default(system, &failure.endpoint) => Some(path.clone()),
        Endpoint::Unix(_) | Endpoint::Tcp(_) => None,
    })
}

/// Whether this machine's engine would listen there.
fn is_default(system: &System, endpoint: &Endpoint) -> bool {
    let local = [DEFAULT_SOCKET, "/run/docker.sock"].map(|socket| Endpoint::Unix(system.path(socket)));
    local.contains(endpoint)
}

fn judge(endpoint: &Endpoint, version: &SystemVersion, info: &SystemInfo) -> Finding {
    let components = version.components.as_deref().unwrap_or_default();
    let podman = components.iter().any(|component| component.name.starts_with("Podman"));
    let product = if podman { "Podman" } else { "Docker" };
    let number = version.version.as_deref().unwrap_or("of unknown version");
    let driver = info.driver.as_deref().unwrap_or("unknown storage");
    // Engines that do not say which cgroups they use know only the first kind.
    let cgroups = info.cgroup_version.map_or_else(|| "1".to_owned(), |version| version.to_string());
    let detail = format!("{product} {number} at {endpoint}, {driver}, cgroup v{cgroups}");
    let is_tested = TESTED.iter().any(|(name, release)| {
        // 20.1 must not count as 20.10, nor 20.10 as 20.100.
        let rest = number.strip_prefix(release);
        *name == product && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    });
    if driver == "vfs" {
        return Finding::warn(detail)
            .hint("vfs copies the whole image for every container: slow, and large on disk");
    }
    if !is_tested {
        let tested: Vec<String> = TESTED.iter().map(|(name, release)| format!("{name} {release}")).collect();
        return Finding::warn(detail)
            .hint(format!("this version was not tested; tested: {}", tested.join(", ")));
    }
    Finding::ok(detail)
}

/// The mounted file systems, as the kernel lists them; empty where it does not.
pub(super) fn mounts(system: &System) -> String {
    std::fs::read_to_string(system.path("/proc/self/mounts")).unwrap_or_default()
}

/// How a container's disk is limited; `None` if it is not. `reads_layers`: this user can count what containers write.
fn disk_limit(info: &SystemInfo, mounts: &str, reads_layers: bool) -> Option<String> {
    let driver = info.driver.as_deref().unwrap_or("unknown storage");
    let storage =
        quota::backing(info).map_or_else(|| driver.to_owned(), |backing| format!("{driver} on {backing}"));
    if has_quotas(info, mounts) {
        return Some(format!("disk by quota ({storage})"));
    }
    let seconds = quota::POLLED_EVERY.as_secs();
    reads_layers.then(|| format!("disk by polling every {seconds} s, since {storage} has no usable quotas"))
}

/// Whether quotas limit the disk of each container.
pub(super) fn has_quotas(info: &SystemInfo, mounts: &str) -> bool {
    quota::is_possible(info) && has_project_quotas(info, mounts)
}

/// Whether the engine's folder is on a file system mounted with project quotas.
fn has_project_quotas(info: &SystemInfo, mounts: &str) -> bool {
    let Some(folder) = info.docker_root_dir.as_deref().map(Path::new) else { return false };
    let entries = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, _, options) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(place).then_some((place.len(), options))
    });
    // Of mounts at the same place the last one counts.
    let deepest = entries.max_by_key(|(len, _)| *len);
    deepest
        .is_some_and(|(_, options)| options.split(',').any(|option| matches!(option, "prjquota" | "pquota")))
}

fn judge_limits(info: &SystemInfo, mounts: &str, reads_layers: bool) -> Finding {
    let limits = [("memory", info.memory_limit), ("processes", info.pids_limit), ("CPU", info.cpu_cfs_quota)];
    let absent: Vec<&str> =
        limits.iter().filter(|(_, present)| *present != Some(true)).map(|(name, _)| *name).collect();
    if !absent.is_empty() {
        return Finding::warn(format!("the engine cannot limit {}", absent.join(", ")))
            .hint("a task may use up the machine; enable these cgroup controllers in the kernel");
    }
    if quota::backing(info) == Some("tmpfs") {
        return Finding::warn(
            "the engine keeps the files of containers in memory, where they count toward their memory limits",
        )
        .hint("a task that writes many files may run out of memory; put the engine's folder on a disk");
    }
    match disk_limit(info, mounts, reads_layers) {
        Some(disk) => Finding::ok(format!("memory, processes and CPU by the kernel, {disk}")),
        None => Finding::warn("the disk of containers is not limited: only root can read their layers").hint(
            "a task may fill the disk; run termsmith as root on the engine's machine, or put the engine's folder on XFS mounted with \
             `prjquota`",
        ),
    }
}

#[cfg(test)]
mod tests;
