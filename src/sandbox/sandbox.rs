//! A running sandbox: commands, programs, files, terminals and the relay, written once over the guest's frames.

use std::sync::Arc;

use crate::model::FileTree;

use super::connection::Connection;
use super::{
    ContainerId, EngineError, ExecLimit, GetError, Process, ProcessResult, Pty, PtySize, RelayCall, SandboxError, ShellResult,
    Stopped,
};

/// A container with a guest in it.
///
/// All methods take `&self` and may run at once; shell commands queue. A future that is dropped ends what it started in the
/// guest, and the connection stays usable. Dropping the sandbox removes the container.
pub struct Sandbox {
    pub(super) connection: Arc<Connection>,
}

impl Sandbox {
    /// Runs one command in the long-lived shell.
    pub async fn shell(&self, command: &str, limit: &ExecLimit) -> Result<ShellResult, SandboxError> { todo!() }
    /// Runs one program outside the shell.
    pub async fn spawn(&self, process: &Process) -> Result<ProcessResult, SandboxError> { todo!() }
    /// Writes a file; makes its folders.
    pub async fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> { todo!() }
    /// Writes every file of `tree` below `dir`.
    pub async fn put_tree(&self, dir: &str, tree: &FileTree) -> Result<(), SandboxError> { todo!() }
    /// Reads a regular file; never follows a link in its last component.
    pub async fn get(&self, path: &str, max: u64) -> Result<Vec<u8>, GetError> { todo!() }
    /// Starts a program on a pseudo-terminal.
    pub async fn pty(&self, process: &Process, size: PtySize) -> Result<Pty, SandboxError> { todo!() }
    /// Has the guest listen on a socket; every connection's bytes become one [`RelayCall`].
    pub async fn serve_relay(&self, socket_path: &str) -> Result<tokio::sync::mpsc::Receiver<RelayCall>, SandboxError> { todo!() }
    /// The engine's name for the container.
    pub fn id(&self) -> &ContainerId { todo!() }
    /// Kills every process at once; the files stay.
    pub async fn stop(self) -> Result<Stopped, EngineError> { todo!() }
    /// Removes it, off the caller's path; [`super::Engine::close`] waits for that.
    pub async fn destroy(self) { todo!() }
}
