//! `schema`: prints JSON Schemas of the public formats.

use super::args::{SchemaArgs, SchemaFormat};
use super::exit::Status;
use super::failure::Outcome;
use super::say;

pub(super) fn schema(args: &SchemaArgs) -> Outcome {
    let schema = match args.format {
        SchemaFormat::Domain => crate::domain::domain_schema(),
        SchemaFormat::Recipe => crate::domain::recipe_schema(),
        SchemaFormat::Certificate => schemars::schema_for!(crate::model::Certificate),
        SchemaFormat::Clauses => schemars::schema_for!(crate::model::Clauses),
        SchemaFormat::Timings => schemars::schema_for!(crate::model::Timings),
        SchemaFormat::Settings => crate::llm::settings_schema(),
        SchemaFormat::Lint => schemars::schema_for!(crate::lint::LintReport),
        SchemaFormat::Rollouts => crate::export::report::report_schema(),
        SchemaFormat::Audit => schemars::schema_for!(crate::audit::Audit),
    };
    say::json(&schema)?;
    Ok(Status::Ok)
}
