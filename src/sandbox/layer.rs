//! Layers: folders of files that the engine keeps, and that containers see read-only, e.g. an
//! agent.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Spooled;

/// Where a container sees its layer. No task judges this folder: the guest lies there too.
pub const LAYER_PATH: &str = "/.termsmith/agent";

/// The content address of a layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LayerId(String);

impl LayerId {
    /// The id with these hexadecimal digits.
    pub fn new(digits: impl Into<String>) -> Self {
        Self(digits.into())
    }

    /// The digits as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A layer to be kept by an engine.
#[derive(Clone, Debug)]
pub struct Layer {
    pub id: LayerId,
    /// What people call it, e.g. `codex 0.171.0`.
    pub title: String,
    /// Uncompressed tar bytes.
    pub tar: Spooled,
}

/// A layer that an engine keeps, or has begun to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLayer {
    pub id: LayerId,
    pub title: String,
}

/// What an engine has of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerState {
    Missing,
    /// The filling was interrupted.
    HalfFilled,
    Whole,
}
