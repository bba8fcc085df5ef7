//! The author that needs no model: it renders a recipe for a blueprint.
//!
//! A draft is a pure function of the blueprint, the recipe's files and the shared templates. It
//! depends on no clock, environment or engine. Screening decides whether a draft is a sound task.

mod canary;
mod clauses;
mod draft;
mod error;
mod expert;
mod expert_check;
mod interface;
mod recipe;
mod render;
mod seeded;

pub use canary::canary;
pub use draft::{AuthorAssets, Shipping, check_ids, draft, redrawn_tests, shipped_tests};
pub use error::AuthorError;
pub use recipe::{Recipe, recipes};
