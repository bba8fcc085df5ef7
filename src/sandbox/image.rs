//! Images, by name.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An image of the engine. Cheap to clone.
#[derive(Clone)]
pub struct Image {
    reference: String,
    /// Removes the image from the engine when the last clone is dropped, e.g. a snapshot.
    _guard: Option<Arc<dyn Any + Send + Sync>>,
}

impl Image {
    /// An image that the engine has under this name.
    pub fn named(reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), _guard: None }
    }

    /// An image whose `guard` is dropped with the last clone, e.g. to remove it from the engine.
    pub fn guarded(reference: impl Into<String>, guard: impl Any + Send + Sync) -> Self {
        Self { reference: reference.into(), _guard: Some(Arc::new(guard)) }
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
