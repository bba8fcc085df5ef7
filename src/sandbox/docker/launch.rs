//! Starts a container from an image, up to a running guest.

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use bollard::body_try_stream;
use bollard::container::LogOutput;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures_util::{StreamExt as _, stream};

use crate::model::Profile;
use crate::sandbox::connection::{Piece, Streams};
use crate::sandbox::container::Container;
use crate::sandbox::{
    ContainerId, EngineError, LaunchSpec, Network, Preload, Sandbox, Spooled, guest_binary,
};

use super::api::{self, asked_again};
use super::container::DockerContainer;
use super::quota;
use super::snapshot::is_snapshot;
use super::watchdog::Watched;
use super::{DockerEngine, OWNER_LABEL, PURPOSE_LABEL, Shared};
use super::{terminals, volumes};

/// Size of the pieces in which an upload is sent.
const UPLOAD_PIECE: u64 = 256 << 10;
/// Folder of the guest in every container.
pub(super) const GUEST_FOLDER: &str = "/.termsmith";
const GUEST_PATH: &str = "/.termsmith/guest";
/// Capabilities of a solver, which is root in its container: those for files, users, processes and
/// ports. Mounts are not among them.
const CAPABILITIES: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "KILL", "NET_BIND_SERVICE"];
/// Soft and hard limit of open files. They are Linux's own defaults. An engine's default of
/// 1,048,576 slows down daemons that loop over all descriptors. An engine without SYS_RESOURCE
/// cannot give a hard limit above its own.
pub(super) const OPEN_FILES: (i64, i64) = (1024, 4096);
/// Files and folders that containers see as empty. This is the engine's own list, since a list of
/// ours replaces it.
const ENGINE_MASKED: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
/// More files and folders that containers see as empty. They tell about the host or other
/// containers, e.g. the host's boot options, or counters that others can change. The files that
/// `ps`, `top`, `free` and `vmstat` read stay visible. Engines ignore paths that do not exist.
const MASKED: [&str; 24] = [
    "/proc/cmdline",
    "/proc/locks",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/schedstat",
    "/proc/diskstats",
    "/proc/zoneinfo",
    "/proc/buddyinfo",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    "/sys/kernel/slab",
    "/proc/pressure",
    "/proc/key-users",
    // The activity of the host's file systems, e.g. of a journal.
    "/proc/fs",
    "/sys/fs/ext4",
    // Other containers change these counters, so they could carry messages.
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/pty/nr",
    "/proc/kallsyms",
    "/proc/modules",
    // The energy use of processors shows what others compute. Newer engines mask this folder and
    // `thermal_throttle` themselves.
    "/sys/devices/virtual/powercap",
];
/// Maximum number of processors whose counts of overheating are masked. Each takes a mount at every
/// start, if the host has such counts.
const MAX_MASKED_PROCESSORS: usize = 256;
/// The kernel's default period of CPU shares.
const CPU_PERIOD_MICROS: i64 = 100_000;
const MIB: i64 = 1024 * 1024;
/// Host name in every container. The engine's default is a random id, so observations would differ
/// between runs.
const HOST_NAME: &str = "sandbox";

/// Home folder of root in every container.
const HOME: &str = "/root";

impl DockerEngine {
    /// Creates a container, fills it, attaches to it, starts it, and waits for the guest's hello.
    pub(in crate::sandbox) async fn launch(&self, spec: &LaunchSpec<'_>) -> Result<Sandbox, EngineError> {
        let shared = &self.shared;
        let id = shared.new_name();
        shared.live().insert(id.clone(), Watched::new(spec.limits));
        // From now on the container is removed however this function ends, also if its future is
        // dropped.
        let handle = DockerContainer { engine: self.clone(), id: id.clone() };
        let container = Container::new(id.clone(), handle, spec.image.clone());
        tracing::debug!(container = %id, purpose = spec.purpose, image = spec.image.reference(), "launching a container");
        shared.create(&id, spec).await?;
        for preload in &spec.preload {
            shared.upload(&id, preload).await?;
        }
        if is_snapshot(spec.image) {
            shared.make_account_files_plain(&id).await?;
        }
        self.start(container, spec.workdir).await
    }

