//! What callers ask of an engine.

use std::time::Duration;

use crate::model::{FileTree, Limits, Profile};

use super::{ContainerId, Image};

/// An image to be there, and what to build it from if it is not.
#[derive(Clone, Copy, Debug)]
pub struct ImageSpec<'a> {
    /// Content address of the environment (`blake3:…`); the image's tag follows from it.
    pub digest: &'a str,
    /// The build context, with its `Dockerfile`.
    pub context: &'a FileTree,
    /// Longest time that the build may take.
    pub timeout: Duration,
}

/// What an image says about the containers made from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// Names and values, in the image's order.
    pub env: Vec<(String, String)>,
    /// Absolute; `/` unless the image names one.
    pub workdir: String,
}

/// A regular file of one of an image's layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerFile {
    /// Absolute.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// A container to be started.
#[derive(Clone, Debug)]
pub struct LaunchSpec<'a> {
    pub image: &'a Image,
    pub limits: &'a Limits,
    pub profile: Profile,
    pub network: Network,
    /// Absolute folder in which the shell starts; it is made if it is missing.
    pub workdir: &'a str,
    /// Why the container exists, as its label says it: `rollout`, `verifier`, `subject`.
    pub purpose: &'a str,
    /// Files that must be there before the guest starts.
    pub preload: Vec<Preload>,
}

/// What a container can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Loopback only.
    #[default]
    None,
    /// The engine's usual network, with the outside behind it: only for tasks of other makers that declare it.
    Public,
    /// The network namespace of another container of ours.
    Of(ContainerId),
}

/// A tar archive unpacked into a container before it starts.
#[derive(Clone, Debug)]
pub struct Preload {
    /// Absolute folder; it is made if it is missing.
    pub dest: String,
    /// Uncompressed tar bytes with paths relative to `dest`.
    pub tar: Vec<u8>,
}

/// What `termsmith clean` may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanScope {
    /// Containers and snapshots of dead owners.
    Orphans,
    /// All containers and snapshots of this tool on this engine, those of live owners too.
    Containers,
    /// All that, and every task image.
    Everything,
}

/// What a clean-up removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub containers: usize,
    pub images: usize,
}
