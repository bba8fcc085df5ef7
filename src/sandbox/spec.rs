//! Requests to an engine: images, containers, clean-up.

use std::time::Duration;

use crate::model::{FileTree, Limits, Profile};

use super::{ContainerId, EngineError, Image, LayerId, Spooled};

/// An image, and the build context for it if it does not exist.
#[derive(Clone, Copy, Debug)]
pub struct ImageSpec<'a> {
    /// Content address of the environment (`blake3:…`). The image's tag comes from it.
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
    /// An absolute path. `/` if the image names none.
    pub workdir: String,
    /// Folders that are volumes of a container. An image of its state does not hold their files.
    pub volumes: Vec<String>,
    /// ENTRYPOINT and CMD. Our containers run neither, since their first process is the guest.
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    /// USER. Empty for root.
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

/// The load of a host's processors at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLoad {
    /// Threads that run or could run.
    pub runnable: u32,
    pub processors: u32,
}

/// A host's resources for all of its containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSize {
    pub memory_mb: u64,
    /// Size of the engine's disk, free or not. `None` if it is on another host.
    pub storage_mb: Option<u64>,
}

/// A container to be started.
#[derive(Clone, Debug)]
pub struct LaunchSpec<'a> {
    pub image: &'a Image,
    pub limits: &'a Limits,
    pub profile: Profile,
    pub network: Network,
    /// Absolute path of the folder in which the shell starts. It is created if it is missing.
    pub workdir: &'a str,
    /// Purpose of the container, for its label: e.g. `rollout`, `verifier` or `programs`.
    pub purpose: &'a str,
    /// Files that must exist before the guest starts.
    pub preload: Vec<Preload>,
    /// What the container sees at [`super::LAYER_PATH`], read-only.
    pub layer: Option<&'a LayerId>,
}

/// The network of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Loopback only.
    #[default]
    None,
    /// The engine's usual network, with internet access. Only foreign tasks that declare it get it.
    Public,
    /// The network namespace of another container of ours.
    Of(ContainerId),
}

/// A tar archive unpacked into a container before it starts.
#[derive(Clone, Debug)]
pub struct Preload {
    /// Absolute path of a folder. It is created if it is missing.
    pub dest: String,
    /// Uncompressed tar bytes with paths relative to `dest`.
    pub tar: Spooled,
}

/// Which objects `termsmith clean` removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanScope {
    /// Containers and snapshots of processes that have ended.
    Orphans,
    /// All containers and snapshots of termsmith on this engine, also those of living processes.
    Containers,
    /// All containers and snapshots, every image of a task, and the layers of agents.
    Everything,
}

/// Numbers of removed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub containers: usize,
    pub images: usize,
    /// Layers of agents.
    pub layers: usize,
}
