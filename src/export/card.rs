//! The dataset card: `README.md` of the data folder. Its front matter tells loaders which files
//! belong to which config.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow_schema::DataType;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, syntax::SyntaxConfig};
use serde::Serialize;

use super::atif::program_version;
use super::figures::{Content, Figures};
use super::row::{Column, is_json};
use super::secrets::SecretReport;
use super::separability::{FEWEST_PAIRS, MOST_AUC};
use super::{
    Certificates, ConfigSummary, Counts, DATA_LICENCE, Excluded, ExportConfig, ExportOptions, split,
};
use crate::model::{Actor, Rollout, Scores, floored_percent, table_cell};

/// The template that is used unless [`ExportOptions::card_template`] names another one.
const TEMPLATE: &str = include_str!("../../templates/report/dataset_card.md.j2");

/// Who acted in rollouts: agent, scaffold with its version, and arm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Teacher {
    kind: TeacherKind,
    name: String,
    scaffold: String,
    /// Of an agent that is not termsmith's own.
    version: Option<String>,
    arm: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum TeacherKind {
    /// The script of a recipe's expert.
    Script,
    Model,
    /// An agent of another harness.
    Imported,
    /// The task's own solution, or no agent at all. Neither writes messages.
    Reference,
}

/// A teacher's rollouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TeacherCounts {
    rollouts: Scores,
    /// Rollouts of tasks that termsmith did not make.
    foreign: u64,
}

impl Teacher {
    pub(super) fn of(rollout: &Rollout) -> Self {
        let actor = &rollout.record.actor;
        let kind = match actor {
            Actor::Scripted { .. } => TeacherKind::Script,
            Actor::Model(_) => TeacherKind::Model,
            Actor::Imported(_) => TeacherKind::Imported,
            Actor::Oracle | Actor::Nop => TeacherKind::Reference,
        };
        Self {
            kind,
            name: actor.teacher().to_owned(),
            scaffold: rollout.record.scaffold.clone(),
            version: program_version(rollout),
            arm: actor.arm().as_str(),
        }
    }
}

impl TeacherCounts {
    pub(super) fn add(&mut self, rollout: &Rollout) {
        self.rollouts += Scores::of(rollout.record.failure_kind());
        self.foreign += u64::from(rollout.metadata.recipe.is_none());
    }
}

/// A row of the card's table of teachers.
#[derive(Serialize)]
struct TeacherRow<'a> {
    kind: TeacherKind,
    name: Cow<'a, str>,
    scaffold: Cow<'a, str>,
    version: Option<Cow<'a, str>>,
    arm: &'a str,
    rollouts: Scores,
}

/// The cells of a table row for `scores`: scored, unscored, coverage, passing, rate.
fn score_cells(scores: &Value) -> Result<String, Error> {
    let count = |name: &str| u64::try_from(scores.get_attr(name)?);
    let scores = Scores { scored: count("scored")?, unscored: count("unscored")?, passed: count("passed")? };
    let coverage = scores.coverage().map_or_else(String::new, floored_percent);
    let rate = scores.pass_rate().map_or_else(String::new, |rate| rate.to_string());
    let Scores { scored, unscored, passed } = scores;
    Ok(format!("{scored} | {unscored} | {coverage} | {passed} | {rate}"))
}

/// The variables of the card's template.
#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    /// The licence of all rows. `None` if third parties have rights in some row.
    licence: Option<&'static str>,
    /// The licence of rows that only termsmith's scripts and recipes produced.
    our_licence: &'static str,
    teachers: Vec<TeacherRow<'a>>,
    /// Whether the export contains this kind of teacher.
    scripts: bool,
    models: bool,
    imported: bool,
    /// Number of rollouts of tasks from recipes, and of other tasks.
    of_recipes: u64,
    of_others: u64,
    authoring: Option<&'a str>,
    version: &'static str,
    size_category: &'static str,
    configs: Vec<Config>,
    domains: BTreeMap<Cow<'a, str>, &'a Counts>,
    total: Counts,
    command: Option<&'a str>,
    certificates: Option<&'a Certificates>,
    survivors: &'a [String],
    untouched_pass_ratio: Option<String>,
    excluded: Excluded,
    /// Kinds of values that look like credentials, with their counts.
    secrets: Vec<(String, u64)>,
    secrets_in: usize,
    secrets_masked: bool,
    content: Content,
    most_auc: f64,
    fewest_pairs: usize,
}

/// Maximum number of surviving mutants that the card names.
const MOST_SURVIVORS: usize = 20;

#[derive(Serialize)]
struct Config {
    name: &'static str,
    /// Whether loaders take it by default.
    default: bool,
    tags: &'static [&'static str],
    rows: u64,
    bytes: u64,
    files: usize,
    /// Splits that have rows.
    splits: Vec<&'static str>,
    about: String,
    columns: Vec<Described>,
}

/// A column in the card.
#[derive(Serialize)]
struct Described {
    name: String,
    r#type: String,
    nullable: bool,
    about: &'static str,
}

