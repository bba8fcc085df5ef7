//! One blueprint, from draft to committed rollouts.

use std::time::Instant;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use super::error::Fault;
use super::event::{Event, EventSink};
use super::workshop::Workshop;
use crate::author::{AuthorError, draft};
use crate::harbor::{WriteOptions, task_files};
use crate::model::{
    Blueprint, Certificate, Draft, FileTree, Key, Screened, TrajectoryRecord, environment_digest,
};
use crate::rollout::{ROLLOUT, rollout};
use crate::screen::{SCREEN, screen};
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{Filed, Lab};

/// Bump when the same blueprint and recipe would give another draft.
pub const DRAFT: Stage = Stage { name: "draft", version: 1 };
/// The commit of a whole unit, by which readers find everything else.
pub const UNIT: Stage = Stage { name: "unit", version: 1 };

/// What a blueprint came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRecord {
    pub blueprint: Blueprint,
    pub draft: Key,
    pub certificate: Key,
    /// In order of attempts; empty for a rejected draft.
    pub rollouts: Vec<Key>,
}

/// A unit's ending, for the summary.
#[derive(Clone, Debug)]
pub struct Ended {
    pub key: Key,
    pub record: UnitRecord,
    pub certificate: Certificate,
}

/// A draft with its directory and digests, as screening and rollouts take it.
#[derive(Debug)]
pub struct FiledDraft {
    pub draft: Draft,
    pub key: Key,
    pub directory: FileTree,
    pub environment_digest: String,
}

/// Renders a blueprint's draft, or remembers it.
pub fn file_draft(
    workshop: &Workshop,
    store: &Store,
    blueprint: &Blueprint,
    harbor: &WriteOptions,
) -> Result<FiledDraft, Fault> {
    let unknown = || AuthorError::Unknown(blueprint.recipe.clone());
    let recipe = workshop.recipes.get(&blueprint.recipe).ok_or_else(unknown)?;
    let domain = workshop.domains.get(&blueprint.domain).ok_or_else(unknown)?;
    let input = serde_json::json!({
        "blueprint": blueprint,
        "recipe": recipe.digest(),
        "kit": workshop.kit.digest(),
        "limits": domain.limits,
    });
    let key = key(DRAFT, &input)?;
    let draft = match store.get::<Draft>(DRAFT, &key)? {
        Some(draft) => draft,
        None => {
            let draft = draft(&workshop.kit, recipe, blueprint, &domain.limits)?;
            store.put(DRAFT, &key, &draft)?;
            draft
        }
    };
    let base = workshop.kit.base(&draft.task.base).unwrap_or_default();
    let environment_digest = environment_digest(&draft.task.environment, base);
    let directory = task_files(&draft.task, harbor);
    Ok(FiledDraft { draft, key, directory, environment_digest })
}

/// Takes one blueprint to its committed end.
pub async fn unit(
    lab: &Lab<'_>,
    workshop: &Workshop,
    blueprint: &Blueprint,
    attempts: u32,
    harbor: &WriteOptions,
    events: EventSink<'_>,
) -> Result<Ended, Fault> {
    let started = Instant::now();
    let filed_draft = file_draft(workshop, lab.store, blueprint, harbor)?;
    let draft = &filed_draft.draft;
    let task = draft.task.name.to_string();
    let filed = Filed::new(&draft.task, filed_draft.environment_digest.clone())?;
    let (certificate_key, certificate) = certify(lab, workshop, &filed_draft, &filed, events).await?;
    let rollouts = match certificate.screened() {
        Screened::Rejected => Vec::new(),
        Screened::Certified => {
            let runs = (0..attempts).map(|attempt| {
                let (filed, certificate, task) = (&filed, &certificate, &task);
                async move {
                    let key = rollout(lab, &workshop.prompts, draft, filed, certificate, attempt).await?;
                    tell_rollout(lab.store, &key, task, attempt, events)?;
                    Ok::<_, Fault>(key)
                }
            });
            // All are waited for, so that a drained run commits what was under way.
            join_all(runs).await.into_iter().collect::<Result<Vec<_>, _>>()?
        }
    };
    let record = UnitRecord {
        blueprint: blueprint.clone(),
        draft: filed_draft.key.clone(),
        certificate: certificate_key,
        rollouts,
    };
    let key = key(UNIT, &record)?;
    if lab.store.get::<UnitRecord>(UNIT, &key)?.is_none() {
        lab.store.put(UNIT, &key, &record)?;
    }
    events(Event::Finished { task, seconds: started.elapsed().as_secs_f64() });
    Ok(Ended { key, record, certificate })
}

async fn certify(
    lab: &Lab<'_>,
    workshop: &Workshop,
    filed_draft: &FiledDraft,
    filed: &Filed<'_>,
    events: EventSink<'_>,
) -> Result<(Key, Certificate), Fault> {
    let started = Instant::now();
    let rules: Vec<_> = workshop.rules.iter().map(|rule| &rule.id).collect();
    let input = serde_json::json!({
        "draft": filed_draft.key,
        "task": filed.identity,
        "environment": filed.environment_digest,
        "directory": crate::model::task_digest(&filed_draft.directory),
        "rules": rules,
        "tool": env!("CARGO_PKG_VERSION"),
    });
    let key = key(SCREEN, &input)?;
    let certificate = match lab.store.get::<Certificate>(SCREEN, &key)? {
        Some(certificate) => certificate,
        None => {
            events(Event::Started { task: filed.task.name.to_string() });
            let certificate =
                screen(lab, &workshop.rules, &filed_draft.draft, filed, &filed_draft.directory).await?;
            lab.store.put(SCREEN, &key, &certificate)?;
            certificate
        }
    };
    events(Event::Screened {
        task: certificate.task.clone(),
        certified: certificate.certified,
        rows: certificate.rows.len(),
        reasons: certificate.reasons.iter().map(|reason| reason.message.clone()).collect(),
        seconds: started.elapsed().as_secs_f64(),
    });
    Ok((key, certificate))
}

fn tell_rollout(
    store: &Store,
    key: &Key,
    task: &str,
    attempt: u32,
    events: EventSink<'_>,
) -> Result<(), StoreError> {
    if let Some(record) = store.get::<TrajectoryRecord>(ROLLOUT, key)? {
        let outcome = format!("{:?}", record.verdict.outcome).to_lowercase();
        events(Event::RolledOut { task: task.to_owned(), attempt, outcome });
    }
    Ok(())
}
