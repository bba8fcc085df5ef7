//! Imports rollouts of other harnesses. Their records have the form of our own, and name their
//! source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::assets::PipelineAssets;
use super::campaign::{MEMBER, MemberRecord};
use super::known_tasks::KnownTasks;
use super::prepared::{PREPARED, PreparedRecord};
use crate::agent::{HandoffSeen, TurnSeen};
use crate::folder::shown;
use crate::model::{Key, TrajectoryRecord};
use crate::rollout::import::{ImportError, Imported, Imports, read_imports};
use crate::rollout::{IMPORTED, RolloutLog, read_record};
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

/// The result of one import.
#[derive(Debug, Default)]
pub struct ImportSummary {
    pub rollouts: Vec<Key>,
    /// Number of these that an earlier import had stored.
    pub known: usize,
    pub refused: Vec<ImportError>,
    /// What was left out of the files, e.g. a number of tokens that is none. Each note names its
    /// file.
    pub notes: Vec<String>,
    /// Files that are of another format.
    pub skipped: Vec<PathBuf>,
}

/// Imports every rollout at `path`: a Harbor job folder, a trial folder, or an ATIF file.
pub fn import_rollouts(
    store: &Store,
    assets: &PipelineAssets,
    path: &Path,
) -> Result<ImportSummary, ImportTaskError> {
    let Imports { rollouts, refused, skipped } = read_imports(path)?;
    let mut summary = ImportSummary { refused, skipped, ..ImportSummary::default() };
    let known_tasks = KnownTasks::read(store, assets)?;
    let mut copies = Copies::new();
    for mut imported in rollouts {
        imported.record.exploits = assets.texts.forensics().examine(imported.record.all_turns());
        imported.metadata = known_tasks.metadata(&imported.record, imported.metadata)?;
        let place = shown(&imported.path);
        summary.notes.extend(imported.notes.iter().map(|note| format!("`{place}`: {note}")));
        let (key, known) = store_rollout(store, imported, &mut copies)?;
        summary.known += usize::from(known);
        summary.rollouts.push(key);
    }
    Ok(summary)
}

/// Number of records in this import with the same content.
type Copies = BTreeMap<Key, u32>;

/// The address of an imported rollout: a hash of its record without the attempt number. The number
/// depends on the other trials of the job, so a later import of a larger job would miss the
/// rollout. Records with equal content are told apart by their order.
fn address(record: &TrajectoryRecord, copies: &mut Copies) -> Result<Key, StoreError> {
    let unnumbered = TrajectoryRecord { attempt: 0, ..record.clone() };
    let first = key(IMPORTED, &json!({ "imported": unnumbered }))?;
    let count = copies.entry(first.clone()).or_default();
    let copy = *count;
    *count += 1;
    if copy == 0 { Ok(first) } else { key(IMPORTED, &json!({ "imported": unnumbered, "copy": copy })) }
}

