//! Sandboxes: containers with a guest in them. This module knows nothing of tasks.
//!
//! - An [`Engine`] (any [`EngineApi`]) finds or builds an [`Image`]. It starts a container whose
//!   main process is the guest, and provides the byte stream to it. It knows nothing of commands.
//!   [`ENGINES`] lists the engines. `docker` implements Docker and Podman. `process` is for tests.
//! - [`Sandbox`] has every operation on a running container: commands in a long-lived shell,
//!   programs, files, terminals ([`Pty`]), and sockets that the host answers ([`RelayCall`]). They
//!   are written once, over the byte stream (`connection`).
//! - [`Stopped`] is a container without processes. Its files are data, and its state can be
//!   committed.
//!
//! There are three kinds of errors, see `error`. Dropped containers and snapshots are removed, and
//! [`EngineApi::close`] waits for that. If a process is killed, any later one finds its objects by
//! their `owner` labels.

mod account;
mod clock;
mod connection;
mod container;
mod control;
mod diagnosis;
mod docker;
mod engine;
mod error;
mod exec;
mod guest_binary;
mod image;
mod layer;
mod loss;
mod owner;
mod process;
mod pty;
mod relay;
mod request;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod sandbox;
mod spec;
mod spool;
mod stopped;
mod unpack;
mod usage;

pub use clock::{Pauses, SandboxClock, SandboxTime};
pub use connection::{Closed, Piece, Streams, Symptom};
pub use container::{Container, ContainerApi, ContainerId, Pause};
pub use diagnosis::{By, Diagnosis, Finding, Host, Limit, Status, limits_table};
pub use engine::{ConnectEngine, DiagnoseEngine, Engine, EngineApi, EngineEntry};
pub use error::{ArchiveError, EngineError, GetError, ImageError, SandboxError};
pub use exec::{ExecLimit, Process, ProcessOutcome, ProcessResult, ShellResult};
pub use guest_binary::BYTES as GUEST_BINARY;
pub use image::Image;
pub use layer::{KeptLayer, LAYER_PATH, Layer, LayerId, LayerState};
pub use loss::{Evidence, Loss};
pub use process::process_engine;
pub use pty::{Pty, PtyEvent, PtyInput, PtySize, PtyStatus};
pub use relay::{ClientGone, MAX_REQUEST, Received, RelayCall, RelayReply};
pub use sandbox::Sandbox;
pub use spec::{
    CleanScope, HostLoad, HostSize, ImageConfig, ImageSpec, LaunchSpec, LayerFile, Network, Preload, Removed,
};
pub use spool::{Spool, Spooled, SpooledReader};
pub use stopped::{Archive, Change, ChangeKind, Stopped, StoppedState};

/// All engines that a command can use. The first is the default. A new engine is one module and one
/// line here.
pub const ENGINES: &[EngineEntry] = &[docker::ENTRY];
