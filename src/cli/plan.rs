//! `plan`: prints the tasks of a run, without making them.

use std::fmt::Write as _;

use super::args::PlanArgs;
use super::config::{Config, Format};
use super::exit::Status;
use super::failure::Outcome;
use super::{run, say};
use crate::domain::{coverage, gaps};

pub(super) fn plan(config: &Config, args: &PlanArgs) -> Outcome {
    let assets = config.pipeline_assets()?;
    let plan = run::planned(&assets, &args.selection, args.author.into())?;
    let coverage = coverage(&assets.domains, &plan.blueprints);
    if config.format == Format::Json {
        say::json(&serde_json::json!({
            "version": 1,
            "blueprints": plan.blueprints,
            "coverage": coverage,
            "impossible": plan.impossible.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?;
        return Ok(Status::Ok);
    }
    let mut text = String::new();
    for blueprint in &plan.blueprints {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>4}  {:<50} {:<16} {:<6} {}",
            blueprint.index,
            blueprint.recipe().map_or("(model)", |recipe| recipe.as_str()),
            blueprint.kind.as_str(),
            blueprint.difficulty.as_str(),
            blueprint.language,
        );
    }
    let _ = write!(text, "\n{}", coverage.table());
    let _ = write!(text, "\n{}", gaps(&plan.impossible));
    say::text(&text)?;
    Ok(Status::Ok)
}
