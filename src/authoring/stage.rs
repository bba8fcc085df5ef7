//! The trait of a stage: what it asks a model, how it reads a reply into the draft, and how it
//! examines its part of the draft.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures_util::future::{FutureExt as _, LocalBoxFuture, ready};
use minijinja::Value;

use super::examine::Examination;
use super::stages::STAGES;
use super::working::Working;
use super::{PromptContext, StageError};
use crate::llm::ModelRole;
use crate::model::{AuthoringPhase, StageName};

/// A stage of writing a task (LiteCoder-Terminal, §3). Each has one row in [`STAGES`].
pub(super) trait AuthorStage: Debug + Send + Sync {
    /// The name in records and call sites. The prompts are in `templates/prompts/author-NAME/`.
    fn name(&self) -> &'static str;

    /// Who is asked, e.g. the model of a role.
    fn asks(&self) -> Asks;

    fn phase(&self) -> AuthoringPhase {
        AuthoringPhase::Draft
    }

    /// The option on the command line, if the stage has one.
    fn option(&self) -> Option<StageOption> {
        None
    }

    /// The files that the prompts consist of, besides the system prompt.
    fn texts(&self) -> &'static [&'static str] {
        &["task.md.j2", FEEDBACK]
    }

    /// The shell in which the model may try things out before it replies.
    fn shell(&self) -> Option<Shell> {
        None
    }

    /// The values for the prompts: the parts of the draft that the model may see. `None` for a
    /// stage without a conversation.
    fn prompt(&self, _context: &PromptContext<'_>, _working: &Working) -> Option<Prompt> {
        None
    }

    /// Reads a reply into the draft. The model is told the error.
    fn accept(&self, _reply: &str, _working: &mut Working, _counts: &StageCounts) -> Result<(), String> {
        Ok(())
    }

    /// Examines this stage's part of the draft. Earlier stages have found no problem.
    fn examine<'a>(&'a self, _draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        ready(Ok(None)).boxed_local()
    }

    /// What becomes of a draft that this stage gives up.
    fn gives_up(&self) -> GivenUp {
        GivenUp::Rejected
    }
}

/// A row of [`STAGES`].
pub(super) type StageRef = &'static dyn AuthorStage;

/// The template of the message about a version that cannot be used.
pub(super) const FEEDBACK: &str = "feedback.md.j2";

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Nobody,
    /// The model of a role.
    Model(ModelRole),
    /// The solvers of the run.
    Solvers,
}

/// The values for the first two messages of a conversation.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) system: Value,
    pub(super) task: Value,
}

/// The machine on which a stage's shell runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    /// The draft's machine. An empty one, while the draft's cannot be built.
    DraftOrEmpty,
    /// The draft's machine.
    Draft,
    /// The draft's machine, with the files of its tests.
    DraftWithTests,
}

/// What an examination found.
pub(super) type Examined = Result<Option<Found>, StageError>;

/// The problems, and the stage that must mend them.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) stage: StageRef,
    pub(super) problems: Vec<String>,
}

impl Found {
    /// `None` if there are no problems.
    pub(super) fn of(stage: StageRef, problems: Vec<String>) -> Option<Self> {
        (!problems.is_empty()).then_some(Self { stage, problems })
    }

    /// One problem.
    pub(super) fn one(stage: StageRef, problem: String) -> Self {
        Self { stage, problems: vec![problem] }
    }
}

/// What became of a draft that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The draft was shown to be wrong.
    Rejected,
    /// The draft was shown to be neither right nor wrong.
    Unconfirmed,
}

/// A number on the command line that belongs to one stage, e.g. `--mistakes 6`. 0 leaves the stage
/// out.
#[derive(Clone, Copy, Debug)]
pub struct StageOption {
    /// The stage's name. The option has the same.
    pub name: &'static str,
    pub help: &'static str,
    pub usual: u32,
    pub most: u32,
}

/// The options of all stages, in their order.
pub fn stage_options() -> impl Iterator<Item = StageOption> {
    STAGES.iter().filter_map(|stage| stage.option())
}

/// The numbers of the stages that have an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCounts(BTreeMap<&'static str, u32>);

impl Default for StageCounts {
    /// The default numbers.
    fn default() -> Self {
        stage_options().map(|option| (option.name, option.usual)).collect()
    }
}

impl FromIterator<(&'static str, u32)> for StageCounts {
    fn from_iter<I: IntoIterator<Item = (&'static str, u32)>>(counts: I) -> Self {
        Self(counts.into_iter().collect())
    }
}

impl StageCounts {
    /// The stages and their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.0.iter().map(|(stage, count)| (*stage, *count))
    }

    /// The number of a stage; 0 where it has none.
    pub(super) fn of(&self, stage: &str) -> u32 {
        self.0.get(stage).copied().unwrap_or_default()
    }

    /// The roles that the stages ask, in the order of the stages.
    pub fn roles(&self) -> Vec<ModelRole> {
        let mut roles = Vec::new();
        for stage in self.stages() {
            if let Asks::Model(role) = stage.asks()
                && !roles.contains(&role)
            {
                roles.push(role);
            }
        }
        roles
    }

    /// The stages that are not left out, in order.
    pub(super) fn stages(&self) -> impl Iterator<Item = StageRef> {
        STAGES.iter().copied().filter(|stage| self.0.get(stage.name()) != Some(&0))
    }
}

/// The names of all stages, in order.
pub fn stage_names() -> impl Iterator<Item = (StageName, AuthoringPhase)> {
    STAGES.iter().map(|stage| (StageName::of(stage.name()), stage.phase()))
}
