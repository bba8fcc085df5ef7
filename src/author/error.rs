//! Errors of rendering a recipe.

use crate::model::{Blueprint, PathError};
use crate::mutate::VariantError;

/// Why a recipe cannot be rendered. Tasks of other recipes continue.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    #[error("recipe `{recipe}`: no file `{file}`\nhint: {hint}")]
    MissingFile { recipe: String, file: String, hint: &'static str },
    #[error("recipe `{recipe}`: failed to render `{file}`: {message}")]
    Template { recipe: String, file: String, message: String },
    #[error("recipe `{recipe}`: `{file}` is malformed: {message}")]
    Malformed { recipe: String, file: String, message: String },
    #[error(
        "recipe `{recipe}`: `{file}` is not UTF-8, so it cannot be a template\nhint: drop the `.j2` to copy it verbatim"
    )]
    NotText { recipe: String, file: String },
    #[error("recipe `{recipe}`: {source}")]
    Path {
        recipe: String,
        #[source]
        source: PathError,
    },
    #[error(
        "no recipe `{0}`\nhint: `termsmith recipe list` lists the recipes; `termsmith new recipe {0}` starts one"
    )]
    Unknown(String),
    #[error("`templates/{0}` is missing\nhint: an overriding templates folder must be complete")]
    MissingTemplate(String),
    #[error(transparent)]
    Variant(#[from] VariantError),
}

impl AuthorError {
    /// The error for a blueprint whose recipe or domain does not exist, or that has no recipe.
    pub fn unknown(blueprint: &Blueprint) -> Self {
        Self::Unknown(blueprint.recipe().map_or_else(|| blueprint.domain.to_string(), ToString::to_string))
    }
}
