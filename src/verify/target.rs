//! A task as trials and rollouts see it: its images, its container, and its judging.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::act::{Act, ActContext};
use super::condition::Condition;
use super::fingerprint::{Fingerprint, StateHashes};
use super::missing_runner::MissingRunner;
use super::no_verdict::NoVerdict;
use super::room::VerifierLog;
use super::runner::{TrialError, TrialRunner};
use crate::model::{Assume, CheckId, EnvironmentDigest, FileTree, Judging, Limits, Verdict};
use crate::sandbox::{Engine, EngineError, Image, ImageConfig, LaunchSpec, LayerId, Sandbox};

/// A task that can be tried. Our own tasks ([`super::HashedTask`]) are judged in the clean room.
/// Tasks of other makers ([`super::Foreign`]) are judged as they declare.
pub trait Target: Debug {
    fn name(&self) -> &str;

    /// The part of keys that identifies the task.
    fn identity(&self) -> &str;

    fn environment_digest(&self) -> &EnvironmentDigest;

    /// The solver's limits.
    fn limits(&self) -> &Limits;

    /// Where the tests run.
    fn judging(&self) -> Judging;

    /// The steps in order, at least one.
    fn steps(&self) -> Vec<Step<'_>>;

    /// The reference of the first step, if the task has one.
    fn solution(&self) -> Option<&FileTree>;

    /// The test files of the first step.
    fn tests(&self) -> &FileTree;

    /// Weights of checks, where they are not 1.
    fn weights(&self) -> &BTreeMap<CheckId, f64>;

    /// The name of a finished image, if none is built.
    fn named_image(&self) -> Option<&str> {
        None
    }

    /// Why correct work may not pass here, e.g. a service that nobody starts. Empty if no reason is
    /// known. The task must be built.
    fn hint<'a>(&'a self, _runner: &'a TrialRunner<'_>) -> LocalBoxFuture<'a, Result<String, EngineError>> {
        Box::pin(async { Ok(String::new()) })
    }

    /// The input of a trial's key.
    fn trial_input(&self, act: Act<'_>, condition: Condition<'_>, repeat: u32) -> serde_json::Value;

    /// Builds the images, or finds them. `Err(log)` inside means that the task's files are at
    /// fault.
    fn build<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
    ) -> LocalBoxFuture<'a, Result<Result<(), String>, TrialError>>;

    /// The images of a trial under `condition`. The task must be built.
    fn images<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
        condition: Condition<'a>,
    ) -> LocalBoxFuture<'a, Result<Images, EngineError>>;

    /// The launch specification of the solver's container.
    fn solver<'a>(&'a self, context: &'a TrialContext<'_>) -> LaunchSpec<'a>;

    /// Prepares the solver's container for a step, e.g. starts services.
    fn prepare<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        step: usize,
        sandbox: &'a Sandbox,
    ) -> LocalBoxFuture<'a, Result<(), NoVerdict>>;

    /// Runs the shells of a prepared container as the step's user.
    fn begin<'a>(&'a self, _step: usize, _sandbox: &'a Sandbox) -> LocalBoxFuture<'a, Result<(), NoVerdict>> {
        Box::pin(async { Ok(()) })
    }

    /// The settings of a scripted solver in a step.
    fn settings<'a>(&'a self, context: &'a TrialContext<'_>, step: usize) -> ActContext<'a>;

    /// Judges the state that a step's solver left in `sandbox`.
    fn judge<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        step: usize,
        sandbox: Sandbox,
        retain: Retain,
    ) -> LocalBoxFuture<'a, Judged>;

    /// The verdict on the task. `steps` are the verdicts on the steps that were reached, in order.
    fn combined(&self, steps: Vec<Result<Verdict, NoVerdict>>) -> Result<Verdict, NoVerdict>;
}

/// One step of a task: a conversation of its own in the same container.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Empty in a task of one step.
    pub name: &'a str,
    pub instruction: &'a str,
    /// Time limit of the solver.
    pub timeout: Duration,
}

/// The images of a task.
#[derive(Clone, Debug)]
pub struct Images {
    pub solver: Image,
    /// The tests' own image, if they have one.
    pub verifier: Option<Image>,
}

impl From<Image> for Images {
    /// Solver and tests have the same image.
    fn from(solver: Image) -> Self {
        Self { solver, verifier: None }
    }
}

