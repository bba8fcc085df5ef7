//! Requests to an engine: images, containers, clean-up.

use std::time::Duration;

use crate::model::{FileTree, Limits, Profile};

use super::{ContainerId, EngineError, Image, Spooled};

/// An image, and the build context for it if it does not exist.
#[derive(Clone, Copy, Debug)]
pub struct ImageSpec<'a> {
    /// Content address of the environment (`blake3:…`); the image's tag is derived from it.
    pub digest: &'a str,
    /// The build context, with its `Dockerfile`.
    pub context: &'a FileTree,
    /// Time-out of the build.
    pub timeout: Duration,
}

/// The configuration that containers inherit from an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// Names and values, in the image's order.
    pub env: Vec<(String, String)>,
    /// Absolute; `/` if the image names none.
    pub workdir: String,
    /// Folders that are volumes of a container's own: images of its state do not hold them.
    pub volumes: Vec<String>,
    /// ENTRYPOINT and CMD. Our containers run neither: their first process is the guest.
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    /// USER; empty for root.
    pub user: String,
}

impl ImageConfig {
    /// An error if the state of containers cannot be saved as an image.
    pub fn check_savable(&self) -> Result<(), EngineError> {
        match self.volumes.first() {
            Some(path) => Err(EngineError::VolumeNotSavable { path: path.clone() }),
            None => Ok(()),
        }
    }
}

/// A regular file of one of an image's layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerFile {
    /// Absolute path.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// What the processors of a host have to do at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLoad {
    /// Threads that run or could run.
    pub runnable: u32,
    pub processors: u32,
}

/// What a host has for all of its containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSize {
    pub memory_mb: u64,
    /// The engine's disk, free or not; `None` if it is on another host.
    pub storage_mb: Option<u64>,
}

/// A container to be started.
#[derive(Clone, Debug)]
pub struct LaunchSpec<'a> {
    pub image: &'a Image,
    pub limits: &'a Limits,
    pub profile: Profile,
    pub network: Network,
    /// Absolute path of the folder in which the shell starts; created if it is missing.
    pub workdir: &'a str,
    /// Purpose of the container, for its label: e.g. `rollout`, `verifier` or `programs`.
    pub purpose: &'a str,
    /// Files that must exist before the guest starts.
    pub preload: Vec<Preload>,
}

/// The network of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Loopback only.
    #[default]
    None,
    /// The engine's usual network, with internet access: only for foreign tasks that declare it.
    Public,
    /// The network namespace of another container of ours.
    Of(ContainerId),
}

/// A tar archive unpacked into a container before it starts.
#[derive(Clone, Debug)]
pub struct Preload {
    /// Absolute path of a folder; created if it is missing.
    pub dest: String,
    /// Uncompressed tar bytes with paths relative to `dest`.
    pub tar: Spooled,
}

/// Which objects `termsmith clean` removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanScope {
    /// Containers and snapshots of dead owners.
    Orphans,
    /// All containers and snapshots of termsmith on this engine, including those of living owners.
    Containers,
    /// All of these, and every task image.
    Everything,
}

/// Numbers of removed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub containers: usize,
    pub images: usize,
}
