//! Rollouts as training data: Parquet files that trainers read as they are, and ATIF.
//!
//! [`export`] makes one pass over the rollouts, task by task, and writes every config and a dataset
//! card. It reads only its arguments, and writes only below one folder. It needs no model, engine
//! or store. Equal rollouts give equal bytes. Unchanged files are not written again.

mod actions;
pub mod atif;
mod card;
mod certificates;
mod config;
mod error;
mod exclusion;
mod figures;
#[cfg(test)]
pub(crate) mod fixture;
mod function_messages;
pub mod jobs;
mod json_text;
mod licence;
pub mod messages;
mod options;
mod overlap;
pub mod pairs;
pub mod parquet;
pub mod phi;
pub mod pref_dmpo;
pub mod pref_step;
mod publish;
pub mod report;
mod rollout_columns;
mod row;
pub mod secrets;
pub mod separability;
pub mod sft;
pub mod sft_tools;
#[cfg(test)]
mod shapes;
pub mod split;
mod summary;
pub mod surface;
pub mod train;
mod version;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

pub use certificates::Certificates;
pub use config::{CONFIGS, ExportConfig};
pub use error::{ExportError, RowsError, WriteError};
pub use licence::DATA_LICENCE;
pub use options::{Bounds, ExportOptions, SftFilter};
pub use overlap::Solutions;
pub use rollout_columns::RolloutColumns;
pub use row::{Column, Row, schema};
pub use summary::{ConfigSummary, Counts, Excluded, ExportSummary, FileSummary};

use self::card::{Teacher, TeacherCounts};
use self::config::ConfigWriter;
use self::figures::Figures;
use self::publish::Staging;
use self::secrets::SecretReport;
use self::version::versions;
use crate::model::{Rollout, Scores};
use crate::store::FileChange;

/// The rollouts of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskRollouts {
    pub rollouts: Vec<Rollout>,
    /// The task's solutions, if they are known. Only the card uses them.
    pub solutions: Solutions,
}

impl From<Vec<Rollout>> for TaskRollouts {
    fn from(rollouts: Vec<Rollout>) -> Self {
        Self { rollouts, solutions: Solutions::default() }
    }
}

/// Writes `<data>/<config>/…` and `<data>/README.md` from `groups`. Each group holds the rollouts
/// of one task, in plan order. Different versions of a task are treated as different tasks.
///
/// Everything is written to a staging folder, and renamed at the end. So a failure before that
/// leaves the data folder unchanged, also a failure of the source of the rollouts.
pub fn export<E: Error + 'static>(
    data: &Path,
    groups: impl IntoIterator<Item = Result<impl Into<TaskRollouts>, E>>,
    options: &ExportOptions,
) -> Result<ExportSummary, ExportError<E>> {
    export_configs(data, groups, options, &CONFIGS)
}

fn export_configs<E: Error + 'static>(
    data: &Path,
    groups: impl IntoIterator<Item = Result<impl Into<TaskRollouts>, E>>,
    options: &ExportOptions,
    configs: &[ExportConfig],
) -> Result<ExportSummary, ExportError<E>> {
    let staging = Staging::open(data)?;
    let mut writers: Vec<(&ExportConfig, Box<dyn ConfigWriter>)> = Vec::with_capacity(configs.len());
    for config in configs {
        writers.push((config, (config.create)(&staging.folder(config.name)?, options.bounds)?));
    }
    let mut domains: BTreeMap<String, Counts> = BTreeMap::new();
    let mut teachers = BTreeMap::new();
    let mut excluded = Excluded::default();
    let mut figures = Figures::default();
    let mut secrets = SecretReport::new(options.secrets);
    let mut left_out = 0;
    for group in groups {
        let TaskRollouts { rollouts, solutions } = group.map_err(ExportError::Source)?.into();
        for mut rollouts in versions(rollouts) {
            for rollout in &mut rollouts {
                secrets.examine(rollout);
                left_out += u64::from(rollout.left_out);
            }
            let Some(first) = rollouts.first() else { continue };
            let counts = domains.entry(first.metadata.domain.clone()).or_default();
            counts.tasks += 1;
            for rollout in &rollouts {
                teachers.entry(Teacher::of(rollout)).or_insert_with(TeacherCounts::default).add(rollout);
                counts.rollouts += Scores::of(rollout.record.failure_kind());
            }
            let exclusions = exclusion::exclusions(&rollouts, options);
            exclusions.iter().for_each(|exclusion| excluded.count(*exclusion));
            figures.add(&rollouts, &exclusions, &solutions, options)?;
            for (config, writer) in &mut writers {
                *counts.rows.entry(config.name).or_default() += writer.push_task(&rollouts, options)?;
            }
        }
    }

    if options.strict {
        figures.separability.check()?;
    }
    let mut summaries = Vec::with_capacity(writers.len());
    for (config, writer) in writers {
        summaries.push((config, writer.finish(figures.hold_out())?));
    }
    let card = card::render(&summaries, &domains, &teachers, (excluded, &figures, &secrets), options)
        .map_err(ExportError::Card)?;
    let summaries: Vec<ConfigSummary> = summaries.into_iter().map(|(_, summary)| summary).collect();
    let mut changed = false;
    for config in &summaries {
        changed |= staging.publish_folder(config.name)? == FileChange::Written;
    }
    changed |= staging.publish_file("README.md", &card)? == FileChange::Written;
    let measured_pairs = figures.separability.pairs();
    Ok(ExportSummary { configs: summaries, domains, excluded, measured_pairs, secrets, left_out, changed })
}
