//! Images of foreign tasks, and the keys of their trials.

use std::time::Duration;

use super::{Foreign, ImageSource, Mode, check_host};
use crate::model::{EnvironmentDigest, FileTree, environment_digest, task_digest};
use crate::sandbox::{EngineError, ImageError, ImageSpec};
use crate::verify::act::Act;
use crate::verify::condition::Condition;
use crate::verify::runner::{TrialError, TrialRunner, build_failure, built};
use crate::verify::target::Images;

impl Foreign {
    /// Builds or pulls the task's images. `Err(log)` inside means that a Dockerfile is at fault.
    pub(in crate::verify) async fn build_images(
        &self,
        runner: &TrialRunner<'_>,
    ) -> Result<Result<(), String>, TrialError> {
        let _slot = runner.slot().await?;
        if let Some(host) = runner.engine.get().await?.host_size().await {
            check_host(&self.limits, host)?;
        }
        match runner.retry(|| self.made(runner)).await? {
            Ok(images) => {
                // Somebody else set them meanwhile. These are the same images.
                let _ = self.images.set(images);
                Ok(Ok(()))
            }
            Err(log) => Ok(Err(log)),
        }
    }

    /// The images of a trial under `condition`. An image with a name stays as it was at its first
    /// use.
    pub(in crate::verify) async fn built_images(
        &self,
        runner: &TrialRunner<'_>,
        condition: Condition<'_>,
    ) -> Result<Images, EngineError> {
        let images = self.images.get_or_try_init(async || match self.made(runner).await? {
            Ok(images) => Ok(images),
            // The same files were built when the task was prepared. So the engine or the mirror is
            // at fault.
            Err(log) => Err(build_failure(log)),
        });
        let images = images.await?.clone();
        match (&self.image, condition) {
            (ImageSource::Build(context), Condition::Rebuilt) => {
                let spec = self.spec(&self.environment_digest, context);
                let solver = runner.engine.get().await?.rebuild_image(&spec).await.map_err(again)?;
                Ok(Images { solver, ..images })
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
            | (ImageSource::Named(_), _) => Ok(images),
        }
    }

    async fn made(&self, runner: &TrialRunner<'_>) -> Result<Result<Images, String>, EngineError> {
        let engine = runner.engine.get().await?;
        let solver = match &self.image {
            ImageSource::Named(name) => engine.pulled(name, self.build_timeout()).await?,
            ImageSource::Build(context) => {
                match built(engine, &self.spec(&self.environment_digest, context)).await? {
                    Ok(image) => image,
                    Err(log) => return Ok(Err(log)),
                }
            }
        };
        let verifier = match &self.mode {
            Mode::Separate { own_image: true, .. } => {
                let tests = &self.step(0).tests;
                match built(engine, &self.spec(&environment_digest(tests, ""), tests)).await? {
                    Ok(image) => Some(image),
                    Err(log) => return Ok(Err(log)),
                }
            }
            Mode::Shared | Mode::Separate { own_image: false, .. } => None,
        };
        Ok(Ok(Images { solver, verifier }))
    }

    fn build_timeout(&self) -> Duration {
        Duration::from_secs(self.limits.build_timeout_sec.into())
    }

    fn spec<'a>(&self, digest: &'a EnvironmentDigest, context: &'a FileTree) -> ImageSpec<'a> {
        ImageSpec { digest: digest.as_str(), context, timeout: self.build_timeout() }
    }

    /// The input of a trial's key. Harbor's digest does not cover all of it: the mode, and files
    /// that Harbor does not package.
    pub(in crate::verify) fn input(
        &self,
        act: Act<'_>,
        condition: Condition<'_>,
        repeat: u32,
    ) -> serde_json::Value {
        let steps = self.steps.iter();
        let steps: Vec<_> = steps
            .map(|step| (&step.agent_user, task_digest(&step.tests), task_digest(&step.workdir)))
            .collect();
        serde_json::json!({
            "foreign": self.digest,
            "name": self.name,
            "environment": self.environment_digest,
            "mode": self.mode,
            "steps": steps,
            "act": act.identity(),
            "condition": condition,
            "repeat": repeat,
        })
    }
}

/// A failure of a repeated build. The same files were built before, so the mirror or the engine is
/// at fault.
fn again(error: ImageError) -> EngineError {
    match error {
        ImageError::Engine(error) => error,
        ImageError::Build { .. } | ImageError::TimedOut { .. } => {
            EngineError::Transport { action: "build the image again", message: error.to_string() }
        }
    }
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
            // The files are the same. Only the declared mode differs.
            let directory = HarborTask {
                name: "a".to_owned(),
                manifest,
                files: FileTree::default(),
                findings: Vec::new(),
            };
            let task = Foreign::new(&directory).unwrap();
            task.input(Act::Nothing, Condition::Ordinary, 0).to_string()
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
