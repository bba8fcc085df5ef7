//! Taking over rollouts that were played elsewhere: they are filed like our own, with their source.

use std::path::Path;

use serde_json::json;

use super::campaign::{MEMBER, MemberRecord};
use super::posed::{POSED, PosedRecord};
use crate::agent::{HandoffSeen, TurnSeen};
use crate::model::Key;
use crate::rollout::import::{ImportError, Imported, Imports, read_imports};
use crate::rollout::{Forensics, ROLLOUT, RolloutLog, read_record};
use crate::store::{Store, StoreError, key};
use crate::verify::VerifierLog;

/// Why nothing was taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was taken over, and what was not.
#[derive(Debug, Default)]
pub struct Taken {
    pub rollouts: Vec<Key>,
    /// Of these, the ones that were there already.
    pub known: usize,
    pub refused: Vec<ImportError>,
}

/// Takes over every rollout at `path`: a Harbor job folder, a trial folder, or an ATIF file.
pub fn take_over(store: &Store, forensics: &Forensics, path: &Path) -> Result<Taken, TakeError> {
    let Imports { taken, refused } = read_imports(path)?;
    let mut done = Taken { refused, ..Taken::default() };
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
    let posed = PosedRecord {
        task: record.task.clone(),
        task_digest: record.task_digest.clone(),
        environment_digest: record.environment_digest.clone(),
        facts,
        checks,
    };
    let posed_key = key(POSED, &posed)?;
    if store.get::<PosedRecord>(POSED, &posed_key)?.is_none() {
        store.put(POSED, &posed_key, &posed)?;
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
    let member = MemberRecord { posed: posed_key, rollout: rollout.clone() };
    let member_key = key(MEMBER, &member)?;
    if store.get::<MemberRecord>(MEMBER, &member_key)?.is_none() {
        store.put(MEMBER, &member_key, &member)?;
    }
    Ok((rollout, known))
}
