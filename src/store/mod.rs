//! The store is the journal: a record that exists is done work, and never done again.
//!
//! `store/<stage>/<2 hex>/<key>.json` holds results that are functions of specs, templates, seed
//! and tool version; `observed/<2 hex>/<key>.json` holds what executions printed, by the same keys,
//! written before the record that commits it; `begun/<key>.json` notes work that has begun and is
//! not committed. Everything else in a run folder (`tasks/`, `trajectories/`, `data/`, …) is
//! derived from the first two and may be deleted. This module is the only writer of records. Every
//! writer below a run folder holds its lock ([`RunDir`]); [`ReadStore`] needs none and cannot
//! write.

mod atomic;
mod error;
mod journal;
mod lock;
mod run_dir;
#[cfg(test)]
mod tests;

pub use atomic::{FileChange, parent_of, publish_file, publish_tree, remove_published};
pub(crate) use atomic::{create_folder, replace_folder, sync_folder};
pub use error::StoreError;
pub use journal::{ReadStore, Stage, Store, key};
pub use run_dir::{RUN_FORMAT, RunDir, RunInfo};
