//! Our own tasks as targets. They have one step, and are judged in the clean room.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::act::{Act, ActContext};
use super::clean_room;
use super::condition::Condition;
use super::no_verdict::{NoVerdict, Phase};
use super::runner::{TrialError, TrialRunner};
use super::target::{Images, Judged, Retain, Step, Target, TrialContext};
use crate::model::{CheckId, EnvironmentDigest, FileTree, Judging, Limits, Task, Verdict, canonical_json};
use crate::sandbox::{EngineError, Image, LaunchSpec, Network, Sandbox};
use crate::store::StoreError;

/// A task with the digests that are in the keys of its trials.
#[derive(Clone, Debug)]
pub struct HashedTask<'a> {
    pub task: Cow<'a, Task>,
    pub environment_digest: EnvironmentDigest,
    /// Hash of the whole task, also of data that is in no file of its directory.
    pub identity: String,
}

impl<'a> HashedTask<'a> {
    /// Computes the digests of `task`.
    pub fn new(task: &'a Task, environment_digest: EnvironmentDigest) -> Result<Self, StoreError> {
        Self::of(Cow::Borrowed(task), environment_digest)
    }

    /// Like [`Self::new`], for a task that it owns.
    pub fn owned(task: Task, environment_digest: EnvironmentDigest) -> Result<Self, StoreError> {
        Self::of(Cow::Owned(task), environment_digest)
    }

    fn of(task: Cow<'a, Task>, environment_digest: EnvironmentDigest) -> Result<Self, StoreError> {
        let text = canonical_json(&*task).map_err(StoreError::Encode)?;
        Ok(Self { task, environment_digest, identity: blake3::hash(text.as_bytes()).to_hex().to_string() })
    }
}

/// The launch specification of a solver's container.
pub fn solver_container<'a>(image: &'a Image, task: &'a Task) -> LaunchSpec<'a> {
    LaunchSpec {
        image,
        limits: &task.limits,
        profile: task.profile,
        network: Network::None,
        workdir: task.submission.workdir(),
        purpose: "solver",
        preload: Vec::new(),
        layer: None,
    }
}

impl Target for HashedTask<'_> {
    fn name(&self) -> &str {
        self.task.name.as_str()
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn environment_digest(&self) -> &EnvironmentDigest {
        &self.environment_digest
    }

    fn limits(&self) -> &Limits {
        &self.task.limits
    }

    fn judging(&self) -> Judging {
        Judging::CleanRoom
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let timeout = Duration::from_secs(self.task.limits.agent_timeout_sec.into());
        vec![Step { name: "", instruction: &self.task.instruction, timeout }]
    }

    fn solution(&self) -> Option<&FileTree> {
        Some(&self.task.solution)
    }

    fn tests(&self) -> &FileTree {
        &self.task.tests
    }

    fn weights(&self) -> &BTreeMap<CheckId, f64> {
        &self.task.weights
    }

    fn trial_input(&self, act: Act<'_>, condition: Condition<'_>, repeat: u32) -> Value {
        json!({
            "task": self.identity,
            "environment": self.environment_digest,
            "act": act.identity(),
            "condition": condition,
            "repeat": repeat,
        })
    }

    fn build<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
    ) -> LocalBoxFuture<'a, Result<Result<(), String>, TrialError>> {
        Box::pin(runner.build(self))
    }

    fn images<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
        condition: Condition<'a>,
    ) -> LocalBoxFuture<'a, Result<Images, EngineError>> {
        Box::pin(async move {
            let image = match condition {
                Condition::Rebuilt => runner.rebuilt(self).await?,
                Condition::Ordinary
                | Condition::Shuffled
                | Condition::Offline
                | Condition::HalfCpu
                | Condition::Clock
                | Condition::FirstFailure { .. } => runner.image(self).await?,
            };
            Ok(Images::from(image))
        })
    }

    fn solver<'a>(&'a self, context: &'a TrialContext<'_>) -> LaunchSpec<'a> {
        LaunchSpec {
            limits: &context.limits,
            layer: context.layer,
            ..solver_container(&context.images.solver, &self.task)
        }
    }

    fn prepare<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        _step: usize,
        sandbox: &'a Sandbox,
    ) -> LocalBoxFuture<'a, Result<(), NoVerdict>> {
        Box::pin(async move {
            let prepared = context.condition.prepare(sandbox).await;
            prepared.map_err(|error| NoVerdict::Sandbox { phase: Phase::Prepare, error })
        })
    }

    fn settings<'a>(&'a self, _context: &'a TrialContext<'_>, _step: usize) -> ActContext<'a> {
        ActContext {
            solution: &self.task.solution,
            workdir: self.task.submission.workdir(),
            timeout: Duration::from_secs(self.task.limits.agent_timeout_sec.into()),
            env: Vec::new(),
            log: None,
            user: None,
        }
    }

    fn judge<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        _step: usize,
        sandbox: Sandbox,
        retain: Retain,
    ) -> LocalBoxFuture<'a, Judged> {
        Box::pin(clean_room::judge(context, &self.task, sandbox, retain))
    }

    fn combined(&self, mut steps: Vec<Result<Verdict, NoVerdict>>) -> Result<Verdict, NoVerdict> {
        let none = || Err(NoVerdict::NoResults { cause: "nothing was judged".to_owned() });
        steps.pop().unwrap_or_else(none)
    }
}
