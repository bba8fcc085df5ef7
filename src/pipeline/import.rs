//! Imports rollouts of other harnesses: their records are those of our own rollouts, with their source.

use std::path::Path;

use serde_json::json;

use super::campaign::{MEMBER, MemberRecord};
use super::prepared::{PREPARED, PreparedRecord};
use crate::agent::{HandoffSeen, TurnSeen};
use crate::model::Key;
use crate::rollout::import::{ImportError, Imported, Imports, read_imports};
use crate::rollout::{Forensics, ROLLOUT, RolloutLog, read_record};
use crate::store::{Store, StoreError, key};
use crate::verify::VerifierLog;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportTaskError {
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The rollouts of one import.
#[derive(Debug, Default)]
pub struct ImportSummary {
    pub rollouts: Vec<Key>,
    /// How many of these had been imported before.
    pub known: usize,
    pub refused: Vec<ImportError>,
}

/// Imports every rollout at `path`: a Harbor job folder, a trial folder, or an ATIF file.
pub fn import_rollouts(
    store: &Store,
    forensics: &Forensics,
    path: &Path,
) -> Result<ImportSummary, ImportTaskError> {
    let Imports { rollouts, refused } = read_imports(path)?;
    let mut summary = ImportSummary { refused, ..ImportSummary::default() };
    for imported in rollouts {
        let (key, known) = store_rollout(store, forensics, imported)?;
        summary.known += usize::from(known);
        summary.rollouts.push(key);
    }
    Ok(summary)
}

fn store_rollout(
    store: &Store,
    forensics: &Forensics,
    imported: Imported,
) -> Result<(Key, bool), StoreError> {
    let Imported { mut record, shown, handoffs, metadata, checks, .. } = imported;
    record.exploits = forensics.examine(&record.turns);
    let prepared = PreparedRecord {
        task: record.task.clone(),
        task_digest: record.task_digest.clone(),
        environment_digest: record.environment_digest.clone(),
        metadata,
        checks,
    };
    let prepared_key = key(PREPARED, &prepared)?;
    if store.get::<PreparedRecord>(PREPARED, &prepared_key)?.is_none() {
        store.put(PREPARED, &prepared_key, &prepared)?;
    }
    let rollout = key(ROLLOUT, &json!({ "imported": record }))?;
    let known = read_record(store, &rollout)?.is_some();
    if !known {
        let turns = shown.into_iter().map(|shown| TurnSeen { shown, ..TurnSeen::default() }).collect();
        let log = RolloutLog {
            started_ms: 0,
            turns,
            handoffs: handoffs
                .into_iter()
                .map(|shown| HandoffSeen { shown, ..HandoffSeen::default() })
                .collect(),
            verifier: VerifierLog::default(),
            engine: "imported".to_owned(),
            seconds: 0.0,
        };
        store.observe(&rollout, &log)?;
        store.put(ROLLOUT, &rollout, &record)?;
    }
    let member = MemberRecord { prepared: prepared_key, rollout: rollout.clone() };
    let member_key = key(MEMBER, &member)?;
    if store.get::<MemberRecord>(MEMBER, &member_key)?.is_none() {
        store.put(MEMBER, &member_key, &member)?;
    }
    Ok((rollout, known))
}
