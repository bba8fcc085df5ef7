//! The author that is a language model. It has LiteCoder-Terminal's stages. The execution of a
//! stage's result shows what the stage has to correct.
//!
//! [`stages::STAGES`] has the stages in order. Each is a conversation of its own
//! ([`stage_conversation`]). The model that writes checks never sees a solution, and solvers see
//! neither. After each version the draft is examined from the start ([`examine`]), cheapest first.
//! Trials that were run before are read from the store. The first stage with problems is told them,
//! and writes its next version. It has [`MAX_VERSIONS`].
//!
//! An authoring is a function of the blueprint, the prompts, and the committed replies and trials.
//! So an interrupted one is repeated without new requests. After a changed prompt, its stage and
//! the later ones are asked again.

mod anchor;
mod arbiter;
mod at_fault;
mod declare;
mod difficulty_band;
mod equivalence;
mod estimate;
mod examine;
mod made;
mod near_duplicate;
mod question;
mod quotes;
mod reply_files;
mod requested;
mod stage;
mod stage_conversation;
mod stage_shell;
mod stages;
mod texts;
mod working;

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::DomainSpec;
use crate::lint::Rules;
use crate::llm::{AskError, CallError, Models};
use crate::model::{
    AuthoringLog, AuthoringMode, AuthoringPhase, Blueprint, DifficultyBand, DifficultyRecord, Draft,
    PathError, Rigor, StageName, StageVersion, Task, environment_digest,
};
use crate::prompts::PromptsError;
use crate::recording::Recording;
use crate::rollout::RolloutError;
use crate::screen::AttackSuite;
use crate::store::StoreError;
use crate::verify::{HashedTask, TrialError, TrialRunner};

use crate::author::{AuthorAssets, AuthorError};
pub use declare::{Source, declare_clauses};
pub use difficulty_band::SolverPair;
pub use estimate::{
    Estimate, PromptExample, StageEstimate, Usual, UsualError, UsualStage, estimate, prompt_examples,
};
use examine::Examination;
pub use requested::{Accepted, Requested, requested};
use stage::{AuthorStage as _, Examined, Found, StageRef};
pub use stage::{GivenUp, StageCounts, StageOption, stage_names, stage_options};
pub use stage_conversation::Asking;
use stage_conversation::{Evidence, StageConversation};
pub use stage_shell::STAGE_SHELL;
use stage_shell::StageShell;
pub use stages::{BLIND, BlindSolvers, SCREENING, blind_attempts};
use stages::{Blind, Environment, Feasibility, Idea, Instruction, STAGES};
pub use texts::StageTexts;
use working::Working;

/// Versions of one stage, the first one included. Seven examinations can find a problem in the
/// checks: form, quotations, reference, attacks, clauses, mistakes, screening. A draft that needs
/// more versions is usually beyond repair.
const MAX_VERSIONS: u32 = 8;

/// Everything that the authoring of one task needs.
#[derive(Clone, Copy, Debug)]
pub struct StageContext<'a> {
    pub runner: &'a TrialRunner<'a>,
    pub models: &'a Models,
    pub texts: &'a StageTexts,
    pub kit: &'a AuthorAssets,
    pub rules: &'a Rules,
    pub suite: &'a AttackSuite,
    pub spec: &'a DomainSpec,
    pub blueprint: &'a Blueprint,
    /// The unit in its call sites.
    pub unit: &'a str,
    pub rigor: Rigor,
    pub mode: AuthoringMode,
    pub counts: &'a StageCounts,
    /// The recorded session that the task is made from, if there is one.
    pub recording: Option<&'a Recording>,
    pub blind: Option<&'a BlindSolvers<'a>>,
    pub solver_pair: Option<&'a SolverPair<'a>>,
    /// How often the task was evolved, i.e. made harder or easier.
    pub evolution: u32,
}

/// The values that prompts are rendered from, besides the draft.
#[derive(Clone, Copy, Debug)]
pub struct PromptContext<'a> {
    pub texts: &'a StageTexts,
    pub kit: &'a AuthorAssets,
    pub spec: &'a DomainSpec,
    pub blueprint: &'a Blueprint,
    pub counts: &'a StageCounts,
    pub recording: Option<&'a Recording>,
}

impl<'a> StageContext<'a> {
    fn prompts(&self) -> PromptContext<'a> {
        let Self { texts, kit, spec, blueprint, counts, recording, .. } = *self;
        PromptContext { texts, kit, spec, blueprint, counts, recording }
    }

    /// `task` with its digests. Its base decides the environment's digest.
    fn hashed<'t>(&self, task: &'t Task) -> Result<HashedTask<'t>, StoreError> {
        let base = self.kit.base(&task.base).unwrap_or_default();
        HashedTask::new(task, environment_digest(&task.environment, base))
    }

    fn asking(&self) -> Asking<'a> {
        Asking { models: self.models, texts: self.texts, unit: self.unit, round: self.evolution }
    }
}

