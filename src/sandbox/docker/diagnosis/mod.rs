//! The diagnosis of Docker or Podman for `termsmith doctor`: whether one answers, its version, the
//! limits of its containers, and whether it has the base image. It sends single requests only. So a
//! diagnosis starts no sweeper, and removes nothing.

mod absent;
#[cfg(test)]
mod fake;
mod limits;
mod script;

use std::path::Path;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ImageInspect, SystemInfo, SystemVersion};

use super::api;
use super::discovery::{self, Endpoint, Environment};
use super::quota;
use crate::sandbox::diagnosis::{Diagnosis, Finding, Host};

pub(super) use script::FIX_SCRIPT;

/// The image that Dockerfiles of tasks name. It is public, so that a task can be built on any
/// machine.
const BASE_IMAGE: &str = "debian:bookworm-slim";
/// Label of an image that the script built. `termsmith clean` leaves it, since it is as expensive
/// to replace as a pulled one.
const BUILT_HERE: &str = "termsmith.bootstrap";
/// Engines with which the test suite passes. For others the doctor warns that nobody has tried
/// them.
const TESTED: [(&str, &str); 1] = [("Docker", "20.10")];
/// Time-out of a request. An engine with many containers answers slowly.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Names of the rows.
const ENGINE: &str = "engine";
const LIMITS: &str = "limits";
const IMAGE: &str = "base image";

/// Inspects this host's engine. Changes nothing.
pub(super) async fn diagnose(host: &Host) -> Diagnosis {
    let environment = Environment::new(host.root.clone(), |name| host.env.get(name).cloned());
    let endpoint = match discovery::find(&environment).await {
        Ok(endpoint) => endpoint,
        Err(error) => return without_engine(absent::explain(host, &environment, &error)),
    };
    match Answers::of(&endpoint).await {
        Ok(answers) => answers.judged(host, &endpoint),
        Err(error) => without_engine(Finding::missing(format!("{endpoint}: {}", api::full_message(&error)))),
    }
}

fn without_engine(engine: Finding) -> Diagnosis {
    let rows = vec![(ENGINE, engine), (LIMITS, Finding::needs_engine()), (IMAGE, Finding::needs_engine())];
    Diagnosis { rows, ..Diagnosis::default() }
}

/// The engine's description of itself.
struct Answers {
    version: SystemVersion,
    info: SystemInfo,
    /// `None` if the engine has no base image.
    image: Option<ImageInspect>,
}

impl Answers {
    async fn of(endpoint: &Endpoint) -> Result<Self, Error> {
        let docker = endpoint.client(TIMEOUT)?;
        Ok(Self {
            version: docker.version().await?,
            info: docker.info().await?,
            image: base_image(&docker).await?,
        })
    }

    fn judged(self, host: &Host, endpoint: &Endpoint) -> Diagnosis {
        let Self { version, info, image } = self;
        let facts = limits::Facts {
            info: &info,
            version: &version,
            // Empty if the kernel does not list them.
            mounts: &std::fs::read_to_string(host.path("/proc/self/mounts")).unwrap_or_default(),
            reads_layers: reads_layers(host, endpoint),
            has_tcp_limits: host.path(super::tcp::LIMIT_OF_HOST).exists(),
        };
        let is_local = matches!(endpoint, Endpoint::Unix(_));
        let folder = info.docker_root_dir.as_ref().filter(|_| is_local).map(|folder| host.path(folder));
        Diagnosis {
            rows: vec![
                (ENGINE, judge(endpoint, &version, &info)),
                (LIMITS, judge_limits(&facts)),
                (IMAGE, judge_image(image.as_ref())),
            ],
            limits: limits::limits(&facts),
            image_folder: folder,
            address: Some(endpoint.to_string()),
        }
    }
}

async fn base_image(docker: &Docker) -> Result<Option<ImageInspect>, Error> {
    match docker.inspect_image(BASE_IMAGE).await {
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Whether this user can count the bytes that containers write. Their layers belong to root of the
/// engine's machine.
fn reads_layers(host: &Host, endpoint: &Endpoint) -> bool {
    host.uid == 0 && matches!(endpoint, Endpoint::Unix(_))
}

fn judge(endpoint: &Endpoint, version: &SystemVersion, info: &SystemInfo) -> Finding {
    let components = version.components.as_deref().unwrap_or_default();
    let podman = components.iter().any(|component| component.name.starts_with("Podman"));
    let product = if podman { "Podman" } else { "Docker" };
    let number = version.version.as_deref().unwrap_or("of unknown version");
    let driver = info.driver.as_deref().unwrap_or("unknown storage");
    // An engine that does not name its cgroup version only knows version 1.
    let cgroups = info.cgroup_version.map_or_else(|| "1".to_owned(), |version| version.to_string());
    let detail = format!("{product} {number} at {endpoint}, {driver}, cgroup v{cgroups}");
    let is_tested = TESTED.iter().any(|(name, release)| {
        // 20.1 must not match 20.10, nor 20.10 match 20.100.
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

fn judge_image(image: Option<&ImageInspect>) -> Finding {
    let Some(image) = image else {
        return Finding::missing(format!("the engine has no image {BASE_IMAGE}"))
            .hint(
                "`termsmith doctor --fix` pulls it, or builds it from a Debian mirror if no registry answers",
            )
            .provided_by("base-image");
    };
    let labels = image.config.as_ref().and_then(|config| config.labels.as_ref());
    let was_built_here = labels.is_some_and(|labels| labels.contains_key(BUILT_HERE));
    let origin = if was_built_here { ", built here" } else { "" };
    Finding::ok(format!("{BASE_IMAGE}, {} MB{origin}", image.size.unwrap_or_default() / 1_000_000))
}

/// How a container's disk is limited. `None` if it is not.
fn disk_limit(facts: &limits::Facts<'_>) -> Option<String> {
    let driver = facts.info.driver.as_deref().unwrap_or("unknown storage");
    let storage = quota::backing(facts.info)
        .map_or_else(|| driver.to_owned(), |backing| format!("{driver} on {backing}"));
    if has_quotas(facts.info, facts.mounts) {
        return Some(format!("disk by quota ({storage})"));
    }
    let seconds = quota::POLLED_EVERY.as_secs();
    facts
        .reads_layers
        .then(|| format!("disk by polling every {seconds} s, since {storage} has no usable quotas"))
}

/// Whether quotas limit the disk of each container.
fn has_quotas(info: &SystemInfo, mounts: &str) -> bool {
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
    // If several mounts have the same place, the last one counts.
    let deepest = entries.max_by_key(|(len, _)| *len);
    deepest
        .is_some_and(|(_, options)| options.split(',').any(|option| matches!(option, "prjquota" | "pquota")))
}

/// Whether the engine can limit a container's resources.
fn judge_limits(facts: &limits::Facts<'_>) -> Finding {
    let info = facts.info;
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
    match disk_limit(facts) {
        Some(disk) => Finding::ok(format!("memory, processes and CPU by the kernel, {disk}")),
        None => Finding::warn("the disk of containers is not limited: only root can read their layers").hint(
            "a task may fill the disk; run termsmith as root on the engine's machine, or put the engine's folder on XFS mounted with \
             `prjquota`",
        ),
    }
}

#[cfg(test)]
mod tests;
