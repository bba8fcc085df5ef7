//! Screens existing task directories of any origin.

use std::path::Path;

use tracing::Instrument as _;

use super::assets::PipelineAssets;
use super::authored::ModelAuthor;
use super::blind::{Blind, add_blind_rows};
use super::error::Fault;
use super::prepared::{PrepareError, prepare};
use crate::authoring::{Asking, Source, declare_clauses};
use crate::harbor::{
    DeclaredVerifier, HarborTask, Publication, ReadError, parse_manifest, read_clauses, read_task, write_task,
};
use crate::lint::lint_task;
use crate::model::{Clauses, environment_digest};
use crate::screen::{Extent, Material, Only, Screening, screen};
use crate::verify::{Foreign, HashedTask, Target, TrialError, TrialRunner};

/// How our own tasks are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifierMode {
    /// Our own tasks in the clean room, other tasks as they declare.
    AsDeclared,
    /// Our own tasks as Harbor judges a task in this mode. It shows how robust they are there.
    /// Other tasks are judged as they declare.
    AsHarbor(DeclaredVerifier),
}

/// What models do in a screening, e.g. solve the task blindly.
#[derive(Clone, Copy, Debug)]
pub struct ModelRows<'a> {
    pub model: &'a ModelAuthor,
    pub clauses: ClauseAuthor,
}

/// Who writes the clauses, i.e. what the instruction demands and how each demand can be violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseAuthor {
    /// The task's own `clauses.toml`, if it has one.
    Task,
    /// A model that does not see the tests.
    Model,
}

/// The result of screening a directory.
#[derive(Debug)]
pub enum Examined {
    Screened {
        screening: Box<Screening>,
        /// Clauses that a model wrote.
        written: Option<Clauses>,
    },
    /// Not screened, because this engine does not support the task, or a model gave nothing usable.
    Unsupported(String),
}

/// Why a directory was not examined.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// How tasks are screened.
#[derive(Clone, Copy, Debug)]
pub struct Examination<'a> {
    pub runner: &'a TrialRunner<'a>,
    pub assets: &'a PipelineAssets,
    pub verifier_mode: VerifierMode,
    pub models: Option<ModelRows<'a>>,
}

impl Examination<'_> {
    /// Screens the task in `dir`.
    pub async fn examine(&self, dir: &Path, extent: Extent, only: &Only) -> Result<Examined, ExamineError> {
        let directory = read_task(dir)?;
        let span = tracing::info_span!("unit", task = directory.name);
        Box::pin(self.screened(dir, directory, extent, only)).instrument(span).await
    }

    async fn screened(
        &self,
        dir: &Path,
        directory: HarborTask,
        extent: Extent,
        only: &Only,
    ) -> Result<Examined, ExamineError> {
        let Self { runner, assets, verifier_mode, models } = *self;
        let findings = lint_task(&assets.rules, &directory);
        let mut clauses = read_clauses(dir)?;
        let mut written = None;
        if let Some(ModelRows { model, clauses: ClauseAuthor::Model, .. }) = models {
            match written_clauses(model, &directory).await? {
                Ok(by_model) => {
                    clauses = by_model.clone();
                    written = Some(by_model);
                }
                Err(why) => return Ok(Examined::Unsupported(why)),
            }
        }
        let target: Box<dyn Target> = match ours(&directory, verifier_mode) {
            Some(task) => {
                let base = assets.kit.base(&task.base).unwrap_or_default();
                let digest = environment_digest(&task.environment, base);
                Box::new(HashedTask::owned(task, digest).map_err(Fault::from)?)
            }
            None => match Foreign::new(&declaring(directory.clone(), verifier_mode)?) {
                Ok(task) => Box::new(task),
                Err(unsupported) => return Ok(Examined::Unsupported(unsupported.to_string())),
            },
        };
        let material = Material {
            task: &*target,
            digest: directory.digest(),
            instruction: directory.instruction().unwrap_or_default(),
            clauses: &clauses,
            draft: None,
        };
        let screening = screen(runner, &assets.suite, &material, &findings, extent, only).await;
        let mut screening = match screening {
            Ok(screening) => Box::new(screening),
            Err(TrialError::Unsupported(why)) => return Ok(Examined::Unsupported(why.to_string())),
            Err(error) => return Err(Fault::from(error).into()),
        };
        if let Some(ModelRows { model, .. }) = models
            && model.blind.is_some()
            && screening.certificate.certified
        {
            let ready = match prepare(runner, assets, dir).await {
                Ok(ready) => ready,
                Err(PrepareError::Read(error)) => return Err(error.into()),
                Err(PrepareError::Fault(fault)) => return Err(fault.into()),
                Err(other @ (PrepareError::Judge(_) | PrepareError::Unsupported { .. })) => {
                    return Ok(Examined::Unsupported(other.to_string()));
                }
            };
            let blind = Blind { model, assets };
            add_blind_rows(runner, assets, blind, &ready.prepared(), &mut screening.certificate).await?;
        }
        Ok(Examined::Screened { screening, written })
    }
}

/// Has a model write the clauses of a task. The inner `Err` says why there are none.
async fn written_clauses(
    model: &ModelAuthor,
    directory: &HarborTask,
) -> Result<Result<Clauses, String>, ExamineError> {
    let (environment, solution) = (directory.folder("environment"), directory.folder("solution"));
    let Some(instruction) = directory.instruction() else {
        return Ok(Err("it has no instruction.md, so it has no clauses".to_owned()));
    };
    if solution.is_empty() {
        return Ok(Err("it has no solution/ that violations could edit".to_owned()));
    }
    let asking = Asking { models: &model.models, texts: &model.texts, unit: &directory.name, round: 0 };
    let source = Source { instruction, environment: &environment, solution: &solution };
    let declared = declare_clauses(&asking, source).await.map_err(Fault::from)?;
    Ok(declared.map_err(|problems| format!("the model's clauses cannot be used: {}", problems.join("; "))))
}

/// Our own task, written as if it declared this mode.
fn declaring(directory: HarborTask, verifier_mode: VerifierMode) -> Result<HarborTask, Fault> {
    let VerifierMode::AsHarbor(verifier) = verifier_mode else { return Ok(directory) };
    let Ok(task) = directory.clone().into_task() else { return Ok(directory) };
    let written = write_task(&task, &Publication { verifier, ..Publication::default() })?;
    let Some(manifest) = written.text("task.toml").and_then(|text| parse_manifest(text).ok()) else {
        return Ok(directory);
    };
    Ok(HarborTask { manifest: manifest.0, ..directory })
}

fn ours(directory: &HarborTask, verifier_mode: VerifierMode) -> Option<crate::model::Task> {
    if matches!(verifier_mode, VerifierMode::AsHarbor(_)) {
        return None;
    }
    // A task that declares our format and cannot be parsed as such is treated as a foreign task.
    directory.clone().into_task().ok()
}
