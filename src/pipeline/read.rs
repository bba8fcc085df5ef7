//! Export and audit of a run's store. They use no engine.

use std::collections::{BTreeMap, BTreeSet};

use super::assets::PipelineAssets;
use super::error::PipelineError;
use super::funnel::authoring_funnel;
use super::gather::{current_units, gather, gather_groups, gather_tasks, read_draft};
use super::run::BLUEPRINT;
use crate::audit::{Audit, AuditEntry, DomainAxes, SkillAxes, audit, table};
use crate::domain::DomainSpec;
use crate::export::report::{Report, text};
use crate::export::{Certificates, ExportOptions, ExportSummary, Solutions, TaskRollouts, export};
use crate::harbor::task_name;
use crate::model::{Actor, Blueprint, DomainId, Draft, File, Rollout, Scores, TaskDigest};
use crate::store::{ReadStore, Store, StoreError};

/// The file that lists trajectories with values that look like credentials. It lies outside
/// `data/`, which may be published.
pub const SECRETS: &str = "report/secrets.json";

/// Writes `data/` from the store, one task at a time.
pub fn export_store(store: &Store, options: &ExportOptions) -> Result<ExportSummary, PipelineError> {
    let groups = gather_tasks(store)?.map(|task| {
        task.map(|(rollouts, draft)| TaskRollouts {
            rollouts: rollouts.into_iter().map(|(rollout, _)| rollout).collect(),
            solutions: draft.as_ref().map_or_else(Solutions::default, solutions),
        })
    });
    let authoring = authoring_funnel(store)?.map(|funnel| funnel.line());
    let certificates = Some(certificates(store)?);
    let options = ExportOptions { authoring, certificates, ..options.clone() };
    let summary = export(&store.dir().root().join("data"), groups, &options)?;
    if summary.secrets.trajectories.is_empty() {
        store.dir().remove(SECRETS)?;
    } else {
        let json = serde_json::to_string_pretty(&summary.secrets).map_err(StoreError::Encode)? + "\n";
        store.dir().publish_file(SECRETS, &File::text(json))?;
    }
    Ok(summary)
}

/// The reference and the second solution.
fn solutions(draft: &Draft) -> Solutions {
    Solutions::of(std::iter::once(&draft.task.solution).chain(&draft.second))
}

/// Summaries of the current units' certificates.
fn certificates(store: &ReadStore) -> Result<Certificates, StoreError> {
    let mut all = Certificates::default();
    for unit in current_units(store, &[])? {
        if let Some((_, certificate)) = read_draft(store, &unit.key)? {
            all.add(&certificate);
        }
    }
    Ok(all)
}

/// Coverage of a run, compared with all specs in use.
pub fn audit_store(assets: &PipelineAssets, store: &ReadStore) -> Result<Audit, StoreError> {
    let mut entries = Vec::new();
    // Blueprints are compared by task name: a task has one unit, and its seed does not depend on
    // the recipe.
    let mut seen = BTreeSet::new();
    let by_models = solved_by_models(store)?;
    for unit in gather(store)? {
        let unit = unit?;
        seen.insert(task_name(&unit.record.blueprint));
        let own: Scores =
            unit.rollouts.iter().map(|(rollout, _)| Scores::of(rollout.record.failure_kind())).sum();
        let others = by_models.get(&unit.certificate.task_digest).copied().unwrap_or_default();
        entries.push(AuditEntry {
            blueprint: unit.record.blueprint,
            certified: Some(unit.certificate.certified),
            rollouts: [own, others].into_iter().sum(),
        });
    }
    // Planned units that never completed count too.
    for key in store.keys(BLUEPRINT)? {
        if let Some(blueprint) = store.get::<Blueprint>(BLUEPRINT, &key)?
            && seen.insert(task_name(&blueprint))
        {
            entries.push(AuditEntry { blueprint, certified: None, rollouts: Scores::default() });
        }
    }
    entries.sort_by_key(|entry| entry.blueprint.index);
    let axes: Vec<_> = assets.domains.iter().map(|(id, spec)| axes(id, spec)).collect();
    let authoring = authoring_funnel(store)?;
    Ok(Audit { authoring, ..audit(entries, &axes) })
}

