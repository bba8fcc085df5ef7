//! Prepares task directories for agents: reads them, builds their images, and classifies their
//! checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::assets::PipelineAssets;
use super::error::Fault;
use crate::harbor::{HarborTask, ReadError, read_certificate, read_task};
use crate::judge::JudgeError;
use crate::model::{
    Certificate, Check, CheckClass, CheckId, Difficulty, EnvironmentDigest, Key, Limits, TaskDigest,
    TaskMetadata, TaskName, Verdict, environment_digest,
};
use crate::rollout::{FurtherStep, PreparedTask};
use crate::store::{Stage, Store, StoreError, key};
use crate::verify::{Act, Condition, Foreign, HashedTask, Target, TrialError, TrialRunner};

/// The data about a task that its rollouts need. The key is a hash of the content.
pub const PREPARED: Stage = Stage::given("prepared");

/// A prepared task as it is read back with its rollouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedRecord {
    pub task: TaskName,
    pub task_digest: Option<TaskDigest>,
    pub environment_digest: Option<EnvironmentDigest>,
    pub metadata: TaskMetadata,
    /// The checks, with classes from the task's certificate or from an untouched trial. Empty for
    /// imported rollouts.
    pub checks: Vec<Check>,
}

/// A prepared task.
#[derive(Debug)]
pub struct Ready {
    pub dir: PathBuf,
    pub key: Key,
    pub record: PreparedRecord,
    pub instruction: String,
    pub limits: Limits,
    /// The certificate in the directory, if termsmith wrote one.
    pub certified: Option<Certificate>,
    target: Box<dyn Target>,
}

/// Why a directory could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Labelling failed. The rollout is kept, with the labels of the detectors.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    #[error("unsupported task `{task}`: {why}")]
    Unsupported { task: String, why: String },
}

/// Prepares the task in `dir`. All attempts share the image that is built here.
pub async fn prepare(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    dir: &Path,
) -> Result<Ready, PrepareError> {
    let directory = read_task(dir)?;
    let unsupported = |why: String| PrepareError::Unsupported { task: directory.name.clone(), why };
    let task_digest = directory.digest();
    // An unreadable certificate certifies nothing.
    let certified =
        read_certificate(dir).ok().flatten().filter(|certificate| certificate.task_digest == task_digest);
    let first = directory.manifest.steps.iter().flatten().next();
    let instruction = match first {
        None => directory.instruction(),
        Some(step) => directory.step_instruction(&step.name),
    };
    let instruction =
        instruction.ok_or_else(|| unsupported("it has no instruction.md".to_owned()))?.to_owned();
    let known =
        certified.as_ref().map(|certificate| certificate.checks.clone()).filter(|checks| !checks.is_empty());
    let (target, metadata): (Box<dyn Target>, _) = match directory.clone().into_task() {
        Ok(task) => {
            let base = assets.kit.base(&task.base).unwrap_or_default();
            let environment = environment_digest(&task.environment, base);
            let metadata = TaskMetadata::from(&task.blueprint);
            (Box::new(HashedTask::owned(task, environment).map_err(Fault::from)?), metadata)
        }
        Err(_) => {
            let task = Foreign::new(&directory).map_err(|error| unsupported(error.to_string()))?;
            (Box::new(task), metadata_of(&directory))
        }
    };
    match target.build(runner).await {
        Ok(Ok(())) => {}
        Ok(Err(log)) => return Err(unsupported(format!("its image does not build: {log}"))),
        Err(TrialError::Unsupported(why)) => return Err(unsupported(why.to_string())),
        Err(error) => return Err(Fault::from(error).into()),
    }
    let checks = match known {
        Some(checks) => checks,
        None => {
            let trial = runner.trial(&*target, Act::Nothing, Condition::Ordinary, 0).await;
            classes(&trial.map_err(Fault::from)?.0.verdict, target.weights())
        }
    };
    let mut limits = target.limits().clone();
    if let [first, _, ..] = target.steps().as_slice() {
        limits.agent_timeout_sec = first.timeout.as_secs().try_into().unwrap_or(limits.agent_timeout_sec);
    }
    let record = PreparedRecord {
        task: TaskName::parse(target.name()).map_err(|error| unsupported(error.to_string()))?,
        task_digest: Some(task_digest),
        environment_digest: Some(target.environment_digest().clone()),
        metadata,
        checks,
    };
    let key = key(PREPARED, &record).map_err(Fault::from)?;
    commit(runner.store, &key, &record).map_err(Fault::from)?;
    Ok(Ready { dir: dir.to_owned(), key, record, instruction, limits, certified, target })
}

impl Ready {
    /// The task, as rollouts take it.
    pub fn prepared(&self) -> PreparedTask<'_> {
        let target = &*self.target;
        let further = target.steps().into_iter().skip(1);
        let further = further.map(|step| FurtherStep {
            name: step.name,
            instruction: step.instruction,
            total: step.timeout,
        });
        PreparedTask {
            name: self.record.task.clone(),
            instruction: &self.instruction,
            further: further.collect(),
            task_digest: self.record.task_digest.clone(),
            edition: 0,
            target,
        }
    }
}

fn commit(store: &Store, key: &Key, record: &PreparedRecord) -> Result<(), StoreError> {
    match store.get::<PreparedRecord>(PREPARED, key)? {
        Some(_) => Ok(()),
        None => store.put(PREPARED, key, record),
    }
}

/// Checks that fail on the untouched environment are fail-to-pass; the others are pass-to-pass.
fn classes(untouched: &Verdict, weights: &BTreeMap<CheckId, f64>) -> Vec<Check> {
    let weight = |id| weights.get(id).copied().unwrap_or(1.0);
    let class = |passed| if passed { CheckClass::P2P } else { CheckClass::F2P };
    let checks = untouched.checks.iter();
    checks
        .map(|check| Check { id: check.id.clone(), class: class(check.passed), weight: weight(&check.id) })
        .collect()
}

/// The metadata that a task's maker declares.
fn metadata_of(directory: &HarborTask) -> TaskMetadata {
    let metadata = directory.manifest.metadata.clone().unwrap_or_default();
    let text = |key: &str| metadata.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let words = |key: &str| {
        let words = metadata.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        words.filter_map(toml::Value::as_str).map(str::to_owned).collect()
    };
    TaskMetadata {
        domain: text("category").unwrap_or_else(|| "unknown".to_owned()),
        skills: words("tags"),
        difficulty: match text("difficulty").as_deref() {
            Some("easy") => Some(Difficulty::Easy),
            Some("medium") => Some(Difficulty::Medium),
            Some("hard") => Some(Difficulty::Hard),
            _ => None,
        },
        ..TaskMetadata::default()
    }
}
