//! One running or stopped container, removed when nobody holds it any more.

use std::fmt;

use super::connection::{Closed, Connection};
use super::docker::DockerEngine;
use super::process::ProcessContainer;
use super::{Change, EngineError, Image, Loss, SandboxError};

/// The engine's name for a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerId(pub(super) String);

impl ContainerId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A container that we must remove. Dropping it schedules that.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) id: ContainerId,
    pub(super) engine: Backend,
    /// What it was made from; a snapshot must outlive it.
    pub(super) image: Image,
}

/// Where the container lives.
#[derive(Debug)]
pub(super) enum Backend {
    Docker(DockerEngine),
    Process(ProcessContainer),
}

impl Container {
    /// What the end of the connection means.
    pub(super) async fn why_lost(&self, closed: Closed) -> SandboxError {
        match &self.engine {
            Backend::Docker(docker) => docker.why_lost(&self.id, closed).await,
            Backend::Process(process) => process.why_lost(closed).await,
        }
    }

    /// The file system was full: whether that is the container's doing, or the host's trouble.
    pub(super) async fn why_full(&self) -> Option<Loss> {
        match &self.engine {
            Backend::Docker(docker) => docker.why_full(&self.id).await,
            Backend::Process(_) => None,
        }
    }

    /// What differs from its image.
    pub(super) async fn changes(&self) -> Result<Vec<Change>, EngineError> {
        match &self.engine {
            Backend::Docker(docker) => docker.changes(&self.id).await,
            Backend::Process(_) => {
                Err(EngineError::Unsupported { engine: "process", action: "list changes" })
            }
        }
    }

    /// Ends every process in it, now.
    pub(super) async fn kill(&self, connection: &Connection) -> Result<(), EngineError> {
        match &self.engine {
            Backend::Docker(docker) => docker.kill(&self.id).await,
            Backend::Process(process) => {
                // The guest kills its children and ends when its input is closed.
                connection.close();
                process.kill().await;
                Ok(())
            }
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        match &mut self.engine {
            Backend::Docker(docker) => docker.remove_later(&self.id, self.image.clone()),
            Backend::Process(process) => process.remove_later(),
        }
    }
}
