//! Images, by name.

use std::sync::Arc;

use super::docker::SnapshotGuard;

/// An image on the engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Image {
    reference: String,
    /// A snapshot is removed when its last clone is dropped.
    _snapshot: Option<Arc<SnapshotGuard>>,
}

impl Image {
    /// An image that the engine has under this name.
    pub fn named(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), _snapshot: None }
    }

    pub(super) fn snapshot(reference: String, guard: SnapshotGuard) -> Self {
        Self { reference, _snapshot: Some(Arc::new(guard)) }
    }

    /// The name.
    pub fn reference(&self) -> &str {
        &self.reference
    }
}
