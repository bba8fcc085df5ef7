//! Export and audit over a run's store. Neither touches an engine.

use super::error::PipelineError;
use super::gather::gather;
use super::run::{BLUEPRINT, RunReport};
use super::workshop::Workshop;
use crate::audit::{Audit, AuditEntry, DomainSkills, audit};
use crate::domain::Plan;
use crate::export::{ExportOptions, ExportSummary, export};
use crate::model::{Blueprint, File};
use crate::store::{Store, StoreError};

/// Writes `data/` from the store, one task at a time.
pub fn export_store(store: &Store, options: &ExportOptions) -> Result<ExportSummary, PipelineError> {
    let groups = gather(store)?
        .map(|unit| unit.map(|unit| unit.rollouts.into_iter().map(|(rollout, _)| rollout).collect::<Vec<_>>()));
    Ok(export(&store.dir().root().join("data"), groups, options)?)
}
