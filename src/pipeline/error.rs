//! Errors of a unit, or of a whole run, that leave no result.

use super::stop::{self, Stop};
use crate::agent::AgentError;
use crate::author::AuthorError;
use crate::authoring::StageError;
use crate::export::ExportError;
use crate::export::atif::AtifError;
use crate::harbor::WriteError;
use crate::llm::{AskError, CallError};
use crate::model::Blame;
use crate::rollout::RolloutError;
use crate::sandbox::EngineError;
use crate::store::StoreError;
use crate::verify::{Blamed as _, NoVerdict, TrialError};

/// Why a unit has no result. Other units continue, unless [`Fault::ends_everything`].
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Author(#[from] AuthorError),
    /// A model's call or reply failed while it wrote a task.
    #[error(transparent)]
    Authoring(Box<StageError>),
    #[error(transparent)]
    Engine(EngineError),
    #[error(transparent)]
    NoVerdict(NoVerdict),
    #[error(transparent)]
    Trial(TrialError),
    #[error(transparent)]
    Rollout(RolloutError),
    #[error(transparent)]
    Store(StoreError),
    #[error(transparent)]
    Trajectory(AtifError),
    #[error(transparent)]
    Directory(#[from] WriteError),
    /// The request depends on an earlier one of its domain, which could not be sampled.
    #[error(
        "its request must wait for that of `{earlier}`, which could not be sampled\nhint: the same command continues there"
    )]
    AwaitsRequest { earlier: String },
    #[error("interrupted")]
    Drained,
}

impl Fault {
    /// Whether the infrastructure failed. The work is then left open, and the same command tries it
    /// again.
    pub fn is_left_open(&self) -> bool {
        match self {
            // The image may be there later, e.g. after a login at its registry. Other tasks go on.
            Self::Engine(EngineError::MissingImage { .. }) | Self::AwaitsRequest { .. } => true,
            Self::Engine(error) => error.blame() == Blame::Infra,
            Self::NoVerdict(error) => matches!(error.blame(), None | Some(Blame::Infra)),
            Self::Rollout(error) => matches!(error.blame(), None | Some(Blame::Infra)),
            Self::Author(_)
            | Self::Authoring(_)
            | Self::Trial(_)
            | Self::Store(_)
            | Self::Trajectory(_)
            | Self::Directory(_)
            | Self::Drained => false,
        }
    }

    /// The failed model call that caused the fault, in any role.
    pub fn call(&self) -> Option<&CallError> {
        match self {
            Self::Rollout(RolloutError::Agent(AgentError::Call(error))) => Some(error),
            Self::Authoring(error) => match &**error {
                StageError::Call(error) | StageError::Ask(AskError::Call(error)) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }

    /// Why the whole command should stop. `None` if only this unit failed.
    pub fn stop(&self) -> Option<Stop> {
        match self {
            Self::Drained => Some(Stop::Interrupted),
            _ => self.call().and_then(Stop::of),
        }
    }

    /// Whether every other model call would fail in the same way, e.g. because the budget is spent.
    /// Then no further work should begin.
    pub fn ends_everything(&self) -> bool {
        self.call().is_some_and(stop::ends_everything)
    }
}

impl From<TrialError> for Fault {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Engine(error) => Self::Engine(error),
            TrialError::NoVerdict(error) => Self::NoVerdict(error),
            error @ (TrialError::MissingTool { .. }
            | TrialError::Unmet { .. }
            | TrialError::Unsupported(_)) => Self::Trial(error),
            TrialError::Store(error) => Self::Store(error),
            TrialError::Drained => Self::Drained,
        }
    }
}

impl From<RolloutError> for Fault {
    fn from(error: RolloutError) -> Self {
        match error {
            RolloutError::Trial(error) => error.into(),
            RolloutError::Agent(AgentError::Engine(error)) => Self::Engine(error),
            RolloutError::Agent(AgentError::Drained) => Self::Drained,
            other => Self::Rollout(other),
        }
    }
}

impl From<StageError> for Fault {
    fn from(error: StageError) -> Self {
        match error {
            StageError::Trial(error) => error.into(),
            StageError::Rollout(error) => error.into(),
            StageError::Store(error) => Self::Store(error),
            StageError::Kit(error) => Self::Author(error),
            StageError::Directory(error) => Self::Directory(error),
            error @ (StageError::Call(_)
            | StageError::Ask(_)
            | StageError::Prompts(_)
            | StageError::Path(_)) => Self::Authoring(Box::new(error)),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Why a unit's files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Directory(#[from] WriteError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trajectory(#[from] AtifError),
}

impl From<PublishError> for Fault {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Store(error) => Self::Store(error),
            PublishError::Directory(error) => Self::Directory(error),
            PublishError::Trajectory(error) => Self::Trajectory(error),
        }
    }
}

/// Why a run did not complete. Committed results stay.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Export(#[from] ExportError<StoreError>),
    #[error(transparent)]
    Publish(#[from] PublishError),
}