    /// Unpacks an archive in a container.
    pub(in crate::sandbox) async fn upload(
        &self,
        id: &ContainerId,
        preload: &Preload,
    ) -> Result<(), EngineError> {
        self.shared.upload(id, preload).await
    }

    /// Starts a stopped container again. Only a new guest runs in it.
    pub(in crate::sandbox) async fn restart(
        &self,
        container: Container,
        workdir: &str,
    ) -> Result<Sandbox, EngineError> {
        let shared = &self.shared;
        let id = &container.id;
        // If a container is still ending, the engine takes it for a running one, and the start does
        // nothing.
        self.ended(id).await?;
        if let Some(watched) = shared.live().get_mut(id) {
            watched.restarted();
        }
        if shared.guest_is_uploaded.load(Ordering::Relaxed) {
            // Processes in the container ran as root. Without a mount they could have replaced the
            // guest.
            let uploaded = match shared.upload_guest(id).await {
                Err(EngineError::Refused { .. }) => shared.upload_guest(id).await,
                other => other,
            };
            uploaded.map_err(not_started)?;
        }
        self.start(container, workdir).await
    }

    /// Attaches to the container, starts it, and waits for the guest's hello.
    async fn start(&self, container: Container, workdir: &str) -> Result<Sandbox, EngineError> {
        let shared = &self.shared;
        let streams = shared.attach(&container.id).await?;
        // Starting a running container is no error, so the request may be repeated. A container
        // that cannot be started becomes part of a verdict, since the solver's processes may be the
        // cause. The engine's passing trouble must not look like that.
        let started = asked_again(|| shared.docker.start_container(container.id.as_str(), None)).await;
        started.map_err(|error| not_started(shared.error("start a container", error)))?;
        let id = container.id.clone();
        let connected = Sandbox::connect(container, streams, workdir, HOME);
        tokio::join!(connected, shared.limit_tcp(&id)).0
    }
}

impl Shared {
    async fn create(&self, id: &ContainerId, spec: &LaunchSpec<'_>) -> Result<(), EngineError> {
        if !self.guest_is_uploaded.load(Ordering::Relaxed) {
            match self.create_with(id, spec, Guest::Mounted).await {
                Err(EngineError::Refused { message, .. })
                    if message.contains("bind source path does not exist") =>
                {
                    self.guest_is_uploaded.store(true, Ordering::Relaxed);
                    self.forget_guest(id.as_str());
                }
                other => return other,
            }
        }
        self.create_with(id, spec, Guest::Uploaded).await?;
        self.upload_guest(id).await
    }

    async fn mounted_guest(&self, id: &ContainerId) -> Result<PathBuf, EngineError> {
        let copied = self.own_guest(id.as_str()).await;
        copied.map_err(|source| EngineError::Io {
            action: "copy the guest",
            path: self.guest.clone(),
            source,
        })
    }

    async fn upload_guest(&self, id: &ContainerId) -> Result<(), EngineError> {
        let tar = guest_tar().map_err(|source| EngineError::Io {
            action: "pack",
            path: self.guest.clone(),
            source,
        })?;
        self.upload(id, &Preload { dest: "/".to_owned(), tar: tar.into() }).await
    }

