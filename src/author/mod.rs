//! Authors make task drafts from blueprints. Here: the offline author, which renders a recipe.
//!
//! A draft is a pure function of the blueprint, the recipe's files and the shared templates: no clock, no environment, no
//! engine. It claims nothing; screening decides.

mod canary;
mod draft;
mod error;
mod expert;
mod recipe;
mod render;
mod seeded;

pub use draft::{AuthorAssets, draft};
pub use error::AuthorError;
pub use recipe::{Recipe, recipes};
