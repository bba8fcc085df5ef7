//! Lock files: the exact archives of an agent's version, and the layer that they become.
//!
//! The lock of a manifest's own version lies beside it. Locks of other versions lie in the user's
//! data folder.

use serde::{Deserialize, Serialize};

use super::packages::Registry;
use crate::sandbox::LayerId;

/// The archives of one version of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The agent's version.
    pub version: String,
    pub layer: LayerSum,
    #[serde(default)]
    pub parts: Vec<Part>,
}

/// A layer, as it was built first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSum {
    pub id: LayerId,
    pub files: u64,
    pub bytes: u64,
}

/// One archive of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub registry: Registry,
    pub name: String,
    pub version: String,
    /// Path below the registry.
    pub path: String,
    /// `sha512-BASE64` as npm writes it, or `sha256:HEX` as PyPI and Debian do.
    pub hash: String,
}
