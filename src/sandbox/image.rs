//! Images, by name.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An image of the engine. Cheap to clone.
#[derive(Clone)]
pub struct Image {
    reference: String,
    /// Keeps a snapshot alive; its engine removes the snapshot when the last clone is dropped.
    _keeper: Option<Arc<dyn Any + Send + Sync>>,
}

impl Image {
    /// An image that the engine has under this name.
    pub fn named(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), _keeper: None }
    }

    /// An image that lives as long as `keeper`, which is dropped with the last clone.
    pub fn kept(reference: impl Into<String>, keeper: impl Any + Send + Sync) -> Self {
        Self { reference: reference.into(), _keeper: Some(Arc::new(keeper)) }
    }

    /// The name.
    pub fn reference(&self) -> &str {
        &self.reference
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Image").field(&self.reference).finish()
    }
}