    async fn create_with(
        &self,
        id: &ContainerId,
        spec: &LaunchSpec<'_>,
        guest: Guest,
    ) -> Result<(), EngineError> {
        let mut mounts = match guest {
            // If the engine cannot see the file, it refuses a mount, but not a "bind".
            Guest::Mounted => vec![Mount {
                typ: Some(MountType::BIND),
                source: Some(self.mounted_guest(id).await?.to_string_lossy().into_owned()),
                target: Some(GUEST_PATH.to_owned()),
                read_only: Some(true),
                ..Mount::default()
            }],
            Guest::Uploaded => Vec::new(),
        };
        if self.limits_terminals {
            mounts.push(terminals::mount());
        }
        mounts.extend(spec.layer.map(volumes::mount));
        let create = async |body: ContainerCreateBody| {
            let options = CreateContainerOptionsBuilder::new().name(id.as_str()).build();
            let created = self.docker.create_container(Some(options), body).await;
            created.map(drop).map_err(|error| self.error("create a container", error))
        };
        let body = ContainerCreateBody {
            image: Some(spec.image.reference().to_owned()),
            entrypoint: Some(vec![GUEST_PATH.to_owned()]),
            cmd: Some(Vec::new()),
            user: Some("0:0".to_owned()),
            working_dir: Some(spec.workdir.to_owned()),
            // Either way the container has a network namespace of its own, with only loopback.
            // Without networking the engine's network library is not used. That saves half of a
            // start's time, and most of its processor time.
            network_disabled: (spec.network == Network::None).then_some(true),
            hostname: (spec.network == Network::None).then(|| HOST_NAME.to_owned()),
            // With a terminal, bollard would guess from the first byte of output whether it is
            // multiplexed.
            tty: Some(false),
            open_stdin: Some(true),
            // The guest's input ends with this process, and then the guest ends.
            stdin_once: Some(true),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            labels: Some(HashMap::from([
                (OWNER_LABEL.to_owned(), self.owner.to_string()),
                (PURPOSE_LABEL.to_owned(), spec.purpose.to_owned()),
            ])),
            host_config: Some(HostConfig { mounts: Some(mounts), ..host_config(spec, self.processors) }),
            ..ContainerCreateBody::default()
        };
        if !self.has_quotas.load(Ordering::Relaxed) {
            return create(body).await;
        }
        let mut limited = body.clone();
        if let Some(host) = &mut limited.host_config {
            host.storage_opt = Some(quota::storage_opt(spec.limits.storage_mb));
        }
        match create(limited).await {
            Err(error) if quota::is_refused(&error) => {
                tracing::debug!(%error, "the engine's storage has no quotas; disk limits are polled");
                self.has_quotas.store(false, Ordering::Relaxed);
                create(body).await
            }
            other => other,
        }
    }

    /// Unpacks an archive. Missing folders are created. Existing folders keep their owner and mode.
    pub(super) async fn upload(&self, id: &ContainerId, preload: &Preload) -> Result<(), EngineError> {
        let send = async |path: &str, tar: &Spooled| {
            let options = UploadToContainerOptionsBuilder::new().path(path).build();
            let body = body_try_stream(stream::iter(pieces(tar.reader())).map(|piece| piece.map(Into::into)));
            self.docker.upload_to_container(id.as_str(), Some(options), body).await
        };
        let dest = preload.dest.trim_end_matches('/');
        match send(&format!("{dest}/"), &preload.tar).await {
            Err(error) if api::is_missing_path(&error) => {}
            other => return other.map_err(|error| self.error("upload files", error)),
        }
        // One request creates all missing folders, below the deepest one that exists.
        for (place, _) in dest.rmatch_indices('/') {
            let (parent, missing) = (&dest[..=place], &dest[place + 1..]);
            let skeleton = folder_tar(missing).map_err(|source| EngineError::Io {
                action: "pack",
                path: dest.into(),
                source,
            })?;
            match send(parent, &skeleton.into()).await {
                Ok(()) => break,
                Err(error) if api::is_missing_path(&error) => {}
                Err(error) => return Err(self.error("make a folder for files", error)),
            }
        }
        send(&format!("{dest}/"), &preload.tar).await.map_err(|error| self.error("upload files", error))
    }

    /// Attaches before the start. So no byte is lost, and no polling is needed.
    async fn attach(&self, id: &ContainerId) -> Result<Streams, EngineError> {
        let options =
            AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).stderr(true).build();
        let attached = self.docker.attach_container(id.as_str(), Some(options)).await;
        let attached = attached.map_err(|error| self.error("attach to a container", error))?;
        let output = attached.output.map(|piece| match piece {
            Ok(LogOutput::StdOut { message }) => Ok(Piece::Out(message.to_vec())),
            Ok(
                LogOutput::StdErr { message } | LogOutput::Console { message } | LogOutput::StdIn { message },
            ) => Ok(Piece::Err(message.to_vec())),
            Err(error) => Err(api::full_message(&error)),
        });
        Ok(Streams { input: attached.input, output: Box::pin(output) })
    }
}

