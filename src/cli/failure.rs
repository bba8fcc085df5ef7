//! Maps every typed error to an exit status.

use super::exit::Status;
use crate::agent::catalog::{BuildError, CatalogError, FetchError};
use crate::agent::{AgentError, PromptsError, ScaffoldLoadError};
use crate::assets::AssetError;
use crate::author::AuthorError;
use crate::authoring::{StageError, UsualError};
use crate::domain::DomainError;
use crate::export::ExportError;
use crate::folder::WalkError;
use crate::harbor::{IntoTaskError, ReadError, WriteError};
use crate::lint::LintError;
use crate::llm::{AskError, CallError};
use crate::model::Blame;
use crate::pipeline::{AssetsError, Fault, ImportTaskError, PipelineError, PublishError};
use crate::recording::FilterError;
use crate::rollout::RolloutError;
use crate::sandbox::{EngineError, SandboxError};
use crate::store::StoreError;
use crate::verify::{NoVerdict, TrialError};

/// What a command returns.
pub(super) type Outcome = Result<Status, Failure>;

/// An error with the status that the process ends with.
pub(super) struct Failure {
    pub(super) status: Status,
    pub(super) error: anyhow::Error,
}

impl Failure {
    pub(super) fn new(status: Status, error: impl Into<anyhow::Error>) -> Self {
        Self { status, error: error.into() }
    }

    /// A failure that no typed error describes.
    pub(super) fn message(status: Status, message: impl std::fmt::Display) -> Self {
        Self { status, error: anyhow::anyhow!("{message}") }
    }

    /// A failed system call, and what it was for. An [`std::io::Error`] alone names neither the
    /// call nor the file.
    pub(super) fn io(action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::message(Status::Io, format!("failed to {action}: {error}"))
    }

    pub(super) fn usage(message: impl std::fmt::Display) -> Self {
        Self::message(Status::Usage, message)
    }
}

macro_rules! ends_with {
    ($($error:ty => $status:ident),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(Status::$status, error)
            }
        })*
    };
}

ends_with! {
    StoreError => Io,
    EngineError => NoEngine,
    SandboxError => Failed,
    AssetError => BadInput,
    DomainError => BadInput,
    AuthorError => BadInput,
    AssetsError => BadInput,
    PromptsError => BadInput,
    UsualError => BadInput,
    FilterError => BadInput,
    LintError => BadInput,
    WalkError => Io,
    ReadError => BadInput,
    IntoTaskError => BadInput,
    WriteError => BadInput,
    PublishError => Io,
    ImportTaskError => BadInput,
}

impl From<ExportError<StoreError>> for Failure {
    fn from(error: ExportError<StoreError>) -> Self {
        let status = match &error {
            ExportError::Source(_) | ExportError::Rows(_) | ExportError::Card(_) => Status::Io,
            ExportError::Separable(_) => Status::Failed,
        };
        Self::new(status, error)
    }
}

impl From<ScaffoldLoadError> for Failure {
    fn from(error: ScaffoldLoadError) -> Self {
        let status = match &error {
            ScaffoldLoadError::Prompts(_) => Status::BadInput,
            ScaffoldLoadError::NoCommand { .. } => Status::Usage,
        };
        Self::new(status, error)
    }
}

impl From<TrialError> for Failure {
    fn from(error: TrialError) -> Self {
        let status = match &error {
            TrialError::Engine(_) => Status::NoEngine,
            TrialError::NoVerdict(_) => Status::TryAgain,
            TrialError::MissingTool { .. } | TrialError::Unmet { .. } => Status::Failed,
            TrialError::Unsupported(_) => Status::BadInput,
            TrialError::Store(_) => Status::Io,
            TrialError::Drained => Status::Interrupted,
        };
        Self::new(status, error)
    }
}

