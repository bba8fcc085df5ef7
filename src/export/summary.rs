//! What an export wrote and left out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::exclusion::Exclusion;
use super::secrets::SecretReport;
use crate::model::Scores;

/// The rows that an export wrote, and the rollouts that it left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub configs: Vec<ConfigSummary>,
    /// Counts by the domain of the plan, or by the category that an imported task states.
    pub domains: BTreeMap<String, Counts>,
    pub excluded: Excluded,
    /// Number of pairs that the surface features were measured on. Below
    /// [`FEWEST_PAIRS`](super::separability::FEWEST_PAIRS) a strict export refuses nothing.
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

/// Number of trajectories that `sft` and `sft_tools` leave out, by reason.
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
    /// It passed with the same commands as another rollout of its task. Counts only if the rows
    /// are passes only.
    pub near_duplicates: u64,
}

impl Excluded {
    pub(super) fn count(&mut self, exclusion: Option<Exclusion>) {
        let counter = match exclusion {
            Some(Exclusion::NotPassing) => &mut self.not_passing,
            Some(Exclusion::WithoutTurns) => &mut self.without_turns,
            Some(Exclusion::Adversarial) => &mut self.adversarial,
            Some(Exclusion::WithEmptyMessage) => &mut self.with_empty_message,
            Some(Exclusion::WithFailedTurns) => &mut self.with_failed_turns,
            Some(Exclusion::NearDuplicate) => &mut self.near_duplicates,
            None => return,
        };
        *counter += 1;
    }
}

/// Counts of an export for one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Tasks with at least one rollout.
    pub tasks: u64,
    pub rollouts: Scores,
    /// Number of rows by config.
    pub rows: BTreeMap<&'static str, u64>,
}