/// Settings of one attempt at a verdict.
#[derive(Clone, Debug)]
pub struct TrialContext<'a> {
    pub engine: &'a Engine,
    pub images: &'a Images,
    /// The configuration of the solver's image.
    pub config: ImageConfig,
    /// The task's limits under the condition.
    pub limits: Limits,
    pub condition: Condition<'a>,
    /// Who is to blame for a loss without evidence.
    pub assume: Assume,
    pub missing_runner: MissingRunner,
    /// What the solver's container sees of an installed agent.
    pub layer: Option<&'a LayerId>,
}

impl<'a> TrialContext<'a> {
    /// The context of an attempt under `condition`, before any control.
    pub async fn new(
        engine: &'a Engine,
        images: &'a Images,
        target: &dyn Target,
        condition: Condition<'a>,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            engine,
            images,
            config: engine.image_config(&images.solver).await?,
            limits: condition.limits(target.limits()),
            condition,
            assume: Assume::Nothing,
            missing_runner: MissingRunner::Ignored,
            layer: None,
        })
    }
}

/// Which part of the judged state is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    Nothing,
    /// The files' names and hashes.
    Fingerprint,
    /// The whole state, as an image. A later round continues from there.
    StateImage,
}

/// Result of judging one step.
#[derive(Debug)]
pub struct Judged {
    /// The verdict on the step. `Err` says why there is none.
    pub verdict: Result<Verdict, NoVerdict>,
    /// Hashes of the final state, if it was read.
    pub hashes: Option<StateHashes>,
    pub fingerprint: Fingerprint,
    pub log: VerifierLog,
    /// The number that the tests of a foreign task wrote.
    pub reward: Option<f64>,
    /// The judged state, if `StateImage` was asked for and an image can hold the state.
    pub state_image: Option<Image>,
    /// The solver's container, if the next step runs in it.
    pub next: Option<Sandbox>,
}

impl Judged {
    /// A step with a verdict, or the reason for none. Nothing else is known.
    pub(super) fn of(verdict: Result<Verdict, NoVerdict>) -> Self {
        Self {
            verdict,
            hashes: None,
            fingerprint: Fingerprint::new(),
            log: VerifierLog::default(),
            reward: None,
            state_image: None,
            next: None,
        }
    }

    /// A step that has no verdict.
    pub fn lost(lost: NoVerdict) -> Self {
        Self::of(Err(lost))
    }
}

/// The steps of one attempt that have been judged.
#[derive(Debug, Default)]
pub struct JudgedSteps {
    verdicts: Vec<Result<Verdict, NoVerdict>>,
    pub log: VerifierLog,
    /// Hashes of the last step's state.
    pub hashes: Option<StateHashes>,
    pub fingerprint: Fingerprint,
    /// The reward of the first step that has one.
    pub reward: Option<f64>,
    /// The state of the last step.
    pub state_image: Option<Image>,
}

impl JudgedSteps {
    /// Adds the next step. Returns the container if another step follows in it.
    pub fn add(&mut self, judged: Judged) -> Option<Sandbox> {
        let Judged { verdict, hashes, fingerprint, log, reward, state_image, next } = judged;
        self.verdicts.push(verdict);
        self.log.add(log);
        (self.hashes, self.fingerprint, self.state_image) = (hashes, fingerprint, state_image);
        self.reward = self.reward.or(reward);
        next
    }

    /// The verdict on the task. A loss without evidence is blamed as `assume` says.
    pub fn verdict(&mut self, target: &dyn Target, assume: Assume) -> Result<Verdict, NoVerdict> {
        target.combined(std::mem::take(&mut self.verdicts)).or_else(|lost| {
            self.log.output.push_str(&lost.to_string());
            lost.verdict(assume)
        })
    }
}

/// A fresh container of `target`, prepared for its first step.
pub async fn ready(context: &TrialContext<'_>, target: &dyn Target) -> Result<Sandbox, NoVerdict> {
    let sandbox = context.engine.launch(&target.solver(context)).await?;
    prepared(context, target, 0, &sandbox).await?;
    Ok(sandbox)
}

/// Prepares the solver's container for a step, and runs its shells as the step's user.
pub async fn prepared(
    context: &TrialContext<'_>,
    target: &dyn Target,
    step: usize,
    sandbox: &Sandbox,
) -> Result<(), NoVerdict> {
    target.prepare(context, step, sandbox).await?;
    target.begin(step, sandbox).await
}
