//! How a task's trials are judged: in our clean room, or as the task declares.

use std::collections::BTreeMap;

use crate::model::{CheckId, Judging, Limits};
use crate::verify::{
    Act, Condition, Foreign, HashedTask, ImageSource, Images, Mode, TrialError, TrialLog, TrialRecord,
    TrialRunner,
};

/// A task with the way its trials are judged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Evaluation<'a> {
    CleanRoom(&'a HashedTask<'a>),
    InPlace { task: &'a Foreign, images: &'a Images },
}

impl Evaluation<'_> {
    /// Runs one trial in fresh containers, or reads its record.
    pub(super) async fn trial(
        &self,
        runner: &TrialRunner<'_>,
        act: Act<'_>,
        condition: Condition<'_>,
        repeat: u32,
    ) -> Result<(TrialRecord, TrialLog), TrialError> {
        match self {
            // Boxed: the future of a trial is large, and many wait at once.
            Self::CleanRoom(hashed) => Box::pin(runner.trial(hashed, act, condition, repeat)).await,
            Self::InPlace { task, images } => {
                // Tests that are not ours cannot be told to end early.
                let condition = match condition {
                    Condition::FirstFailure { .. } => Condition::Ordinary,
                    other => other,
                };
                Box::pin(runner.trial_in_place(task, images, act, condition, repeat)).await
            }
        }
    }

    /// A hash of a task of ours, which is the same however the task is published.
    pub(super) fn identity(&self) -> Option<&str> {
        match self {
            Self::CleanRoom(hashed) => Some(&hashed.identity),
            Self::InPlace { .. } => None,
        }
    }

    /// What the task allows a solver.
    pub(super) fn limits(&self) -> &Limits {
        match self {
            Self::CleanRoom(hashed) => &hashed.task.limits,
            Self::InPlace { task, .. } => &task.limits,
        }
    }

    /// Weights of its checks other than 1.
    pub(super) fn weights(&self) -> &BTreeMap<CheckId, f64> {
        static NONE: BTreeMap<CheckId, f64> = BTreeMap::new();
        match self {
            Self::CleanRoom(hashed) => &hashed.task.weights,
            Self::InPlace { .. } => &NONE,
        }
    }

    /// How trials are judged.
    pub(super) fn judging(&self) -> Judging {
        match self {
            Self::CleanRoom(_) => Judging::CleanRoom,
            Self::InPlace { task, .. } => match task.mode {
                Mode::Shared => Judging::Shared,
                Mode::Separate { .. } => Judging::Separate,
            },
        }
    }

    /// Why a condition does not apply to this task, if so.
    pub(super) fn inapplicable(&self, condition: Condition<'_>) -> Option<&'static str> {
        let foreign = match self {
            Self::CleanRoom(_) => None,
            Self::InPlace { task, .. } => Some(task),
        };
        match condition {
            // The ordinary trial already has this condition.
            Condition::Offline if foreign.is_none() => Some("every trial of this task is offline"),
            Condition::Rebuilt if foreign.is_some_and(|task| matches!(task.image, ImageSource::Named(_))) => {
                Some("the task names a finished image")
            }
            Condition::Ordinary
            | Condition::Shuffled
            | Condition::Offline
            | Condition::HalfCpu
            | Condition::Clock
            | Condition::Rebuilt
            | Condition::FirstFailure { .. } => None,
        }
    }

    /// The image's name on the engine, once the image exists there.
    pub(super) async fn image(&self, runner: &TrialRunner<'_>) -> Result<crate::sandbox::Image, TrialError> {
        match self {
            Self::CleanRoom(hashed) => Ok(runner.image(hashed).await?),
            Self::InPlace { images, .. } => Ok(images.solver.clone()),
        }
    }
}