/// Scores of models' rollouts, made here or imported, by the version of their task. These rollouts
/// belong to no unit.
fn solved_by_models(store: &ReadStore) -> Result<BTreeMap<TaskDigest, Scores>, StoreError> {
    let counts = |rollout: &Rollout| {
        matches!(rollout.record.actor, Actor::Model(_) | Actor::Imported(_))
            && !rollout.record.is_adversarial()
    };
    let mut found: BTreeMap<TaskDigest, Scores> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for group in gather_groups(store)? {
        let group = group?;
        let Some(digest) = group.prepared.task_digest else { continue };
        let task = found.entry(digest).or_default();
        for (rollout, _) in group.rollouts {
            if counts(&rollout) && seen.insert(rollout.id) {
                *task += Scores::of(rollout.record.failure_kind());
            }
        }
    }
    Ok(found)
}

/// Writes `report/audit.json` and `report/audit.txt`.
pub fn publish_audit(store: &Store, audit: &Audit) -> Result<(), StoreError> {
    let json = serde_json::to_string_pretty(audit).map_err(StoreError::Encode)? + "\n";
    store.dir().publish_file("report/audit.json", &File::text(json))?;
    store.dir().publish_file("report/audit.txt", &File::text(table(audit)))?;
    Ok(())
}

/// Writes `report/rollouts.json` and `report/rollouts.txt`.
pub fn publish_report(store: &Store, report: &Report) -> Result<(), StoreError> {
    let json = serde_json::to_string_pretty(report).map_err(StoreError::Encode)? + "\n";
    store.dir().publish_file("report/rollouts.json", &File::text(json))?;
    store.dir().publish_file("report/rollouts.txt", &File::text(text(report)))?;
    Ok(())
}

fn axes(id: &DomainId, spec: &DomainSpec) -> DomainAxes {
    let wanted = |weight: &f64| *weight > 0.0;
    DomainAxes {
        id: id.clone(),
        skills: spec
            .skills
            .iter()
            .map(|skill| SkillAxes {
                id: skill.id.clone(),
                operations: skill.operations.iter().map(|operation| operation.as_str().to_owned()).collect(),
            })
            .collect(),
        kinds: spec.kinds.iter().filter(|(_, weight)| wanted(weight)).map(|(kind, _)| *kind).collect(),
        difficulties: spec
            .difficulty
            .iter()
            .filter(|(_, weight)| wanted(weight))
            .map(|(level, _)| *level)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Assets;
    use crate::export::fixture::blueprint;
    use crate::model::{RecipeId, Seed, TaskAuthor};
    use crate::store::{RunDir, key};

    /// A task that was planned and never completed is in the audit once.
    #[test]
    fn unfinished_blueprints_are_counted_by_task() {
        let assets = PipelineAssets::load(&Assets::embedded()).unwrap();
        let by = |recipe: &str, seed: u64| {
            let recipe = RecipeId::parse(format!("coding/{recipe}")).unwrap();
            Blueprint { seed: Seed(seed), author: TaskAuthor::Recipe(recipe), ..blueprint("coding", 0) }
        };
        let check = |blueprints: &[Blueprint], expect: u32| {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::new(RunDir::open(dir.path()).unwrap());
            for blueprint in blueprints {
                store.put(BLUEPRINT, &key(BLUEPRINT, blueprint).unwrap(), blueprint).unwrap();
            }
            assert_eq!(audit_store(&assets, &store).unwrap().total.planned, expect, "{blueprints:?}");
        };
        check(&[], 0);
        check(&[by("one", 5)], 1);
        // Another recipe at the same place of the plan has the same seed.
        check(&[by("one", 5), by("two", 5)], 2);
        // Another run planned the same task.
        check(&[by("one", 5), by("one", 6)], 1);
        let model = Blueprint { author: TaskAuthor::Model, ..by("one", 5) };
        check(&[by("one", 5), model], 2);
    }
}
