//! Counts, from a store, how many blueprints of a model got how far.

use std::collections::BTreeMap;

use super::authored::AUTHORING;
use super::gather::current_units;
use super::unit::{UNIT, UnitRecord};
use crate::audit::{AuthoredEntry, CallCount, Funnel, call_row, funnel};
use crate::authoring::{BLIND, SCREENING, stage_names};
use crate::harbor::task_name;
use crate::llm::{CallUse, ModelRole, call_uses};
use crate::model::{AuthoringLog, AuthoringOutcome, AuthoringRecord, Certificate, Key, StageName};
use crate::screen::SCREEN;
use crate::store::{ReadStore, StoreError};

/// The funnel of a run folder. Each blueprint counts once: with the draft of its current unit, or
/// as given up.
pub(super) fn authoring_funnel(store: &ReadStore) -> Result<Option<Funnel>, StoreError> {
    let mut certificates: BTreeMap<Key, Certificate> = BTreeMap::new();
    for unit in current_units(store, &[])? {
        let Some(record) = store.get::<UnitRecord>(UNIT, &unit.key)? else { continue };
        if let Some(certificate) = store.get::<Certificate>(SCREEN, &record.certificate)? {
            certificates.insert(record.draft, certificate);
        }
    }
    let mut records: BTreeMap<String, (bool, AuthoredEntry)> = BTreeMap::new();
    for key in store.keys(AUTHORING)? {
        let Some(record) = store.get::<AuthoringRecord>(AUTHORING, &key)? else { continue };
        let task = task_name(&record.blueprint).to_string();
        let certificate = match &record.outcome {
            AuthoringOutcome::Draft(draft) => certificates.get(draft),
            AuthoringOutcome::Rejected(_) => None,
        };
        let current = certificate.is_some();
        // After a prompt was edited, the store also has the record of the former prompt.
        if records.get(&task).is_some_and(|(taken, _)| *taken || !current) {
            continue;
        }
        let log = store.observed::<AuthoringLog>(&key)?.unwrap_or_default();
        let entry = AuthoredEntry {
            task: task.clone(),
            lost: lost(&record, &log, certificate),
            versions: record.versions,
            difficulty_bands: record.difficulty_bands,
            certified: certificate.map(|certificate| certificate.certified),
        };
        records.insert(task, (current, entry));
    }
    let entries: Vec<_> = records.into_values().map(|(_, entry)| entry).collect();
    if entries.is_empty() {
        return Ok(None);
    }
    Ok(funnel(&entries, calls(store)?, stage_names()))
}

/// At which point, and why, a draft failed to become a certified task.
fn lost(
    record: &AuthoringRecord,
    log: &AuthoringLog,
    certificate: Option<&Certificate>,
) -> Option<(StageName, String)> {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match (&record.outcome, certificate) {
        (AuthoringOutcome::Rejected(stage), _) => {
            let problem = log.problems.last().and_then(|problems| problems.first());
            Some((stage.clone(), problem.map(|problem| first_line(problem)).unwrap_or_default()))
        }
        (AuthoringOutcome::Draft(_), Some(certificate)) => {
            let reason = certificate.reasons.first()?;
            Some((StageName::of(SCREENING), first_line(&reason.message)))
        }
        (AuthoringOutcome::Draft(_), None) => None,
    }
}

/// Calls by stage.
fn calls(store: &ReadStore) -> Result<BTreeMap<String, CallCount>, StoreError> {
    let mut rows: BTreeMap<String, CallCount> = BTreeMap::new();
    for CallUse { site, usage, picodollars } in call_uses(store)? {
        let row = match (call_row(&site.stage), site.role) {
            (Some(row), _) => row,
            (None, ModelRole::Solver | ModelRole::Weak) => BLIND,
            (None, _) => continue,
        };
        let (input_tokens, output_tokens) = usage;
        let count = CallCount { replies: 1, input_tokens, output_tokens, picodollars };
        rows.entry(row.to_owned()).or_default().add(count);
    }
    Ok(rows)
}