/// The error of a request that fails again and again. Only the container's own files can cause
/// that.
fn not_started(error: EngineError) -> EngineError {
    match error {
        EngineError::Refused { status, message, .. } => EngineError::NotStarted { status, message },
        other => other,
    }
}

/// How the guest comes into the container.
enum Guest {
    Mounted,
    Uploaded,
}

/// Paths that containers see as empty, on a host with this many processors.
fn masked_paths(processors: usize) -> Vec<String> {
    let throttle = |number| format!("/sys/devices/system/cpu/cpu{number}/thermal_throttle");
    let fixed = ENGINE_MASKED.iter().chain(&MASKED).map(|path| (*path).to_owned());
    fixed.chain((0..processors.min(MAX_MASKED_PROCESSORS)).map(throttle)).collect()
}

fn host_config(spec: &LaunchSpec<'_>, processors: usize) -> HostConfig {
    let limits = spec.limits;
    let memory = i64::from(limits.memory_mb) * MIB;
    let ulimit = |name: &str, soft: i64, hard: i64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft),
        hard: Some(hard),
    };
    let storage = i64::from(limits.storage_mb) * MIB;
    let mut capabilities: Vec<String> = CAPABILITIES.map(str::to_owned).to_vec();
    let stock = spec.profile == Profile::Stock;
    if spec.profile == Profile::Net {
        capabilities.push("NET_ADMIN".to_owned());
    }
    HostConfig {
        network_mode: Some(match &spec.network {
            Network::None => "none".to_owned(),
            Network::Public => "default".to_owned(),
            Network::Of(other) => format!("container:{other}"),
        }),
        cap_drop: (!stock).then(|| vec!["ALL".to_owned()]),
        cap_add: (!stock).then_some(capabilities),
        security_opt: (!stock).then(|| vec!["no-new-privileges".to_owned()]),
        masked_paths: (!stock).then(|| masked_paths(processors)),
        // Without `init`, the guest is process 1 itself. It reaps zombies, and only process 1
        // survives `kill -9 -1`.
        init: None,
        pids_limit: Some(i64::from(limits.pids)),
        memory: Some(memory),
        memory_swap: Some(memory),
        // The engine refuses `nano_cpus` if the host has fewer processors than the task asks for.
        cpu_period: Some(CPU_PERIOD_MICROS),
        cpu_quota: Some((limits.cpus * CPU_PERIOD_MICROS as f64) as i64),
        ulimits: Some(vec![
            ulimit("nofile", OPEN_FILES.0, OPEN_FILES.1),
            // No single file can exceed the disk limit. The watchdog checks the sum.
            ulimit("fsize", storage, storage),
            ulimit("core", 0, 0),
        ]),
        // The output is read from the attached stream. A log driver would write all of it to the
        // host's disk as well.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    }
}

/// The pieces of an upload. They are read as the engine takes them.
fn pieces(mut reader: impl Read) -> impl Iterator<Item = std::io::Result<Vec<u8>>> {
    std::iter::from_fn(move || {
        let mut piece = Vec::new();
        match reader.by_ref().take(UPLOAD_PIECE).read_to_end(&mut piece) {
            Ok(0) => None,
            Ok(_) => Some(Ok(piece)),
            Err(error) => Some(Err(error)),
        }
    })
}

fn guest_tar() -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(guest_binary::BYTES.len() as u64);
    tar.append_data(&mut header, GUEST_PATH.trim_start_matches('/'), guest_binary::BYTES)?;
    tar.into_inner()
}

/// An archive that contains only the folders of `path`.
fn folder_tar(path: &str) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        tar.append_data(&mut header, format!("{}/", &path[..end]), std::io::empty())?;
    }
    tar.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_every_processor_are_masked() {
        let check = |processors: usize, expect: usize| {
            let paths = masked_paths(processors);
            let counts = paths.iter().filter(|path| path.ends_with("/thermal_throttle")).count();
            assert_eq!((counts, paths.len()), (expect, expect + ENGINE_MASKED.len() + MASKED.len()));
        };
        check(0, 0);
        check(2, 2);
        check(10_000, MAX_MASKED_PROCESSORS);
        assert!(masked_paths(2).contains(&"/sys/devices/system/cpu/cpu1/thermal_throttle".to_owned()));
    }
}
