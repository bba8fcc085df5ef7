//! Sandboxes: containers with a guest in them. Knows nothing of tasks.
pub use engine::Engine;