/// Renders the card.
pub(super) fn render(
    configs: &[(&ExportConfig, ConfigSummary)],
    domains: &BTreeMap<String, Counts>,
    teachers: &BTreeMap<Teacher, TeacherCounts>,
    (excluded, figures, secrets): (Excluded, &Figures, &SecretReport),
    options: &ExportOptions,
) -> Result<String, Box<Error>> {
    let rows = configs.iter().map(|(_, summary)| summary.rows).sum();
    let has = |kind| teachers.keys().any(|teacher| teacher.kind == kind);
    let of_others = teachers.values().map(|counts| counts.foreign).sum();
    // Loaders refuse a config without rows.
    let default = configs.iter().find(|(_, summary)| summary.rows > 0).or(configs.first());
    let default = default.map_or("", |(config, _)| config.name);
    let certificates = options.certificates.as_ref().filter(|all| all.tasks > 0);
    let context = Context {
        title: &options.title,
        licence: (!has(TeacherKind::Model) && !has(TeacherKind::Imported) && of_others == 0)
            .then_some(DATA_LICENCE),
        our_licence: DATA_LICENCE,
        scripts: has(TeacherKind::Script),
        models: has(TeacherKind::Model),
        imported: has(TeacherKind::Imported),
        of_recipes: teachers.values().map(|counts| counts.rollouts.total()).sum::<u64>() - of_others,
        of_others,
        teachers: teachers
            .iter()
            .map(|(who, counts)| TeacherRow {
                kind: who.kind,
                name: table_cell(&who.name),
                scaffold: table_cell(&who.scaffold),
                version: who.version.as_deref().map(table_cell),
                arm: who.arm,
                rollouts: counts.rollouts,
            })
            .collect(),
        authoring: options.authoring.as_deref(),
        version: env!("CARGO_PKG_VERSION"),
        size_category: size_category(rows),
        configs: configs
            .iter()
            .map(|(config, summary)| Config {
                name: config.name,
                default: config.name == default,
                tags: config.tags,
                rows: summary.rows,
                bytes: summary.bytes,
                files: summary.files.len(),
                splits: [split::TRAIN, split::TEST]
                    .into_iter()
                    .filter(|name| summary.files.iter().any(|file| file.split == *name))
                    .collect(),
                about: (config.about)(options),
                columns: describe((config.columns)()),
            })
            .collect(),
        domains: domains.iter().map(|(name, counts)| (table_cell(name), counts)).collect(),
        total: total(domains, configs),
        command: options.command.as_deref(),
        certificates,
        survivors: certificates
            .and_then(|all| all.survivors.get(..MOST_SURVIVORS).or(Some(&all.survivors)))
            .unwrap_or_default(),
        untouched_pass_ratio: certificates
            .and_then(|all| all.untouched.rate())
            .map(|rate| format!("{rate:.2}")),
        excluded,
        secrets: secrets.named(),
        secrets_in: secrets.trajectories.len(),
        secrets_masked: secrets.masked,
        content: figures.card(),
        most_auc: MOST_AUC,
        fewest_pairs: FEWEST_PAIRS,
    };
    let template = options.card_template.as_deref().unwrap_or(TEMPLATE);
    Ok(environment()?.render_named_str("dataset_card.md.j2", template, Value::from(Serde(&context)))?)
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("score_cells", |scores: Value| score_cells(&scores));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?,
    );
    Ok(environment)
}

/// Counts over all domains, with a number of rows for each of `configs`.
fn total(domains: &BTreeMap<String, Counts>, configs: &[(&ExportConfig, ConfigSummary)]) -> Counts {
    let rows = configs.iter().map(|(config, _)| (config.name, 0)).collect();
    let mut total = Counts { rows, ..Counts::default() };
    for counts in domains.values() {
        total.tasks += counts.tasks;
        total.rollouts += counts.rollouts;
        for (config, rows) in &counts.rows {
            *total.rows.entry(config).or_default() += rows;
        }
    }
    total
}

fn describe(columns: Vec<Column>) -> Vec<Described> {
    let columns = columns.into_iter().map(|column| Described {
        name: column.field.name().clone(),
        r#type: type_name(column.field.data_type()),
        nullable: column.field.is_nullable(),
        about: column.about,
    });
    columns.collect()
}

fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 => "string".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::List(item) if is_json(item) => "list<json>".to_owned(),
        DataType::List(item) => format!("list<{}>", type_name(item.data_type())),
        DataType::Struct(fields) => {
            let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            format!("struct<{}>", names.join(", "))
        }
        other => other.to_string().to_lowercase(),
    }
}

/// The size category of the Hugging Face Hub for a number of rows, e.g. `1K<n<10K`.
fn size_category(rows: u64) -> &'static str {
    match rows {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        1_000_000..10_000_000 => "1M<n<10M",
        _ => "n>10M",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_categories() {
        let check = |rows, expect| assert_eq!(size_category(rows), expect, "{rows}");
        check(0, "n<1K");
        check(999, "n<1K");
        check(1_000, "1K<n<10K");
        check(99_999, "10K<n<100K");
        check(9_999_999, "1M<n<10M");
        check(u64::MAX, "n>10M");
    }
}
