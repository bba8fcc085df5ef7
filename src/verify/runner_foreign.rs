//! Trials of other makers' tasks: their images, and their records under separate keys.

use std::time::Duration;

use tracing::Instrument as _;

use super::act::Act;
use super::condition::Condition;
use super::foreign::{Foreign, ImageSource, Mode, check_host};
use super::in_place::run_in_place;
use super::runner::{TrialError, TrialRecord, TrialRunner, built, trial_span};
use super::trial::{Images, TrialLog};
use crate::model::{EnvironmentDigest, FileTree, environment_digest, task_digest};
use crate::sandbox::{EngineError, Image, ImageError, ImageSpec};

impl TrialRunner<'_> {
    /// The task's images. `Err(log)` inside means that a Dockerfile is at fault.
    pub async fn foreign_images(
        &self,
        task: &Foreign,
        tests: &FileTree,
    ) -> Result<Result<Images, String>, TrialError> {
        let _slot = self.slot().await?;
        if let Some(host) = self.engine.get().await?.host_size().await {
            check_host(&task.limits, host)?;
        }
        let solver = match &task.image {
            ImageSource::Named(name) => {
                let timeout = Duration::from_secs(task.limits.build_timeout_sec.into());
                let pull = async || self.engine.get().await?.pulled(name, timeout).await;
                self.retry(pull).await?
            }
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
        Ok(Ok(Images { solver, verifier }))
    }

    /// Runs a trial as the task declares, or remembers it.
    pub async fn trial_in_place(
        &self,
        task: &Foreign,
        images: &Images,
        act: Act<'_>,
        condition: Condition<'_>,
        repeat: u32,
    ) -> Result<(TrialRecord, TrialLog), TrialError> {
        let input = input(task, act, condition, repeat);
        let span = trial_span(&task.name, act, condition, repeat);
        self.committed(&input, || async {
            let engine = self.engine.get().await?;
            match (&task.image, condition) {
                (ImageSource::Build(context), Condition::Rebuilt) => {
                    let spec = spec(&task.environment_digest, context, task);
                    let solver =
                        self.retry(|| async { engine.rebuild_image(&spec).await.map_err(again) }).await?;
                    let images = Images { solver, verifier: images.verifier.clone() };
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
        built(self.engine.get().await?, &spec(digest, context, task)).await
    }
}

/// What a trial is keyed by. Harbor's digest lacks the mode where a task of ours is judged as another harness would judge it, and files
/// that Harbor does not package.
fn input(task: &Foreign, act: Act<'_>, condition: Condition<'_>, repeat: u32) -> serde_json::Value {
    let steps: Vec<_> = task
        .steps
        .iter()
        .map(|step| (&step.agent_user, task_digest(&step.tests), task_digest(&step.workdir)))
        .collect();
    serde_json::json!({
        "foreign": task.digest,
        "name": task.name,
        "environment": task.environment_digest,
        "mode": task.mode,
        "steps": steps,
        "act": act.identity(),
        "condition": condition,
        "repeat": repeat,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::{HarborTask, Manifest, Verifier};

    #[test]
    fn trials_under_different_modes_have_different_keys() {
        let key = |mode: Option<&str>, artifacts: &[&str]| {
            let verifier = Verifier { environment_mode: mode.map(str::to_owned), ..Verifier::default() };
            let artifacts = artifacts.iter().map(|path| toml::Value::String((*path).to_owned())).collect();
            let manifest =
                Manifest { verifier: Some(verifier), artifacts: Some(artifacts), ..Manifest::default() };
            // The files are the same: only what they are judged by differs.
            let directory = HarborTask {
                name: "a".to_owned(),
                manifest,
                files: FileTree::default(),
                findings: Vec::new(),
            };
            let task = Foreign::new(&directory).unwrap();
            input(&task, Act::Nothing, Condition::Ordinary, 0).to_string()
        };
        assert_eq!(key(None, &[]), key(Some("shared"), &[]));
        assert_eq!(key(Some("separate"), &["/app"]), key(Some("separate"), &["/app"]));
        for (one, other) in [
            (key(Some("shared"), &["/app"]), key(Some("separate"), &["/app"])),
            (key(Some("separate"), &["/app"]), key(Some("separate"), &["/srv"])),
        ] {
            assert_ne!(one, other);
        }
    }
}
