//! Domain specs, recipe declarations, and the plan that is made from them.
//!
//! Text becomes typed declarations, or problems with file, line and hint. Declarations and a seed
//! become blueprints. All functions are pure, apart from reading [`crate::assets::Assets`]. The
//! module `author` renders recipes.

mod coverage;
mod cycle;
mod impossible;
mod limits;
mod load;
mod open_plan;
mod operation;
mod param;
mod plan;
mod problem;
mod recipe_decl;
mod recipe_files;
mod scaffold;
mod shard;
mod source;
mod spec;
#[cfg(test)]
mod tests;
mod variants_decl;

pub use coverage::{Coverage, CoverageCell, DomainCoverage, coverage};
pub use impossible::{Cell, ImpossibleCell, gaps};
pub use limits::LimitOverrides;
pub use load::{load_domains, load_recipe, load_recipes};
pub use open_plan::{Authors, plan_by};
pub use operation::Operation;
pub use param::{Param, ParamRange};
pub use plan::{Domains, Plan, UnknownDomain, plan};
pub(crate) use problem::suggest;
pub use problem::{DomainError, Position, Problem};
pub use recipe_decl::{RecipeDecl, Recipes, SubmissionDecl, WrongDecl};
pub use scaffold::{ScaffoldError, new_domain, new_recipe};
pub use shard::{Shard, ShardError};
pub(crate) use source::{Source, Step, at};
pub use spec::{DomainSpec, Fixture, Persona, Skill, Specs, VerifierKind};
pub use variants_decl::{OwnVariantDecl, VariantsDecl};

/// JSON Schema of `domains/<id>.toml`.
pub fn domain_schema() -> schemars::Schema {
    schemars::schema_for!(DomainSpec)
}

/// JSON Schema of a recipe's `recipe.toml`.
pub fn recipe_schema() -> schemars::Schema {
    schemars::schema_for!(RecipeDecl)
}
