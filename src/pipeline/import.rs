//! Taking over rollouts that were played elsewhere: they are filed like our own, with their source.

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

/// Why nothing was taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportTaskError {
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was taken over, and what was not.
#[derive(Debug, Default)]
pub struct CapacityPermit {
    pub rollouts: Vec<Key>,
    /// Of these, the ones that were there already.
    pub known: usize,
    pub refused: Vec<ImportError>,
}

/// Takes over every rollout at `path`: a Harbor job folder, a trial folder, or an ATIF file.
pub fn take_over(
    store: &Store,
    forensics: &Forensics,
    path: &Path,
) -> Result<CapacityPermit, ImportTaskError> {
    let Imports { taken, refused } = read_imports(path)?;
    let mut done = CapacityPermit { refused, ..CapacityPermit::default() };
    for imported in taken {
        let (key, known) = file(store, forensics, imported)?;
        done.known += usize::from(known);
        done.rollouts.push(key);
    }
    Ok(done)
}

fn file(store: &Store, forensics: &Forensics, imported: Imported) -> Result<(Key, bool), StoreError> {
    let Imported { mut record, shown, handoffs, facts, checks, .. } = imported;
    record.exploits = forensics.examine(&record.turns);
    let prepared = PreparedRecord {
        task: record.task.clone(),
        task_digest: record.task_digest.clone(),
        environment_digest: record.environment_digest.clone(),
        facts,
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