/// A finished authoring.
#[derive(Debug)]
pub struct Authored {
    pub request: String,
    pub versions: Vec<StageVersion>,
    pub log: AuthoringLog,
    pub difficulty_bands: Vec<DifficultyRecord>,
    /// The draft, or what was given up.
    pub draft: Result<Box<Draft>, Abandoned>,
}

/// A draft that its stages could not mend.
#[derive(Debug)]
pub struct Abandoned {
    /// The stage that gave up.
    pub stage: StageName,
    pub given_up: GivenUp,
    /// The task so far, if a request was accepted.
    pub task: Option<Box<Task>>,
}

impl Abandoned {
    fn by(stage: StageRef, task: Option<Box<Task>>) -> Self {
        Self { stage: StageName::of(stage.name()), given_up: stage.gives_up(), task }
    }
}

/// Why an authoring has no result. The same command can resume it.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Kit(#[from] AuthorError),
    #[error(transparent)]
    Path(PathError),
    #[error(transparent)]
    Directory(#[from] crate::harbor::WriteError),
}

/// Takes an accepted request through all further stages.
pub async fn author(context: &StageContext<'_>, requested: Requested) -> Result<Authored, StageError> {
    let Requested { history, working } = requested;
    let working = match working {
        Ok(working) => *working,
        Err(request) => {
            let last = history.versions.last().map(|version| version.stage.clone());
            let stage = last.unwrap_or_else(|| StageName::of(Idea.name()));
            let abandoned = Abandoned { stage, given_up: GivenUp::Rejected, task: None };
            return Ok(history.ended(request, Err(abandoned)));
        }
    };
    let request = working.request.clone();
    let (mut working, mut history, mut evolution) = (working, history, 0);
    let mut difficulty_bands: Vec<DifficultyRecord> = Vec::new();
    let mut settled = None;
    let draft = loop {
        let context = &StageContext { evolution, ..*context };
        let (conversations, shells, survivors) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut authoring = Authoring { context, working, conversations, shells, history, survivors };
        let ended = authoring.stages().await?;
        (working, history) = (authoring.working, authoring.history);
        match ended {
            Ok(()) => settled = Some(Box::new(working.draft(context)?)),
            // If an evolution cannot be mended, the task that it was made from is the result.
            Err(stage) => {
                let task = Box::new(working.task(context)?);
                break settled.ok_or_else(|| Abandoned::by(stage, Some(task)));
            }
        }
        let next = match context.solver_pair {
            None => None,
            Some(solvers) => {
                let measured =
                    difficulty_band::measured(context, solvers, &working, history.edition()).await?;
                difficulty_bands.push(measured);
                let goes_on = measured.difficulty_band != DifficultyBand::Wanted
                    && evolution < difficulty_band::MAX_EVOLUTIONS;
                if goes_on { history.evolved(context, &working, &measured).await? } else { None }
            }
        };
        let Some(next) = next else {
            break settled.ok_or_else(|| Abandoned::by(&Blind, None));
        };
        working = next;
        evolution += 1;
    };
    if draft.is_ok() {
        for stage in STAGES {
            if history.current.contains_key(stage.name()) {
                history.examined(*stage, Vec::new());
            }
        }
    }
    Ok(Authored { difficulty_bands, ..history.ended(request, draft) })
}

/// The versions that were written so far.
#[derive(Debug, Default)]
struct History {
    versions: Vec<StageVersion>,
    log: AuthoringLog,
    /// The latest version of each stage.
    current: BTreeMap<&'static str, u32>,
}

impl History {
    /// How often the machine or the instruction was rewritten.
    fn edition(&self) -> u32 {
        let rewritten = |stage: StageRef| self.version(stage).saturating_sub(1);
        rewritten(&Environment) + rewritten(&Instruction)
    }

    /// The latest version of `stage`; 0 before the first.
    fn version(&self, stage: StageRef) -> u32 {
        self.current.get(stage.name()).copied().unwrap_or_default()
    }

    fn started(&mut self, stage: StageRef) {
        *self.current.entry(stage.name()).or_default() += 1;
    }

    /// Notes the problems of the current version of `stage`. There may be none.
    fn examined(&mut self, stage: StageRef, problems: Vec<String>) {
        let count = u32::try_from(problems.len()).unwrap_or(u32::MAX);
        let (name, version) = (StageName::of(stage.name()), self.version(stage));
        self.versions.push(StageVersion { stage: name, version, problems: count });
        self.log.problems.push(problems);
    }

    /// The start of a harder or easier task. `None` if that task is not feasible.
    async fn evolved(
        &mut self,
        context: &StageContext<'_>,
        working: &Working,
        measured: &DifficultyRecord,
    ) -> Result<Option<Working>, StageError> {
        let context = &StageContext { evolution: context.evolution + 1, ..*context };
        let request = difficulty_band::evolved(context, working, measured).await?;
        self.started(&Idea);
        self.started(&Feasibility);
        match requested::feasible(context, request).await? {
            Ok(working) => Ok(Some(working)),
            Err(reason) => {
                self.examined(&Feasibility, vec![reason]);
                Ok(None)
            }
        }
    }

