//! Trials of other makers' tasks: their images, and their records under separate keys.

use std::time::Duration;

use tracing::Instrument as _;

use super::act::Act;
use super::condition::Condition;
use super::foreign::{Foreign, ImageSource, Mode};
use super::in_place::{ForeignImages, run_in_place};
use super::runner::{TrialError, TrialRecord, TrialRunner, trial_span};
use super::trial::TrialLog;
use crate::model::{EnvironmentDigest, FileTree, environment_digest};
use crate::sandbox::{EngineError, Image, ImageError, ImageSpec};

impl TrialRunner<'_> {
    /// The task's images. `Err(log)` inside means that a Dockerfile is at fault.
    pub async fn foreign_images(
        &self,
        task: &Foreign,
        tests: &FileTree,
    ) -> Result<Result<ForeignImages, String>, TrialError> {
        let _slot = self.slot().await?;
        let solver = match &task.image {
            ImageSource::Named(name) => Image::named(name.clone()),
            ImageSource::Build(context) => {
                match self.retry(|| self.build_foreign(&task.environment_digest, context, task)).await? {
                    Ok(image) => image,
                    Err(log) => return Ok(Err(log)),
                }
            }
        };
        let verifier = match &task.mode {
            Mode::Separate { own_image: true, .. } => {
                let digest = environment_digest(tests, "");
                match self.retry(|| self.build_foreign(&digest, tests, task)).await? {
                    Ok(image) => Some(image),
                    Err(log) => return Ok(Err(log)),
                }
            }
            Mode::Shared | Mode::Separate { own_image: false, .. } => None,
        };
        Ok(Ok(ForeignImages { solver, verifier }))
    }

    /// Runs a trial as the task declares, or remembers it.
    pub async fn trial_in_place(
        &self,
        task: &Foreign,
        images: &ForeignImages,
        act: Act<'_>,
        condition: Condition<'_>,
        repeat: u32,
    ) -> Result<(TrialRecord, TrialLog), TrialError> {
        let mut input = serde_json::json!({
            "foreign": task.digest,
            "name": task.name,
            "environment": task.environment_digest,
            "act": act.identity(),
            "condition": condition,
            "repeat": repeat,
        });
        let users: Vec<_> = task.steps.iter().map(|step| &step.agent_user).collect();
        if users.iter().any(|user| user.is_some()) {
            // Records made before `user` was supported ran as root.
            input["users"] = serde_json::json!(users);
        }
        let span = trial_span(&task.name, act, condition, repeat);
        self.committed(&input, || async {
            let engine = self.engine.get().await?;
            match (&task.image, condition) {
                (ImageSource::Build(context), Condition::Rebuilt) => {
                    let spec = spec(&task.environment_digest, context, task);
                    let solver =
                        self.retry(|| async { engine.rebuild_image(&spec).await.map_err(again) }).await?;
                    let images = ForeignImages { solver, verifier: images.verifier.clone() };
                    run_in_place(engine, &images, task, act, condition, self.drain).await
                }
                (
                    ImageSource::Build(_),
                    Condition::Ordinary
                    | Condition::Shuffled
                    | Condition::Offline
                    | Condition::HalfCpu
                    | Condition::Clock
                    | Condition::FirstFailure { .. },
                )
                | (ImageSource::Named(_), _) => {
                    run_in_place(engine, images, task, act, condition, self.drain).await
                }
            }
        })
        .instrument(span)
        .await
    }

    async fn build_foreign(
        &self,
        digest: &EnvironmentDigest,
        context: &FileTree,
        task: &Foreign,
    ) -> Result<Result<Image, String>, EngineError> {
        match self.engine.get().await?.ensure_image(&spec(digest, context, task)).await {
            Ok(image) => Ok(Ok(image)),
            Err(ImageError::Build { log }) => Ok(Err(log)),
            Err(ImageError::Engine(error)) => Err(error),
            Err(slow @ ImageError::TimedOut { .. }) => Ok(Err(slow.to_string())),
        }
    }
}

/// It was built before from the same files, so a failure now is due to the mirror or the engine.
fn again(error: ImageError) -> EngineError {
    match error {
        ImageError::Engine(error) => error,
        ImageError::Build { .. } | ImageError::TimedOut { .. } => {
            EngineError::Transport { action: "build the image again", message: error.to_string() }
        }
    }
}

fn spec<'a>(digest: &'a EnvironmentDigest, context: &'a FileTree, task: &Foreign) -> ImageSpec<'a> {
    let timeout = Duration::from_secs(task.limits.build_timeout_sec.into());
    ImageSpec { digest: digest.as_str(), context, timeout }
}
