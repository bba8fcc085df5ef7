//! Options of an export. Every config reads them, so this file uses no config.

use serde::Serialize;

use super::certificates::Certificates;
use super::pairs::PairPolicy;
use super::phi::Gamma;
use super::secrets::SecretHandling;
use super::train::FailedTurns;

/// Options of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Heading of the dataset card.
    pub title: String,
    /// Which trajectories become rows of `sft`.
    pub sft: SftFilter,
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
            sft: SftFilter::default(),
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

/// Which trajectories become rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SftFilter {
    /// Trajectories that passed every check.
    #[default]
    Passing,
    /// Every trajectory in which the agent wrote a message.
    All,
}

/// Bounds of files and memory, all in bytes of uncompressed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of rows that are collected before they are encoded.
    pub batch: usize,
    /// Bytes after which a row group is closed. Readers load one row group at a time.
    pub row_group: usize,
    /// Maximum bytes of a shard, unless a single row is larger.
    pub shard: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        // Hugging Face allows 100 MB for a row group and 500 MB for a shard. Encoding needs about
        // four times the memory of a batch.
        Self { batch: 1 << 20, row_group: 32 << 20, shard: 400_000_000 }
    }
}
