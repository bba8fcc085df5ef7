//! Harbor task directories: the format in which tasks are written and read.
//!
//! The reader accepts directories from any source, with schema 1.0 to 1.4. It limits sizes, follows
//! no links, and reports unknown keys. The writer makes directories that Harbor 0.24 and 0.25 run
//! unchanged. [`HarborTask::into_task`] reads them back without loss. This module runs no code of a
//! task.

mod certificate;
mod classes;
mod find;
mod manifest;
mod name;
mod ours;
mod parse;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use certificate::{CertificateError, read_certificate};
pub use classes::{CLASSES, add_classes};
pub use find::{FoundTasks, Skipped, SkippedBecause, find_tasks};
pub use manifest::{
    Agent, Author, Environment, Healthcheck, Manifest, McpServer, Package, Solution, StepEntry, Tpu, Verifier,
};
pub use name::{is_task_of, own_name, task_name};
pub use ours::TermsmithTable;
pub use parse::{Finding, FindingKind, ManifestError, parse_manifest};
pub use read::{CLAUSES, HarborTask, IntoTaskError, ReadError, read_clauses, read_task};
pub use write::{DeclaredVerifier, Publication, WriteError, write_task};

/// The schema version of written `task.toml` files.
pub const SCHEMA_VERSION: &str = "1.4";

/// Schema versions that the reader understands.
pub const KNOWN_SCHEMA_VERSIONS: [&str; 5] = ["1.0", "1.1", "1.2", "1.3", "1.4"];

/// The organisation in `[task].name` of written tasks.
const ORGANISATION: &str = "termsmith";

/// The value of `network_mode` for a container without network. All of termsmith's tasks have it.
const NO_NETWORK: &str = "no-network";
