//! Sandboxes: containers with a guest in them. This module knows nothing of tasks.
//!
//! - An [`Engine`] (any [`EngineApi`]) finds or builds an [`Image`], starts a container whose main process is the guest, and provides the byte stream
//!   to it. It knows nothing of commands. [`ENGINES`] lists the engines: `docker` implements Docker
//!   and Podman. `process` is for tests.
//! - [`Sandbox`] has every operation on a running container, written once over that stream (`connection`): commands in a
//!   long-lived shell, programs, files, terminals ([`Pty`]), sockets answered by the host ([`RelayCall`]).
//! - [`Stopped`] is a container without processes: files as data, and a state that can be committed.
//!
//! Errors are of three kinds that are never mixed, see `error`. Dropped containers and snapshots
//! are removed; [`EngineApi::close`] waits for that, and `owner` labels let any later process find
//! what a killed one has left.

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
pub use loss::{Evidence, Loss};
pub use process::process_engine;
pub use pty::{Pty, PtyEvent, PtyInput, PtySize, PtyStatus};
pub use relay::RelayCall;
pub use sandbox::Sandbox;
pub use spec::{
    CleanScope, HostLoad, HostSize, ImageConfig, ImageSpec, LaunchSpec, LayerFile, Network, Preload, Removed,
};
pub use spool::{Spool, Spooled, SpooledReader};
pub use stopped::{Archive, Change, ChangeKind, Stopped, StoppedState};

/// All engines that a command can use. A new one is one module and one line here. The first is the
/// default.
pub const ENGINES: &[EngineEntry] = &[docker::ENTRY];
