//! Images of tasks. Each is built once.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bollard::body_full;
use bollard::errors::Error;
use bollard::query_parameters::{BuildImageOptionsBuilder, RemoveImageOptionsBuilder};
use futures_util::StreamExt as _;
use tokio::sync::watch;

use crate::guest::head_tail::HeadTail;
use crate::model::FileTree;
use crate::retry::{Again, Backoff};
use crate::sandbox::{ContainerId, EngineError, Image, ImageConfig, ImageError, ImageSpec};

use super::api::{self, asked_again};
use super::build_control::{is_status_of_command, made_image};
use super::build_disk::MAX_BUILD_BYTES;
use super::snapshot::{SNAPSHOTS, SnapshotGuard};
use super::{DockerEngine, OWNER_LABEL, Shared, TASK_LABEL, watchdog};

/// Repository of task images.
const TASKS: &str = "termsmith/task";
/// Maximum bytes of a build's log. Package managers print megabytes, and the error is at the end.
const MAX_LOG: usize = 256 * 1024;
/// Memory limit of each build step, without swap. Compilers and package managers stay below it. A
/// foreign Dockerfile that exceeds it must not use up the host's memory. The API's integer type
/// allows no larger value.
const BUILD_MEMORY: i32 = i32::MAX;
/// CPU quota of a build for each [`BUILD_CPU_PERIOD`]: two processors. Most steps use no more.
const BUILD_CPU_QUOTA: i32 = 2 * BUILD_CPU_PERIOD;
/// Microseconds: the kernel's default period.
const BUILD_CPU_PERIOD: i32 = 100_000;
/// Number of builds of a step that the host may have disturbed, and the pauses between them.
const BUILD_BACKOFF: Backoff =
    Backoff { attempts: 3, base: Duration::from_secs(1), cap: Duration::from_secs(4) };
/// Bytes of a step's output that are searched for the reason of its failure.
const STEP_OUTPUT: usize = 16 * 1024;
/// The start of the builder's line that names a step's container.
const RUNNING_IN: &str = " ---> Running in ";
/// The text of ENOSPC in lower case. The engine's programs and the C library differ in the first
/// letter.
const NO_SPACE: &str = "no space left on device";
/// Interval between attempts at a lock that another process holds. A blocking wait could not be
/// cancelled.
const LOCK_RETRY: Duration = Duration::from_millis(50);

impl DockerEngine {
    /// The image for `spec`. Tasks of this process wait for each other at a lock in memory, and
    /// processes at a lock file.
    pub(in crate::sandbox) async fn ensure_image(&self, spec: &ImageSpec<'_>) -> Result<Image, ImageError> {
        let digest = spec.digest.rsplit(':').next().unwrap_or_default();
        let reference = format!("{TASKS}:{digest}");
        if self.shared.has_image(&reference).await? {
            return Ok(Image::named(reference));
        }
        let lock = self.shared.build_lock(&reference);
        let _in_process = lock.lock().await;
        let _across_processes = lock_file(&self.shared.cache.join("locks").join(digest)).await?;
        if !self.shared.has_image(&reference).await? {
            self.build(&reference, spec, Layers::Cached).await?;
        }
        Ok(Image::named(reference))
    }

    /// Builds the image for `spec` without the layer cache. The image lives as long as the returned
    /// value.
    pub(in crate::sandbox) async fn rebuild_image(&self, spec: &ImageSpec<'_>) -> Result<Image, ImageError> {
        let reference = format!("{SNAPSHOTS}:{}", self.shared.new_name());
        let guard = SnapshotGuard { engine: self.clone(), reference: reference.clone() };
        self.build(&reference, spec, Layers::Fresh).await?;
        Ok(Image::guarded(reference, guard))
    }

    /// The configuration that containers of `image` inherit.
    pub(in crate::sandbox) async fn image_config(&self, image: &Image) -> Result<ImageConfig, EngineError> {
        let inspected = asked_again(|| self.shared.docker.inspect_image(image.reference())).await;
        let inspected = inspected.map_err(|error| self.shared.error("inspect an image", error))?;
        let config = inspected.config.unwrap_or_default();
        let entry = |entry: String| {
            let (name, value) = entry.split_once('=').unwrap_or((&entry, ""));
            (name.to_owned(), value.to_owned())
        };
        let workdir = config.working_dir.filter(|folder| !folder.is_empty());
        let mut volumes = config.volumes.unwrap_or_default();
        volumes.sort();
        Ok(ImageConfig {
            env: config.env.unwrap_or_default().into_iter().map(entry).collect(),
            workdir: workdir.unwrap_or_else(|| "/".to_owned()),
            volumes,
            entrypoint: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            user: config.user.unwrap_or_default(),
        })
    }

