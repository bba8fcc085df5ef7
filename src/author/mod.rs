//! Authors create task drafts from blueprints. This module has the offline author, which renders a recipe.
//!
//! A draft is a pure function of the blueprint, the recipe's files and the shared templates: no clock, no environment, no
//! engine. Screening decides whether a draft is a sound task.

mod canary;
mod clauses;
mod draft;
mod error;
mod expert;
mod recipe;
mod render;
mod seeded;

pub use draft::{AuthorAssets, draft, redrawn_tests};
pub use error::AuthorError;
pub use recipe::{Recipe, recipes};
