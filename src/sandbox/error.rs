//! Three kinds of errors that must not be mixed. The engine failed: try again. The sandbox was
//! lost: the evidence says who is at fault. A requested file or image is not as required: that is
//! data for the caller.

use std::io;
use std::path::PathBuf;

use super::loss::Loss;
use crate::model::Blame;

/// The engine failed. Nothing is known about the programs in the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("cannot reach the container engine at `{endpoint}`: {message}\nhint: {hint}")]
    Unreachable { endpoint: String, message: String, hint: &'static str },
    #[error("the engine at `{endpoint}` supports API {have}, but termsmith needs {need} or newer")]
    ApiVersion { endpoint: String, have: String, need: &'static str },
    #[error(
        "image `{base}` is not on the engine, and no registry gives it: {message}\nhint: `docker pull {base}` after `docker login` gets a \
         private one; `termsmith doctor --fix` bootstraps Debian bases"
    )]
    MissingImage { base: String, message: String },
    /// The registry did not answer, or answered that it is in trouble.
    #[error(
        "image `{image}` is not on the engine, and its registry fails: {message}\nhint: try again later, or get it with `docker pull {image}`"
    )]
    Registry { image: String, message: String },
    #[error("container `{container}` does not exist any more")]
    NoSuchContainer { container: String },
    #[error("the engine refused to {action} (status {status}): {message}")]
    Refused { action: &'static str, status: u16, message: String },
    /// The engine refused several times. If it has no other trouble, the cause is the files of a
    /// container that has run before.
    #[error("the engine refused to start a container (status {status}): {message}")]
    NotStarted { status: u16, message: String },
    #[error("failed to {action}: {message}")]
    Transport { action: &'static str, message: String },
    #[error(
        "no image can hold `{path}`: in the layers of images, names that begin with `.wh.` are deletions"
    )]
    NotSavable { path: String },
    /// The measured size is left out. The text is stored in a verdict, and two equal runs may
    /// measure different sizes.
    #[error(
        "an image of the container's state would be larger than its disk limit of {limit_mib} MiB: \
         it holds sparse files at their full length"
    )]
    StateTooLarge { limit_mib: u64 },
    #[error(
        "the state of a container with a volume cannot be saved, since no image holds a volume's files: the image declares `VOLUME {path}`"
    )]
    VolumeNotSavable { path: String },
    #[error("the image has no user `{user}`, which the task declares for its agent")]
    NoSuchUser { user: String },
    #[error("the guest did not start: {message}")]
    Guest { message: String },
    #[error("the {engine} engine cannot {action}")]
    Unsupported { engine: &'static str, action: &'static str },
    #[error("failed to {action} `{path}`: {source}")]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A temporary file of the host, which holds a large archive, failed.
    #[error("a temporary file in `{}` cannot be written or read: {source}", std::env::temp_dir().display())]
    Spool {
        #[source]
        source: io::Error,
    },
}

impl EngineError {
    /// Who is at fault. [`Blame::Infra`] is tried again.
    pub fn blame(&self) -> Blame {
        match self {
            // No process in a container can remove it. So a missing container was removed from
            // outside.
            Self::Unreachable { .. }
            | Self::Registry { .. }
            | Self::Transport { .. }
            | Self::Guest { .. }
            | Self::NoSuchContainer { .. }
            | Self::Spool { .. } => Blame::Infra,
            // Conflicts and rate limits are transient. A 404 that names neither a container nor an
            // image does not come from the engine itself. Every other 4xx would come again.
            Self::Refused { status, .. } | Self::NotStarted { status, .. }
                if *status >= 500 || matches!(*status, 404 | 409 | 429) =>
            {
                Blame::Infra
            }
            // `Io` is about files of this host that termsmith itself reads and writes.
            Self::Refused { .. }
            | Self::NotStarted { .. }
            | Self::ApiVersion { .. }
            | Self::Unsupported { .. }
            | Self::MissingImage { .. }
            | Self::VolumeNotSavable { .. }
            | Self::Io { .. } => Blame::Caller,
            Self::NoSuchUser { .. } => Blame::Task,
            Self::NotSavable { .. } | Self::StateTooLarge { .. } => Blame::Solver,
        }
    }

    /// Whether the same call may succeed later without any change.
    pub fn is_transient(&self) -> bool {
        self.blame() == Blame::Infra
    }
}

impl SandboxError {
    /// Who is at fault. `None` if the evidence does not say.
    pub fn blame(&self) -> Option<Blame> {
        match self {
            Self::Lost(loss) => loss.blame(),
            Self::Engine(error) => Some(error.blame()),
            Self::TooLarge { .. } | Self::Nul { .. } => Some(Blame::Caller),
            // The sandbox lives. E.g. its disk is full, a folder is in place of a file, or no
            // process is left. The guest does not know the cause.
            Self::Failed { .. } => None,
        }
    }
}

/// Why an image is not available.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The Dockerfile is invalid. That is data for its author.
    #[error("the image build failed:\n{}", last_lines(log))]
    Build { log: String },
    /// Who is at fault is not known yet. It is decided by a second build, and by the host's load.
    #[error("the image build took longer than {seconds} s")]
    TimedOut { seconds: u64, log: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why a sandbox gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The sandbox no longer answers. Its evidence says who is at fault, or that a control must
    /// decide.
    #[error("the sandbox was lost: {0}")]
    Lost(Loss),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The request was never sent.
    #[error("{what} has {bytes} bytes, and {max} are allowed")]
    TooLarge { what: &'static str, bytes: usize, max: usize },
    /// The request was never sent.
    #[error("{what} holds a NUL byte")]
    Nul { what: &'static str },
    /// The guest could not do it. E.g. the path is a folder, the disk is full, or there is no
    /// `bash`.
    #[error("{message}")]
    Failed { message: String },
}

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    #[error("`{path}` is not there")]
    Missing { path: String },
    #[error("`{path}` is not a regular file")]
    NotRegular { path: String },
    #[error("`{path}` has more than {max} bytes")]
    TooLarge { path: String, max: u64 },
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Why a folder of a stopped container could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("`{root}` is not there")]
    Missing { root: String },
    #[error("`{root}` has more than {max} bytes")]
    TooLarge { root: String, max: u64 },
    /// A process in the container replaced part of the path, e.g. by a file or a loop of links.
    #[error("cannot resolve `{root}`")]
    Unreadable { root: String },
    /// A process in the container may have put something where the engine mounts the guest. Or the
    /// engine is in trouble.
    #[error("the engine cannot read `{root}`, nor anything else in the container")]
    AllUnreadable { root: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The end of a build log. It shows the step that failed.
fn last_lines(log: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
