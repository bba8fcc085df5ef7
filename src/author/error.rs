//! Errors of rendering a recipe.

use crate::model::{PathError, RecipeId};
use crate::mutate::VariantError;

/// A recipe that cannot be rendered. The error concerns one recipe; other tasks continue.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    #[error("recipe `{recipe}`: no file `{file}`\nhint: {hint}")]
    MissingFile { recipe: RecipeId, file: String, hint: &'static str },
    #[error("recipe `{recipe}`: failed to render `{file}`: {message}")]
    Template { recipe: RecipeId, file: String, message: String },
    #[error("recipe `{recipe}`: `{file}` is malformed: {message}")]
    Malformed { recipe: RecipeId, file: String, message: String },
    #[error(
        "recipe `{recipe}`: `{file}` is not UTF-8, so it cannot be a template\nhint: drop the `.j2` to copy it verbatim"
    )]
    NotText { recipe: RecipeId, file: String },
    #[error("recipe `{recipe}`: {source}")]
    Path {
        recipe: RecipeId,
        #[source]
        source: PathError,
    },
    #[error(
        "no recipe `{0}`\nhint: `termsmith plan` lists the recipes; `termsmith new recipe {0}` starts one"
    )]
    Unknown(RecipeId),
    #[error("`templates/{0}` is missing\nhint: an overriding templates folder must be complete")]
    MissingTemplate(String),
    #[error(transparent)]
    Variant(#[from] VariantError),
}
