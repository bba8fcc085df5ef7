//! The store: records of finished work. Work with a record is never repeated.
//!
//! - `store/<stage>/<2 hex>/<key>.json` are results. They depend only on specs, templates, seed and
//!   build.
//! - `observed/<2 hex>/<key>.json` are outputs of executions, under the same keys. They are written
//!   before the record.
//! - `started/<key>.json` are notes about work that has started and is not committed.
//!
//! Everything else in a run folder (`tasks/`, `trajectories/`, `data/`, …) is derived from the
//! first two, and may be deleted.
//!
//! Only this module writes records. Every writer in a run folder holds its lock ([`RunDir`]).
//! [`ReadStore`] needs no lock, and cannot write.

mod atomic;
mod error;
mod journal;
mod lock;
mod run_dir;
mod stage;
#[cfg(test)]
mod tests;

pub use atomic::{FileChange, parent_of, publish_file, publish_tree, remove_published};
pub(crate) use atomic::{create_folder, replace_folder, sync_folder};
pub use error::StoreError;
pub use journal::{ReadStore, Recency, Store};
pub use run_dir::{RUN_FORMAT, RunDir, RunInfo};
pub use stage::{BUILD_VARIABLE, Stage, build_id, key};