fn store_rollout(store: &Store, imported: Imported, copies: &mut Copies) -> Result<(Key, bool), StoreError> {
    let Imported { record, shown, handoffs, metadata, .. } = imported;
    let prepared = PreparedRecord {
        task: record.task.clone(),
        task_digest: record.task_digest.clone(),
        environment_digest: record.environment_digest.clone(),
        metadata,
        // There is no untouched trial, so no check has a class. Classes guessed from one trial
        // could differ from those of another.
        checks: Vec::new(),
    };
    let prepared_key = key(PREPARED, &prepared)?;
    if store.get::<PreparedRecord>(PREPARED, &prepared_key)?.is_none() {
        store.put(PREPARED, &prepared_key, &prepared)?;
    }
    let rollout = address(&record, copies)?;
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
            threads: Vec::new(),
            cause: String::new(),
            verifier: VerifierLog::default(),
            engine: "imported".to_owned(),
            seconds: 0.0,
        };
        store.observe(&rollout, &log)?;
        store.put(IMPORTED, &rollout, &record)?;
    }
    let member = MemberRecord { prepared: prepared_key, rollout: rollout.clone() };
    let member_key = key(MEMBER, &member)?;
    if store.get::<MemberRecord>(MEMBER, &member_key)?.is_none() {
        store.put(MEMBER, &member_key, &member)?;
    }
    Ok((rollout, known))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::assets::Assets;
    use crate::export::fixture;
    use crate::export::pairs::{PairPolicy, pairs};
    use crate::export::split::group;
    use crate::harbor::task_name;
    use crate::model::{Blueprint, Certificate, EnvironmentDigest, Rollout, TaskAuthor, TaskDigest};
    use crate::pipeline::gather_groups;
    use crate::pipeline::unit::{UNIT, UnitRecord};
    use crate::screen::SCREEN;
    use crate::store::RunDir;

    /// A folder of trials, and the run folder that they are imported into.
    struct Bench {
        jobs: tempfile::TempDir,
        _out: tempfile::TempDir,
        store: Store,
        assets: PipelineAssets,
    }

    impl Bench {
        fn new() -> Self {
            let (jobs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let store = Store::new(RunDir::open(out.path()).unwrap());
            Self { jobs, _out: out, store, assets: PipelineAssets::load(&Assets::embedded()).unwrap() }
        }

        /// Writes a trial in which the agent ran `command`. It ended with a reward or an exception.
        fn lay(&self, trial: &str, task: &str, command: &str, ended: Result<f64, &str>) {
            let folder = self.jobs.path().join(trial);
            fs::create_dir_all(folder.join("agent")).unwrap();
            let rewards = ended.ok().map(|reward| json!({ "reward": reward }));
            let exception = ended.err().map(|class| json!({ "exception_type": class }));
            let result = json!({
                "task_name": task, "verifier_result": { "rewards": rewards }, "exception_info": exception,
            });
            let call = json!({ "function_name": "bash", "arguments": { "command": command } });
            let document = json!({
                "schema_version": "ATIF-v1.6",
                "agent": { "name": "other", "version": "1", "model_name": "far-model" },
                "steps": [
                    { "source": "user", "message": "Task" },
                    {
                        "source": "agent", "message": "So.", "tool_calls": [call],
                        "observation": { "results": [{ "content": "seen" }] },
                    },
                ],
            });
            fs::write(folder.join("result.json"), result.to_string()).unwrap();
            fs::write(folder.join("agent/trajectory.json"), document.to_string()).unwrap();
        }

        fn import(&self) -> ImportSummary {
            let summary = import_rollouts(&self.store, &self.assets, self.jobs.path()).unwrap();
            assert!(summary.refused.is_empty(), "{:?}", summary.refused);
            summary
        }

        /// The imported rollouts by task.
        fn groups(&self) -> Vec<Vec<Rollout>> {
            let groups = gather_groups(&self.store).unwrap().map(|group| group.unwrap().rollouts);
            groups.map(|rollouts| rollouts.into_iter().map(|(rollout, _)| rollout).collect()).collect()
        }
    }

    #[test]
    fn a_job_that_has_grown_is_imported_once() {
        let bench = Bench::new();
        let check = |trials: &[(&str, &str)], expect: (usize, usize)| {
            for (trial, command) in trials {
                bench.lay(trial, "t", command, Ok(1.0));
            }
            let ImportSummary { rollouts, known, .. } = bench.import();
            assert_eq!((rollouts.len(), known), expect);
            assert_eq!(bench.store.keys(IMPORTED).unwrap().len(), rollouts.len());
        };
        check(&[("t__b", "ls"), ("t__d", "pwd")], (2, 0));
        // Each trial has another number now, and is still found.
        check(&[("t__a", "id"), ("t__c", "df")], (4, 2));
        // Two trials with the same content are two rollouts.
        check(&[("t__e", "ls")], (5, 4));
        check(&[], (5, 5));
    }

    #[test]
    fn trials_of_a_task_are_compared_however_they_ended() {
        let bench = Bench::new();
        bench.lay("t__1", "t", "make", Ok(1.0));
        bench.lay("t__2", "t", "ls", Ok(0.0));
        bench.lay("t__3", "t", "sleep 9", Err("AgentTimeoutError"));
        bench.lay("t__4", "t", "cat big", Err("ContextLengthExceededError"));
        bench.import();
        let [rollouts]: [Vec<Rollout>; 1] = bench.groups().try_into().unwrap();
        let rewards = rollouts.iter().map(|rollout| {
            let rewards = rollout.rewards.unwrap();
            (rewards.binary, rewards.f2p)
        });
        assert_eq!(rewards.collect::<Vec<_>>(), [(1.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]);
        let found = pairs(&rollouts, &PairPolicy::default()).unwrap();
        let numbers = found.iter().map(|pair| (pair.chosen.record.attempt, pair.rejected.record.attempt));
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [(0, 1), (0, 2), (0, 3)]);
    }

    /// Commits a unit of `blueprint`, as a run in the same folder leaves it.
    fn commit_unit(store: &Store, blueprint: Blueprint) {
        let digests = (TaskDigest::parse("abc").unwrap(), EnvironmentDigest::parse("abc").unwrap());
        let certificate = Certificate::without_rows(task_name(&blueprint).as_str(), digests.0, digests.1);
        let screened = key(SCREEN, &certificate).unwrap();
        store.put(SCREEN, &screened, &certificate).unwrap();
        let record =
            UnitRecord { blueprint, draft: screened.clone(), certificate: screened, rollouts: Vec::new() };
        store.put(UNIT, &key(UNIT, &record).unwrap(), &record).unwrap();
    }

    /// All rows of a task must be in one split, whichever agent made them.
    #[test]
    fn tasks_of_ours_are_in_the_groups_of_our_own_rollouts() {
        let check = |task: &str, expect: &str| {
            let bench = Bench::new();
            let blueprint = Blueprint { author: TaskAuthor::Model, ..fixture::blueprint("games", 2) };
            commit_unit(&bench.store, blueprint);
            bench.lay("t__1", task, "ls", Ok(1.0));
            bench.import();
            let [rollouts]: [Vec<Rollout>; 1] = bench.groups().try_into().unwrap();
            assert_eq!(group(&rollouts[0]), expect, "{task}");
        };
        check("networking-audit-border-routing-0003", "networking/audit-border-routing");
        check("termsmith/networking-audit-border-routing-0003", "networking/audit-border-routing");
        check("networking-audit-another-thing-0003", "unknown/networking-audit-another-thing");
        check("games-model-0002", "games/log-analysis+aggregation");
        check("games-model-0003", "unknown/games-model");
    }
}