impl From<NoVerdict> for Failure {
    fn from(error: NoVerdict) -> Self {
        let status = match error.blame() {
            Some(Blame::Infra) | None => Status::TryAgain,
            Some(Blame::Solver) => Status::Failed,
            Some(Blame::Task | Blame::Caller) => Status::BadInput,
        };
        Self::new(status, error)
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let status = match &error {
            AgentError::Engine(_) => Status::NoEngine,
            AgentError::Sandbox(_)
            | AgentError::GaveUp { .. }
            | AgentError::NotStarted(_)
            | AgentError::TooSlow { .. } => Status::TryAgain,
            AgentError::Prompts(_)
            | AgentError::Script(_)
            | AgentError::Start(_)
            | AgentError::Refused { .. } => Status::BadInput,
            AgentError::NeverAsked { .. }
            | AgentError::NotInstalled { .. }
            | AgentError::CannotRun { .. }
            | AgentError::Foreign(_) => Status::Unusable,
            AgentError::Drained => Status::Interrupted,
            AgentError::Store(_) => Status::Io,
            AgentError::Call(error) => call_status(error),
        };
        Self::new(status, error)
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        let status = match &error {
            CatalogError::Malformed(_) | CatalogError::Lock { .. } => Status::BadInput,
            CatalogError::Unknown { .. } => Status::Usage,
            CatalogError::NotLocked { .. } => Status::Unusable,
            CatalogError::Io { .. } => Status::Io,
        };
        Self::new(status, error)
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::new(fetch_status(&error), error)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let status = match &error {
            BuildError::Fetch(error) => fetch_status(error),
            BuildError::Unavailable { .. } => Status::Unusable,
            BuildError::NotLocked { .. }
            | BuildError::OtherLayer { .. }
            | BuildError::Unpack(_)
            | BuildError::Python(_) => Status::BadInput,
            BuildError::Io { .. } => Status::Io,
        };
        Self::new(status, error)
    }
}

fn fetch_status(error: &FetchError) -> Status {
    match error {
        FetchError::Client(_) | FetchError::Io { .. } => Status::Io,
        FetchError::Download { .. } => Status::TryAgain,
        FetchError::Missing { .. }
        | FetchError::Hash { .. }
        | FetchError::UnknownHash(_)
        | FetchError::Malformed { .. } => Status::BadInput,
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::new(call_status(&error), error)
    }
}

/// The status after a model call without a reply.
pub(super) fn call_status(error: &CallError) -> Status {
    match error {
        CallError::Budget(_) | CallError::Exhausted { .. } => Status::TryAgain,
        CallError::Cancelled(_) | CallError::ShuttingDown => Status::Interrupted,
        CallError::Store(_) | CallError::Record { .. } => Status::Io,
        CallError::ContextLength { .. }
        | CallError::ContentFilter { .. }
        | CallError::Auth { .. }
        | CallError::Key { .. }
        | CallError::Refused { .. }
        | CallError::NoRole { .. }
        | CallError::Unsupported { .. }
        | CallError::NoPrice { .. }
        | CallError::Cassette(_)
        | CallError::Client(_) => Status::BadInput,
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::new(fault_status(&fault), fault)
    }
}

/// The status after a fault that ends a whole command.
pub(super) fn fault_status(fault: &Fault) -> Status {
    match fault {
        Fault::Engine(_) => Status::NoEngine,
        Fault::NoVerdict(_) | Fault::AwaitsRequest { .. } => Status::TryAgain,
        Fault::Trial(_) => Status::Failed,
        // Blind solvers, and those that measure difficulty, act in rollouts.
        Fault::Rollout(RolloutError::Agent(AgentError::Call(error))) => call_status(error),
        Fault::Rollout(RolloutError::Agent(
            AgentError::NeverAsked { .. }
            | AgentError::NotInstalled { .. }
            | AgentError::CannotRun { .. }
            | AgentError::Foreign(_),
        )) => Status::Unusable,
        Fault::Store(_) | Fault::Trajectory(_) => Status::Io,
        Fault::Authoring(error) => authoring_status(error),
        Fault::Author(_) | Fault::Rollout(_) | Fault::Directory(_) => Status::BadInput,
        Fault::Drained => Status::Interrupted,
    }
}

/// The status after a model's call or reply ended an authoring.
fn authoring_status(error: &StageError) -> Status {
    match error {
        StageError::Call(error) | StageError::Ask(AskError::Call(error)) => call_status(error),
        // The model was told its error once. Another try may succeed.
        StageError::Ask(AskError::Unusable { .. }) => Status::Failed,
        StageError::Trial(_)
        | StageError::Rollout(_)
        | StageError::Store(_)
        | StageError::Prompts(_)
        | StageError::Kit(_)
        | StageError::Path(_)
        | StageError::Directory(_) => Status::BadInput,
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Store(error) => error.into(),
            PipelineError::Export(error) => error.into(),
            PipelineError::Publish(error) => error.into(),
        }
    }
}
