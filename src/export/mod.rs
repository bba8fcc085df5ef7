//! Rollouts as training data: Parquet files that trainers read as they are, and ATIF.
//!
//! [`export`] makes one pass over the rollouts, task by task, and writes every config and a dataset
//! card. It reads only its arguments, and writes only below one folder. It needs no model, engine
//! or store. Equal rollouts give equal bytes. Unchanged files are not written again.

mod actions;
pub mod atif;
mod card;
mod config;
mod error;
mod figures;
#[cfg(test)]
pub(crate) mod fixture;
pub mod jobs;
pub mod messages;
mod overlap;
pub mod pairs;
pub mod parquet;
pub mod phi;
pub mod pref_dmpo;
pub mod pref_step;
mod publish;
pub mod report;
mod row;
pub mod secrets;
pub mod separability;
pub mod sft;
#[cfg(test)]
mod shapes;
pub mod split;
pub mod surface;
pub mod train;
mod version;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use card::{Certificates, Counts};
use card::{Teacher, TeacherCounts};
pub use config::{CONFIGS, ExportConfig};
pub use error::{ExportError, RowsError, WriteError};
pub use overlap::Solutions;
pub use row::{Column, Row, schema};

use self::config::ConfigWriter;
use self::figures::Figures;
use self::pairs::PairPolicy;
use self::parquet::Bounds;
use self::phi::Gamma;
use self::publish::Staging;
use self::secrets::{SecretHandling, SecretReport};
use self::train::FailedTurns;
use self::version::versions;
use crate::model::{Actor, Rollout, Scores};
use crate::store::FileChange;

/// Licence of generated data (SPDX). The card states it, and every row in which third parties have
/// no rights.
pub const DATA_LICENCE: &str = "CC-BY-4.0";

/// The licence of a rollout's text. It is known only for scripted rollouts of tasks from recipes.
/// For others the terms of the model's provider or the task's author apply, and termsmith does not
/// know them.
fn licence(rollout: &Rollout) -> Option<&'static str> {
    let ours = matches!(rollout.record.actor, Actor::Scripted { .. } | Actor::Oracle | Actor::Nop);
    (ours && rollout.metadata.recipe.is_some()).then_some(DATA_LICENCE)
}

/// Options of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Heading of the dataset card.
    pub title: String,
    /// Which trajectories become rows of `sft`.
    pub sft: sft::Filter,
    /// How turns that went wrong are treated.
    pub failed_turns: FailedTurns,
    /// Which pairs become rows of `pref_dmpo`.
    pub pairs: PairPolicy,
    /// The discount γ of DMPO.
    pub gamma: Gamma,
    pub bounds: Bounds,
    /// How values that look like credentials are treated.
    pub secrets: SecretHandling,
    /// Whether to refuse an export if surface features tell the sides of pairs apart.
    pub strict: bool,
    /// For the card: the command that wrote the rows.
    pub command: Option<String>,
    /// For the card: sums over the tasks' certificates, if there are any.
    pub certificates: Option<Certificates>,
    /// For the card: what became of the tasks that a model wrote. `None` if there are none.
    pub authoring: Option<String>,
    /// The card's template. `None` for the built-in one.
    pub card_template: Option<String>,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            title: "Verified terminal trajectories".to_owned(),
            sft: sft::Filter::default(),
            failed_turns: FailedTurns::default(),
            pairs: PairPolicy::default(),
            gamma: Gamma::default(),
            bounds: Bounds::default(),
            secrets: SecretHandling::default(),
            strict: false,
            command: None,
            certificates: None,
            authoring: None,
            card_template: None,
        }
    }
}

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

/// The rows that an export wrote, and the rollouts that it left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub configs: Vec<ConfigSummary>,
    /// Counts by the domain of the plan, or by the category that an imported task states.
    pub domains: BTreeMap<String, Counts>,
    pub excluded: Excluded,
    /// Number of pairs that the surface features were measured on. Below
    /// [`separability::FEWEST_PAIRS`] a strict export refuses nothing.
    pub measured_pairs: usize,
    /// Values in the rollouts that look like credentials.
    pub secrets: SecretReport,
    /// Number of values in records that are out of range. Their columns are null.
    pub left_out: u64,
    /// Whether any file changed.
    pub changed: bool,
}

/// What was written for one config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigSummary {
    pub name: &'static str,
    pub rows: u64,
    /// Sum of the file sizes.
    pub bytes: u64,
    pub files: Vec<FileSummary>,
}

/// One Parquet file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Path relative to the data folder.
    pub path: PathBuf,
    /// `train`, or `test` for held-out groups.
    pub split: &'static str,
    pub rows: u64,
    pub bytes: u64,
}

/// Number of trajectories that `sft` leaves out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Excluded {
    pub not_passing: u64,
    /// The agent wrote no message.
    pub without_turns: u64,
    /// A message is empty, and chat templates refuse that.
    pub with_empty_message: u64,
    /// The agent was told to cheat.
    pub adversarial: u64,
    /// A command failed, or work was repaired, and the options leave such trajectories out.
    pub with_failed_turns: u64,
    /// It passed with the same commands as another rollout of its task. Counts only if `sft` has
    /// passes only.
    pub near_duplicates: u64,
}

impl Excluded {
    fn count(&mut self, exclusion: Option<sft::Exclusion>) {
        let counter = match exclusion {
            Some(sft::Exclusion::NotPassing) => &mut self.not_passing,
            Some(sft::Exclusion::WithoutTurns) => &mut self.without_turns,
            Some(sft::Exclusion::Adversarial) => &mut self.adversarial,
            Some(sft::Exclusion::WithEmptyMessage) => &mut self.with_empty_message,
            Some(sft::Exclusion::WithFailedTurns) => &mut self.with_failed_turns,
            Some(sft::Exclusion::NearDuplicate) => &mut self.near_duplicates,
            None => return,
        };
        *counter += 1;
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
            let exclusions = sft::exclusions(&rollouts, options);
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