    fn ended(self, request: String, draft: Result<Box<Draft>, Abandoned>) -> Authored {
        Authored { request, versions: self.versions, log: self.log, difficulty_bands: Vec::new(), draft }
    }
}

/// A draft on its way through the stages.
#[derive(Debug)]
struct Authoring<'a> {
    context: &'a StageContext<'a>,
    working: Working,
    conversations: BTreeMap<&'static str, StageConversation>,
    shells: BTreeMap<&'static str, StageShell>,
    history: History,
    /// Attacks and violations that no check noticed, by script or row. If one passes again, its own
    /// author is asked about it.
    survivors: BTreeSet<String>,
}

/// `Err` is the stage that gave up.
type Mended = Result<(), StageRef>;

impl Authoring<'_> {
    async fn stages(&mut self) -> Result<Mended, StageError> {
        let drafting = self.context.counts.stages().filter(|stage| stage.phase() == AuthoringPhase::Draft);
        for stage in drafting {
            if let Err(stage) = self.write(stage).await? {
                return Ok(Err(stage));
            }
            if let Err(stage) = self.settle(stage).await? {
                return Ok(Err(stage));
            }
        }
        Ok(Ok(()))
    }

    /// Examines the draft from its first stage up to `last`, cheapest first.
    async fn examine(&mut self, last: StageRef) -> Examined {
        let edition = self.history.edition();
        let Self { context, working, survivors, .. } = self;
        let context = *context;
        let mut draft = Examination { context, working, survivors, edition };
        for stage in context.counts.stages() {
            let found = stage.examine(&mut draft).await?;
            if found.is_some() || stage.name() == last.name() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Examines the draft up to `stage`, and has stages mend it, until no problem is found.
    async fn settle(&mut self, stage: StageRef) -> Result<Mended, StageError> {
        loop {
            let Some(Found { stage: at_fault, problems }) = self.examine(stage).await? else {
                return Ok(Ok(()));
            };
            tracing::info!(stage = at_fault.name(), problems = problems.len(), "a version has problems");
            self.history.examined(at_fault, problems.clone());
            let mended = match self.conversations.get_mut(at_fault.name()) {
                // E.g. solvers that failed honestly. There is no conversation to continue.
                None => Err(at_fault),
                Some(conversation) if conversation.versions() >= MAX_VERSIONS => Err(at_fault),
                Some(conversation) => {
                    conversation.correct(&self.context.asking(), Evidence::Executed, &problems)?;
                    self.reply(at_fault).await?
                }
            };
            if mended.is_err() {
                return Ok(mended);
            }
        }
    }

    /// Has `stage` write its first version. Some stages only examine, and write nothing.
    async fn write(&mut self, stage: StageRef) -> Result<Mended, StageError> {
        let Some(prompt) = stage.prompt(&self.context.prompts(), &self.working) else { return Ok(Ok(())) };
        let mut conversation = StageConversation::open(self.context.texts, stage, prompt)?;
        if let (AuthoringMode::Shell, Some(shell)) = (self.context.mode, stage.shell()) {
            conversation.add(&stage_shell::offer(&self.context.asking(), stage)?);
            self.shells.insert(stage.name(), StageShell::new(shell));
        }
        self.conversations.insert(stage.name(), conversation);
        self.reply(stage).await
    }

    /// Requests versions of `stage` until one has the right form. The model is told what is wrong
    /// with the form.
    async fn reply(&mut self, stage: StageRef) -> Result<Mended, StageError> {
        let Some(conversation) = self.conversations.get_mut(stage.name()) else { return Ok(Err(stage)) };
        loop {
            let reply = match conversation.reply(&self.context.asking()).await {
                Ok(reply) => reply,
                // The conversation has outgrown the model's context, so each further request would
                // fail too.
                Err(StageError::Call(CallError::ContextLength { message, .. })) => {
                    self.history.started(stage);
                    let problem = format!("its conversation is longer than the model's context: {message}");
                    self.history.examined(stage, vec![problem]);
                    return Ok(Err(stage));
                }
                Err(error) => return Err(error),
            };
            let shell = self.shells.get_mut(stage.name()).filter(|shell| shell.has_more());
            if let (Some(shell), Ok(Some(command))) = (shell, reply.as_deref().map(stage_shell::command)) {
                let observation = shell.run(self.context, &self.working, command).await?;
                conversation.show(observation);
                continue;
            }
            self.history.started(stage);
            let (working, counts) = (&mut self.working, self.context.counts);
            let problem = match reply.and_then(|reply| stage.accept(&reply, working, counts)) {
                Ok(()) => {
                    conversation.took();
                    return Ok(Ok(()));
                }
                Err(problem) => problem,
            };
            self.history.examined(stage, vec![problem.clone()]);
            if conversation.versions() >= MAX_VERSIONS {
                return Ok(Err(stage));
            }
            conversation.correct(&self.context.asking(), Evidence::Read, &[problem])?;
        }
    }
}
