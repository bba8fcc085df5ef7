//! A task as trials and rollouts see it: its images, its container, and how work in it is judged.

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
use crate::sandbox::{Engine, EngineError, Image, ImageConfig, LaunchSpec, Sandbox};

/// A task that can be tried. Tasks of ours ([`super::HashedTask`]) are judged in the clean room,
/// tasks of other makers ([`super::Foreign`]) as they declare.
pub trait Target: Debug {
    fn name(&self) -> &str;

    /// Identifies the task in keys.
    fn identity(&self) -> &str;

    fn environment_digest(&self) -> &EnvironmentDigest;

    /// What the task allows a solver.
    fn limits(&self) -> &Limits;

    /// Where the tests run.
    fn judging(&self) -> Judging;

    /// Its steps, in order. There is at least one.
    fn steps(&self) -> Vec<Step<'_>>;

    /// The reference of the first step, if the task has one.
    fn solution(&self) -> Option<&FileTree>;

    /// The test files of the first step.
    fn tests(&self) -> &FileTree;

    /// Weights of its checks other than 1.
    fn weights(&self) -> &BTreeMap<CheckId, f64>;

    /// The name of its finished image, if none is built.
    fn named_image(&self) -> Option<&str> {
        None
    }

    /// Why correct work may not pass here, e.g. a service that nobody starts. The task has been built.
    /// Empty if nothing is known.
    fn hint<'a>(&'a self, _runner: &'a TrialRunner<'_>) -> LocalBoxFuture<'a, Result<String, EngineError>> {
        Box::pin(async { Ok(String::new()) })
    }

    /// The input that keys the record of a trial.
    fn trial_input(&self, act: Act<'_>, condition: Condition<'_>, repeat: u32) -> serde_json::Value;

    /// Builds its images, or finds them. `Err(log)` inside means that the task's files are at fault.
    fn build<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
    ) -> LocalBoxFuture<'a, Result<Result<(), String>, TrialError>>;

    /// The images of a trial under `condition`, of a task that has been built.
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

    /// How a scripted solver acts in a step.
    fn settings<'a>(&'a self, context: &'a TrialContext<'_>, step: usize) -> ActContext<'a>;

    /// Judges what a step's solver left in `sandbox`.
    fn judge<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        step: usize,
        sandbox: Sandbox,
        retain: Retain,
    ) -> LocalBoxFuture<'a, Judged>;

    /// The verdict on the task, from those on the steps that were reached, in order.
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
    /// Whom to blame for a loss without evidence.
    pub assume: Assume,
    pub missing_runner: MissingRunner,
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
        })
    }
}

/// Which part of the judged state is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    Nothing,
    /// Its files' names and hashes.
    Fingerprint,
    /// All of it, as an image. A later round continues from there.
    StateImage,
}

/// Result of judging one step.
#[derive(Debug)]
pub struct Judged {
    /// The verdict on the step, or why there is none.
    pub verdict: Result<Verdict, NoVerdict>,
    /// Of the final state, if that was read.
    pub hashes: Option<StateHashes>,
    pub fingerprint: Fingerprint,
    pub log: VerifierLog,
    /// The number that the tests of a foreign task wrote.
    pub reward: Option<f64>,
    /// The judged state, if it was to be retained as an image and an image can hold it.
    pub state_image: Option<Image>,
    /// The solver's container, if the next step follows in it.
    pub next: Option<Sandbox>,
}

impl Judged {
    /// A step of which only the verdict is known, or why there is none.
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
    /// Of the last step.
    pub hashes: Option<StateHashes>,
    pub fingerprint: Fingerprint,
    /// Of the first step that has one.
    pub reward: Option<f64>,
    /// Of the last step.
    pub state_image: Option<Image>,
}

impl JudgedSteps {
    /// Adds the next step, and returns the container in which another one follows.
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
