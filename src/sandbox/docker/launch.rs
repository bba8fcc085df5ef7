//! From an image to a running guest.

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
use super::terminals;
use super::watchdog::Watched;
use super::{DockerEngine, OWNER_LABEL, PURPOSE_LABEL, Shared};

/// Bytes of an upload that travel as one chunk.
const UPLOAD_PIECE: u64 = 256 << 10;
/// Folder of the guest in every container.
pub(super) const GUEST_FOLDER: &str = "/.termsmith";
const GUEST_PATH: &str = "/.termsmith/guest";
/// Capabilities of a solver, which is root in the container: files, users, processes and ports. `sudo` and mounts are excluded.
const CAPABILITIES: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "KILL", "NET_BIND_SERVICE"];
/// Open files, soft and hard: Linux's own defaults. An engine's default of 1,048,576 slows down daemons that loop over all descriptors, and a
/// higher hard limit than the engine's own cannot be had from an engine without SYS_RESOURCE.
pub(super) const OPEN_FILES: (i64, i64) = (1024, 4096);
/// Files and folders that read as empty: the engine's own list, which a list of ours replaces.
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
/// The same for what says something of the host or of other containers: the host's boot options, locks that others hold, counters that
/// others can change. What `ps`, `top`, `free` and `vmstat` read stays. Engines mask what exists of these.
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
    // What the file systems of the host do, e.g. its journal.
    "/proc/fs",
    "/sys/fs/ext4",
    // Each of these goes up and down with what another container holds, so it carries messages.
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/pty/nr",
    "/proc/kallsyms",
    "/proc/modules",
    // The energy that processors take tells what others compute. Newer engines mask this folder, and `thermal_throttle`, themselves.
    "/sys/devices/virtual/powercap",
];
/// Processors whose counts of overheating are masked, at most: each takes a mount at every start, where the host has such counts.
const MAX_MASKED_PROCESSORS: usize = 256;
/// The kernel's default period of CPU shares.
const CPU_PERIOD_MICROS: i64 = 100_000;
const MIB: i64 = 1024 * 1024;
/// Host name in every container: the engine's default, a random id, would make observations differ between runs.
const HOST_NAME: &str = "sandbox";

/// Home folder of root in every container.
const HOME: &str = "/root";

impl DockerEngine {
    /// Creates, fills, attaches, starts, and waits for the guest's hello.
    pub(in crate::sandbox) async fn launch(&self, spec: &LaunchSpec<'_>) -> Result<Sandbox, EngineError> {
        let shared = &self.shared;
        let id = shared.new_name();
        shared.live().insert(id.clone(), Watched::new(spec.limits));
        // From here on the container is removed however this function ends, also if its future is dropped.
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

    /// Restarts a stopped container with only a new guest running in it.
    pub(in crate::sandbox) async fn restart(
        &self,
        container: Container,
        workdir: &str,
    ) -> Result<Sandbox, EngineError> {
        let shared = &self.shared;
        let id = &container.id;
        // The engine treats the start of a container that is still ending as the start of a running one, and does nothing.
        self.ended(id).await?;
        if let Some(watched) = shared.live().get_mut(id) {
            watched.restarted();
        }
        if shared.guest_is_uploaded.load(Ordering::Relaxed) {
            // Processes in it ran as root, and without a mount they could replace the guest.
            let uploaded = match shared.upload_guest(id).await {
                Err(EngineError::Refused { .. }) => shared.upload_guest(id).await,
                other => other,
            };
            uploaded.map_err(not_started)?;
        }
        self.start(container, workdir).await
    }

    /// Attaches, starts, and waits for the guest's hello.
    async fn start(&self, container: Container, workdir: &str) -> Result<Sandbox, EngineError> {
        let shared = &self.shared;
        let streams = shared.attach(&container.id).await?;
        // Starting a running container is not an error, so the request may be repeated. That a container cannot be started becomes part of a verdict
        // if the solver's processes caused it; transient trouble of the engine, of this request or another, must not look like that.
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
            // A mount, unlike a "bind", is refused when the engine cannot see the file.
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
            // A fresh network namespace with loopback only either way; but with networking disabled the engine's
            // network library is not involved, which saves half of the time and most of the processor time of a start.
            network_disabled: (spec.network == Network::None).then_some(true),
            hostname: (spec.network == Network::None).then(|| HOST_NAME.to_owned()),
            // No terminal: bollard guesses from the first byte of a terminal's output whether it is multiplexed.
            tty: Some(false),
            open_stdin: Some(true),
            // The guest's input ends with this process, and so does the guest.
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

    /// Unpacks an archive; missing folders are created, existing ones keep their owner and mode.
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
        // Creates all missing folders in one request, below the deepest existing one.
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

    /// Attaches before the start, so that no byte is lost and no polling is needed.
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

/// The error of a request that only a container's own files can make fail again and again.
fn not_started(error: EngineError) -> EngineError {
    match error {
        EngineError::Refused { status, message, .. } => EngineError::NotStarted { status, message },
        other => other,
    }
}

/// How the guest gets into the container.
enum Guest {
    Mounted,
    Uploaded,
}

/// What reads as empty, on a host with so many processors.
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
        // No `init`: the guest must be process 1 itself. It reaps, and only process 1 survives `kill -9 -1`.
        init: None,
        pids_limit: Some(i64::from(limits.pids)),
        memory: Some(memory),
        memory_swap: Some(memory),
        // Not `nano_cpus`, which the engine refuses if the host has fewer processors than the task asks for.
        cpu_period: Some(CPU_PERIOD_MICROS),
        cpu_quota: Some((limits.cpus * CPU_PERIOD_MICROS as f64) as i64),
        ulimits: Some(vec![
            ulimit("nofile", OPEN_FILES.0, OPEN_FILES.1),
            // A single file cannot exceed the disk limit; the watchdog checks the sum.
            ulimit("fsize", storage, storage),
            ulimit("core", 0, 0),
        ]),
        // The output is read from the attached stream; a log driver would write all of it to the host's disk a second time.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    }
}

/// The pieces of an upload, read as the engine takes them.
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