    /// Builds an image. If the host may have caused the failure of a step, the step is built again.
    /// If it fails each time, the Dockerfile is at fault. The exceptions are a host without space,
    /// and an engine that cannot start a container of the step's image.
    async fn build(&self, reference: &str, spec: &ImageSpec<'_>, layers: Layers) -> Result<(), ImageError> {
        let dockerfile = spec.context.text("Dockerfile").unwrap_or_default();
        self.shared.have_bases(dockerfile, spec.timeout).await?;
        let mut attempt = 1;
        loop {
            let (failed, again) = match self.shared.build_once(reference, spec, layers).await {
                Ok(()) => return Ok(()),
                Err(BuildFailure::Final(error)) => (error, Again::Never),
                Err(BuildFailure::Unclear { log }) => (ImageError::Build { log }, Again::Yes),
                Err(BuildFailure::NoStatus { log, error, step }) => {
                    if let Err(control) = self.starts_steps(step.image.as_deref().unwrap_or_default()).await {
                        let message = format!(
                            "`{}`: {error}; no other container of its image starts: {control}",
                            step.name
                        );
                        return Err(EngineError::Transport { action: "build an image", message }.into());
                    }
                    // The engine's trouble may have passed meanwhile. A missing file of COPY stays
                    // missing.
                    (ImageError::Build { log }, if step.runs() { Again::Yes } else { Again::Never })
                }
            };
            let Some(pause) = BUILD_BACKOFF.next_pause(reference, attempt, again) else { return Err(failed) };
            tracing::warn!(reference, attempt, error = %failed, "building an image again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}

/// Whether a build may use cached layers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layers {
    Cached,
    Fresh,
}

impl Shared {
    /// The lock of the tasks in this process that build the image `name`.
    pub(super) fn build_lock(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        builds.entry(name.to_owned()).or_default().clone()
    }

    pub(super) async fn has_image(&self, reference: &str) -> Result<bool, EngineError> {
        match self.docker.inspect_image(reference).await {
            Ok(_) => Ok(true),
            Err(error) if api::status(&error) == Some(404) => Ok(false),
            Err(error) => Err(self.error("look up an image", error)),
        }
    }

    /// Removes an image. A missing image is no error. An image that a container still uses is none
    /// either, since a later sweep removes it.
    pub(super) async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        // `force` would remove the name of an image in use, and leave its layers.
        let options = RemoveImageOptionsBuilder::new().build();
        match self.docker.remove_image(reference, Some(options), None).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(api::status(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(self.error("remove an image", error)),
        }
    }

    async fn build_once(
        &self,
        reference: &str,
        spec: &ImageSpec<'_>,
        layers: Layers,
    ) -> Result<(), BuildFailure> {
        let sent = spec.context.sent_to_builder();
        let sent = sent.map_err(|error| ImageError::Build { log: error.to_string() })?;
        let tar = context_tar(&sent).map_err(|source| EngineError::Io {
            action: "pack the build context of",
            path: reference.into(),
            source,
        })?;
        let owner = self.owner.to_string();
        let labels = match layers {
            Layers::Cached => HashMap::from([(TASK_LABEL, spec.digest)]),
            Layers::Fresh => HashMap::from([(OWNER_LABEL, owner.as_str())]),
        };
        // The classic builder has a layer cache. With it, the equal first lines of all Dockerfiles
        // become one shared base.
        let options = BuildImageOptionsBuilder::new()
            .dockerfile("Dockerfile")
            .t(reference)
            .rm(true)
            .forcerm(true)
            .nocache(layers == Layers::Fresh)
            .labels(&labels)
            .memory(BUILD_MEMORY)
            .memswap(BUILD_MEMORY)
            .cpuperiod(BUILD_CPU_PERIOD)
            .cpuquota(BUILD_CPU_QUOTA)
            .build();
        tracing::debug!(reference, digest = spec.digest, "building an image");
        let mut log = HeadTail::new(MAX_LOG);
        let mut step = BuildStep::default();
        let (running, container) = watch::channel(None);
        let ended = {
            let mut events = Box::pin(self.docker.build_image(options, None, Some(body_full(tar.into()))));
            let read = async {
                while let Some(event) = events.next().await {
                    if let Some(text) = event?.stream {
                        step.observe(&text);
                        running.send_replace(step.container.clone());
                        log.push(text.as_bytes());
                    }
                }
                Ok(())
            };
            // Returning drops the stream and its request. The engine then cancels the build.
            tokio::select! {
                ended = tokio::time::timeout(spec.timeout, read) => Some(ended),
                () = self.until_too_large(container) => None,
            }
        };
        let Some(ended) = ended else {
            let most = MAX_BUILD_BYTES >> 20;
            log.push(format!("\nThe steps of the build wrote more than {most} MiB.\n").as_bytes());
            let log = String::from_utf8_lossy(&log.into_bytes()).into_owned();
            return Err(ImageError::Build { log }.into());
        };
        let text = |log: HeadTail| String::from_utf8_lossy(&log.into_bytes()).into_owned();
        match ended {
            // A truncated stream looks like a complete one, so the image is looked up.
            Ok(Ok(())) if self.has_image(reference).await? => Ok(()),
            Ok(Ok(())) => Err(EngineError::Transport {
                action: "build an image",
                message: format!("the engine ended its answer at `{}`, but there is no image", step.name),
            }
            .into()),
            Err(_) => Err(ImageError::TimedOut { seconds: spec.timeout.as_secs(), log: text(log) }.into()),
            Ok(Err(Error::DockerStreamError { error })) => Err(match step.name.split_once(": FROM ") {
                Some((_, base)) => EngineError::MissingImage { base: base.to_owned(), message: error }.into(),
                None => {
                    log.push(error.as_bytes());
                    self.why_step_failed(step, error, text(log)).await
                }
            }),
            // The Dockerfile has a syntax error.
            Ok(Err(Error::DockerResponseServerError { status_code: 400, message })) => {
                Err(ImageError::Build { log: message }.into())
            }
            Ok(Err(error)) => Err(self.error("build an image", error).into()),
        }
    }

    /// Finds out who caused the failure of a build step. `error` is the engine's message.
    async fn why_step_failed(&self, step: BuildStep, error: String, log: String) -> BuildFailure {
        let free = self.host_free_bytes().await;
        let met_oom = async |id: &str| {
            let killed = !self.oom_times(&ContainerId(id.to_owned())).await.is_empty();
            killed && !self.lacked_memory_of_host(id).await
        };
        let out_of_memory = match &step.container {
            Some(id) if is_killed(&error) => met_oom(id).await,
            Some(_) | None => false,
        };
        let output = String::from_utf8_lossy(&step.output);
        match StepFailure::of(&error, &output, out_of_memory, free) {
            StepFailure::Dockerfile if !is_status_of_command(&error) && step.image.is_some() => {
                BuildFailure::NoStatus { log, error, step }
            }
            StepFailure::Dockerfile => ImageError::Build { log }.into(),
            StepFailure::Unclear => BuildFailure::Unclear { log },
            StepFailure::HostDiskFull => EngineError::Transport {
                action: "build an image",
                message: format!(
                    "the disk of the host is full ({} MiB are free): {error}",
                    free.unwrap_or_default() >> 20
                ),
            }
            .into(),
        }
    }

    /// Free bytes on the engine's disk, if the engine is local.
    async fn host_free_bytes(&self) -> Option<u64> {
        watchdog::free_bytes(&self.root_on_this_host().await?)
    }
}

/// Why a build gave no image.
enum BuildFailure {
    Final(ImageError),
    /// The host or the Dockerfile caused it.
    Unclear {
        log: String,
    },
    /// The engine ended a step before the step's command ended.
    NoStatus {
        log: String,
        error: String,
        step: BuildStep,
    },
}

impl From<ImageError> for BuildFailure {
    fn from(error: ImageError) -> Self {
        Self::Final(error)
    }
}

impl From<EngineError> for BuildFailure {
    fn from(error: EngineError) -> Self {
        Self::Final(error.into())
    }
}

/// The step that a build has reached.
#[derive(Default)]
struct BuildStep {
    /// The engine's line: `Step 2/3 : RUN make`.
    name: String,
    /// The container of the step.
    container: Option<String>,
    /// The image of that container.
    image: Option<String>,
    /// The end of the step's output.
    output: Vec<u8>,
}

impl BuildStep {
    /// Whether the step runs a command. The engine starts a container for it.
    fn runs(&self) -> bool {
        self.name.split_once(" : ").is_some_and(|(_, instruction)| instruction.starts_with("RUN "))
    }

    /// Reads a piece of the build's log. A step can print lines that look like the builder's. That
    /// does not move the blame, because a step cannot print an out-of-memory event or a full disk.
    fn observe(&mut self, text: &str) {
        if text.starts_with("Step ") {
            let image = self.image.take();
            *self = Self { name: text.trim().to_owned(), image, ..Self::default() };
        } else if let (None, Some(id)) = (&self.container, made_image(text)) {
            self.image = Some(id.to_owned());
        } else if let (None, Some(id)) = (&self.container, text.strip_prefix(RUNNING_IN)) {
            self.container = Some(id.trim().to_owned());
        } else {
            self.output.extend_from_slice(text.as_bytes());
            self.output.drain(..self.output.len().saturating_sub(STEP_OUTPUT));
        }
    }
}

/// Who caused the failure of a build step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepFailure {
    Dockerfile,
    HostDiskFull,
    Unclear,
}

impl StepFailure {
    /// Decides from the engine's error, the step's output, its out-of-memory events, and the host's
    /// free disk space. A step chooses its own output and status, so neither alone blames the host.
    fn of(error: &str, output: &str, out_of_memory: bool, free: Option<u64>) -> Self {
        // `LOW` and not full, since the step's own files were removed before the space was
        // measured.
        let no_space = [error, output].iter().any(|text| text.to_ascii_lowercase().contains(NO_SPACE));
        if no_space && free.is_some_and(|free| free < watchdog::LOW_FREE_BYTES) {
            Self::HostDiskFull
        } else if no_space || (is_killed(error) && !out_of_memory) {
            Self::Unclear
        } else {
            Self::Dockerfile
        }
    }
}

/// Whether the engine says that the step was killed. It may have killed itself.
fn is_killed(error: &str) -> bool {
    error.trim_end().ends_with("returned a non-zero code: 137")
}

fn context_tar(context: &FileTree) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, file) in context.iter() {
        let mut header = tar::Header::new_gnu();
        header.set_mode(file.mode());
        header.set_size(file.bytes.len() as u64);
        // The builder's cache compares content, owner and mode, but not times. A constant time
        // gives equal contexts equal images.
        header.set_mtime(0);
        tar.append_data(&mut header, path.as_str(), file.bytes.as_slice())?;
    }
    for path in &context.empty_folders {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        header.set_mtime(0);
        tar.append_data(&mut header, path.as_str(), std::io::empty())?;
    }
    for (path, target) in &context.links {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        header.set_mtime(0);
        tar.append_link(&mut header, path.as_str(), target)?;
    }
    tar.into_inner()
}

