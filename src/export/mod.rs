//! Rollouts as training data: Parquet that trainers read unmodified, and ATIF.
//!
//! [`export`] makes one pass over the rollouts, a task at a time, and writes every config beside a dataset card. It reads
//! what it is given and writes below one folder; it knows nothing of models, engines or the store. Equal rollouts give
//! equal bytes, and files that would not change are not touched.

pub mod atif;
mod card;
mod error;
#[cfg(test)]
mod fixture;
pub mod jobs;
pub mod messages;
pub mod pairs;
pub mod parquet;
pub mod phi;
pub mod pref_dmpo;
mod publish;
pub mod report;
mod row;
pub mod sft;
#[cfg(test)]
mod shapes;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use card::Counts;
use card::{Teacher, TeacherCounts};
pub use error::{ExportError, StorageError, WriteError};
pub use publish::Change;
pub use row::{Column, Row, schema};

use self::pairs::PairPolicy;
use self::parquet::{Bounds, Shards};
use self::phi::Gamma;
use self::publish::Staging;
use crate::model::{Actor, Rollout};

/// Licence of generated data (SPDX), stated in the card and on every row that is ours to give.
pub const DATA_LICENCE: &str = "CC-BY-4.0";

/// The licence of what a rollout says, where that is ours to give: scripts at work on tasks of recipes. The terms of a model's provider,
/// and of who made a task, are theirs.
fn licence(rollout: &Rollout) -> Option<&'static str> {
    let ours = matches!(rollout.record.actor, Actor::Scripted { .. } | Actor::Oracle | Actor::Nop);
    (ours && rollout.facts.recipe.is_some()).then_some(DATA_LICENCE)
}

/// What is exported, and how.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Heading of the dataset card.
    pub title: String,
    /// Which trajectories `sft` takes.
    pub sft: sft::Filter,
    /// Which pairs `pref_dmpo` takes.
    pub pairs: PairPolicy,
    /// DMPO's discount.
    pub gamma: Gamma,
    pub bounds: Bounds,
    /// Text of the card's template; `None` for the built-in one.
    pub card_template: Option<String>,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            title: "Verified terminal trajectories".to_owned(),
            sft: sft::Filter::default(),
            pairs: PairPolicy::default(),
            gamma: Gamma::default(),
            bounds: Bounds::default(),
            card_template: None,
        }
    }
}

/// What an export wrote and what it left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub configs: Vec<ConfigSummary>,
    /// By domain of the plan, or by the category that a task of other makers names.
    pub domains: BTreeMap<String, Counts>,
    pub left_out: LeftOut,
    /// Whether any file changed.
    pub changed: bool,
}

/// One config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigSummary {
    pub name: &'static str,
    pub rows: u64,
    /// Sum of the file sizes.
    pub bytes: u64,
    pub files: Vec<FileSummary>,
}

/// One shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Relative to the data folder.
    pub path: PathBuf,
    pub rows: u64,
    pub bytes: u64,
}

/// Trajectories that are no row of `sft`, with the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub not_passing: u64,
    /// Nothing was ever said in them.
    pub without_turns: u64,
    /// A message is empty, which no chat template takes.
    pub with_empty_message: u64,
    /// An agent that was told to cheat.
    pub adversarial: u64,
}

/// Writes `<data>/<config>/…` and `<data>/README.md` from `groups`, each the rollouts of one task, in plan order.
///
/// Everything is written aside and put in place at the end. If anything fails before that, including the source of the
/// rollouts, the data folder keeps what it had.
pub fn export<E: Error + 'static>(
    data: &Path,
    groups: impl IntoIterator<Item = Result<Vec<Rollout>, E>>,
    options: &ExportOptions,
) -> Result<ExportSummary, ExportError<E>> {
    let staging = Staging::open(data)?;
    let mut writers = Writers {
        sft: Shards::create(&staging.folder(sft::Row::CONFIG)?, options.bounds)?,
        pref_dmpo: Shards::create(&staging.folder(pref_dmpo::Row::CONFIG)?, options.bounds)?,
    };
    let mut domains = BTreeMap::new();
    let mut teachers = BTreeMap::new();
    let mut left_out = LeftOut::default();
    for group in groups {
        let rollouts = group.map_err(ExportError::Source)?;
        let Some(first) = rollouts.first() else { continue };
        let counts = domains.entry(first.facts.domain.clone()).or_default();
        for rollout in &rollouts {
            teachers.entry(Teacher::of(rollout)).or_insert_with(TeacherCounts::default).add(rollout);
        }
        export_task(&rollouts, options, &mut writers, counts, &mut left_out)?;
    }

    let configs = vec![summary::<sft::Row>(writers.sft)?, summary::<pref_dmpo::Row>(writers.pref_dmpo)?];
    let card = card::render(&configs, &domains, &teachers, options).map_err(ExportError::Card)?;
    let mut changed = false;
    for config in &configs {
        changed |= staging.publish_folder(config.name)? == Change::Written;
    }
    changed |= staging.publish_file("README.md", &card)? == Change::Written;
    Ok(ExportSummary { configs, domains, left_out, changed })
}

/// One writer for each config.
struct Writers {
    sft: Shards<sft::Row>,
    pref_dmpo: Shards<pref_dmpo::Row>,
}

fn export_task<E: Error + 'static>(
    rollouts: &[Rollout],
    options: &ExportOptions,
    writers: &mut Writers,
    counts: &mut Counts,
    left_out: &mut LeftOut,
) -> Result<(), ExportError<E>> {
    counts.tasks += 1;
    for rollout in rollouts {
        counts.rollouts += 1;
        let passing = rollout.record.succeeded();
        counts.passing += u64::from(passing);
        if options.sft == sft::Filter::Passing && !passing {
            left_out.not_passing += 1;
        } else if rollout.record.turns.is_empty() {
            left_out.without_turns += 1;
        } else if rollout.record.is_adversarial() {
            left_out.adversarial += 1;
        } else if messages::has_empty_message(rollout) {
            left_out.with_empty_message += 1;
        } else {
            for row in sft::Row::all(rollout)? {
                writers.sft.push(row)?;
                counts.sft += 1;
            }
        }
    }
    for pair in pairs::pairs(rollouts, &options.pairs)? {
        writers.pref_dmpo.push(pref_dmpo::Row::new(&pair, &options.pairs, options.gamma)?)?;
        counts.pref_dmpo += 1;
    }
    Ok(())
}

fn summary<R: Row>(shards: Shards<R>) -> Result<ConfigSummary, WriteError> {
    let files: Vec<FileSummary> = shards
        .finish()?
        .into_iter()
        .map(|shard| FileSummary {
            path: Path::new(R::CONFIG).join(shard.name),
            rows: shard.rows,
            bytes: shard.bytes,
        })
        .collect();
    Ok(ConfigSummary {
        name: R::CONFIG,
        rows: files.iter().map(|file| file.rows).sum(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        files,
    })
}