/// Takes the lock file at `path`. It is released when the file is closed, also by a crash.
async fn lock_file(path: &Path) -> Result<File, EngineError> {
    let failed = |source| EngineError::Io { action: "lock", path: PathBuf::from(path), source };
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let file = File::options().create(true).append(true).open(path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_RETRY).await,
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_blamed_for_a_failed_step_only_with_evidence_of_its_own() {
        use StepFailure::{Dockerfile, HostDiskFull, Unclear};
        let (low, enough) = (Some(watchdog::LOW_FREE_BYTES - 1), Some(watchdog::LOW_FREE_BYTES));
        let exit = |status: u8| format!("The command '/bin/sh -c x' returned a non-zero code: {status}");
        let check = |error: &str, output: &str, oom: bool, free: Option<u64>, expect: StepFailure| {
            assert_eq!(StepFailure::of(error, output, oom, free), expect, "{error} {output} {oom} {free:?}");
        };
        check(&exit(1), "", false, enough, Dockerfile);
        check(&exit(1), "", false, low, Dockerfile);
        check("COPY failed: file not found in build context", "", false, low, Dockerfile);
        let written = "cp: error writing '/x': No space left on device";
        check(&exit(1), written, false, low, HostDiskFull);
        // The Dockerfile printed it, a file system in memory was full, or the disk had space again
        // a moment later.
        check(&exit(1), written, false, enough, Unclear);
        check(&exit(1), written, false, None, Unclear);
        let engine = "write /var/lib/docker/x: no space left on device";
        check(engine, "", false, low, HostDiskFull);
        check(engine, "", false, enough, Unclear);
        check(&exit(137), "", false, low, Unclear);
        check(&exit(137), "", false, enough, Unclear);
        check(&exit(137), "", true, enough, Dockerfile);
        check(&exit(13), "returned a non-zero code: 137", false, enough, Dockerfile);
    }

    #[test]
    fn steps_are_read_from_the_log() {
        let mut step = BuildStep::default();
        for text in
            ["Step 1/2 : FROM a", "\n", " ---> 0123\n", "Step 2/2 : RUN b", "\n", " ---> Running in f00\n"]
        {
            step.observe(text);
        }
        step.observe("one\n");
        step.observe(" ---> Running in bad\n");
        assert_eq!((step.name.as_str(), step.container.as_deref()), ("Step 2/2 : RUN b", Some("f00")));
        assert_eq!(String::from_utf8_lossy(&step.output), "\none\n ---> Running in bad\n");
        step.observe(&"é".repeat(STEP_OUTPUT));
        assert_eq!(step.output.len(), STEP_OUTPUT);
    }
}
