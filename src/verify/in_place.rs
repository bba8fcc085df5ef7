//! Tasks of other makers as targets. They are judged as they declare: in the solver's container, or
//! in a container with its artifacts. The order of events is Harbor's (`trial/trial.py`,
//! `verifier/verifier.py` of harbor 0.25).

use std::collections::BTreeMap;

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use super::act::{Act, ActContext};
use super::condition::Condition;
use super::foreign::{Foreign, ForeignStep, ImageSource, Mode, Strategy, hints};
use super::no_verdict::{NoVerdict, Phase};
use super::runner::{TrialError, TrialRunner};
use super::target::{Images, Judged, Retain, Step, Target, TrialContext};
use crate::model::{CheckId, CheckResult, EnvironmentDigest, FileTree, Judging, Limits, Outcome, Verdict};
use crate::sandbox::{EngineError, ExecLimit, ImageConfig, LaunchSpec, Network, Sandbox, SandboxError};
use crate::syntax::shell_word;

/// No weights, so all checks count the same.
static EQUAL: BTreeMap<CheckId, f64> = BTreeMap::new();

impl Target for Foreign {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> &str {
        self.digest.as_str()
    }

    fn environment_digest(&self) -> &EnvironmentDigest {
        &self.environment_digest
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn judging(&self) -> Judging {
        match self.mode {
            Mode::Shared => Judging::Shared,
            Mode::Separate { .. } => Judging::Separate,
        }
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let steps = self.steps.iter().map(|step| Step {
            name: &step.name,
            instruction: &step.instruction,
            timeout: step.agent_timeout,
        });
        steps.collect()
    }

    fn solution(&self) -> Option<&FileTree> {
        Some(&self.step(0).solution).filter(|files| files.get("solve.sh").is_some())
    }

    fn tests(&self) -> &FileTree {
        &self.step(0).tests
    }

    fn weights(&self) -> &BTreeMap<CheckId, f64> {
        &EQUAL
    }

    fn named_image(&self) -> Option<&str> {
        match &self.image {
            ImageSource::Named(name) => Some(name),
            ImageSource::Build(_) => None,
        }
    }

    fn hint<'a>(&'a self, runner: &'a TrialRunner<'_>) -> LocalBoxFuture<'a, Result<String, EngineError>> {
        Box::pin(async move {
            let images = self.images(runner, Condition::Ordinary).await?;
            let config = runner.engine.get().await?.image_config(&images.solver).await?;
            Ok(hints::hint(&self.mode, &config))
        })
    }

    fn trial_input(&self, act: Act<'_>, condition: Condition<'_>, repeat: u32) -> Value {
        self.input(act, condition, repeat)
    }

    fn build<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
    ) -> LocalBoxFuture<'a, Result<Result<(), String>, TrialError>> {
        Box::pin(self.build_images(runner))
    }

    fn images<'a>(
        &'a self,
        runner: &'a TrialRunner<'_>,
        condition: Condition<'a>,
    ) -> LocalBoxFuture<'a, Result<Images, EngineError>> {
        Box::pin(self.built_images(runner, condition))
    }

    fn solver<'a>(&'a self, context: &'a TrialContext<'_>) -> LaunchSpec<'a> {
        let network = match context.condition {
            Condition::Offline => Network::None,
            Condition::Ordinary
            | Condition::Shuffled
            | Condition::HalfCpu
            | Condition::Clock
            | Condition::Rebuilt
            | Condition::FirstFailure { .. } => self.network.clone(),
        };
        LaunchSpec {
            image: &context.images.solver,
            limits: &context.limits,
            profile: self.profile,
            network,
            workdir: self.workdir.as_deref().unwrap_or(&context.config.workdir),
            purpose: "solver",
            preload: Vec::new(),
            layer: context.layer,
        }
    }

    fn prepare<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        step: usize,
        sandbox: &'a Sandbox,
    ) -> LocalBoxFuture<'a, Result<(), NoVerdict>> {
        Box::pin(async move { StepContext::new(self, context, step).prepare(sandbox).await })
    }

    fn begin<'a>(&'a self, step: usize, sandbox: &'a Sandbox) -> LocalBoxFuture<'a, Result<(), NoVerdict>> {
        Box::pin(begin_as(self.step(step).agent_user.as_deref(), step, sandbox))
    }

    fn settings<'a>(&'a self, context: &'a TrialContext<'_>, step: usize) -> ActContext<'a> {
        let step = self.step(step);
        let mut env = self.environment_env.clone();
        env.push(("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned()));
        env.extend(self.solution_env.iter().cloned());
        ActContext {
            solution: &step.solution,
            workdir: self.workdir.as_deref().unwrap_or(&context.config.workdir),
            timeout: step.agent_timeout,
            env,
            log: Some("/logs/agent/oracle.txt"),
            user: step.agent_user.as_deref(),
        }
    }

    fn judge<'a>(
        &'a self,
        context: &'a TrialContext<'_>,
        step: usize,
        sandbox: Sandbox,
        retain: Retain,
    ) -> LocalBoxFuture<'a, Judged> {
        Box::pin(async move { StepContext::new(self, context, step).judge(sandbox, retain).await })
    }

    /// A pass needs a full score in every step that counts.
    fn combined(&self, mut steps: Vec<Result<Verdict, NoVerdict>>) -> Result<Verdict, NoVerdict> {
        let reached = steps.len();
        let counted = match self.strategy {
            Strategy::Final if reached == self.steps.len() => steps.split_off(reached.saturating_sub(1)),
            Strategy::Final | Strategy::Mean => steps,
        };
        let mut outcome = if reached == self.steps.len() { Outcome::Pass } else { Outcome::Fail };
        let mut checks = Vec::new();
        for verdict in counted {
            let verdict = verdict?;
            if !verdict.passed() {
                outcome = Outcome::Fail;
            }
            checks.extend(verdict.checks);
        }
        // The checks of steps that were not reached have failed.
        checks.extend(
            self.steps
                .iter()
                .skip(reached)
                .map(|step| CheckResult { id: CheckId::reward().in_step(&step.name), passed: false }),
        );
        Ok(Verdict { outcome, cause: String::new(), checks })
    }
}

/// One step of an attempt.
#[derive(Clone)]
pub(super) struct StepContext<'a> {
    pub(super) context: &'a TrialContext<'a>,
    pub(super) task: &'a Foreign,
    pub(super) number: usize,
    pub(super) step: &'a ForeignStep,
    /// The configuration of the image of the tests' container.
    pub(super) config: &'a ImageConfig,
    /// The specification of the tests' container.
    pub(super) spec: LaunchSpec<'a>,
}

impl<'a> StepContext<'a> {
    fn new(task: &'a Foreign, context: &'a TrialContext<'_>, number: usize) -> Self {
        let (step, spec) = (task.step(number), task.solver(context));
        Self { context, task, number, step, config: &context.config, spec }
    }

    /// Prepares the solver's container.
    async fn prepare(&self, sandbox: &Sandbox) -> Result<(), NoVerdict> {
        if self.number == 0 {
            let ready = self.context.condition.prepare(sandbox).await;
            ready.map_err(|error| NoVerdict::Sandbox { phase: Phase::Prepare, error })?;
            self.start_entrypoint(sandbox).await?;
        }
        let prepared = self.prepare_files(sandbox).await;
        prepared.map_err(|error| NoVerdict::Sandbox { phase: phase_before(self.number), error })
    }

    async fn prepare_files(&self, sandbox: &Sandbox) -> Result<(), SandboxError> {
        self.harness(
            "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts",
            sandbox,
        )
        .await?;
        sandbox.put_tree(self.spec.workdir, &self.step.workdir).await?;
        if self.step.workdir.get("setup.sh").is_some() {
            self.harness(&format!("cd {} && bash ./setup.sh", shell_word(self.spec.workdir)), sandbox)
                .await?;
        }
        Ok(())
    }
}

/// Runs the shells of step `number` as the user that the task declares for its solver. Each step
/// begins in a new shell.
///
/// If the first step's container does not know the user, the task is at fault. Later the solver may
/// have removed the user. A solver never runs as another user.
async fn begin_as(user: Option<&str>, number: usize, sandbox: &Sandbox) -> Result<(), NoVerdict> {
    let lost = |error| NoVerdict::Sandbox { phase: phase_before(number), error };
    if number > 0 {
        sandbox.shell("exit 0", &ExecLimit::default()).await.map_err(lost)?;
    }
    let Some(user) = user else { return Ok(()) };
    if sandbox.act_as(user).await.map_err(lost)? {
        return Ok(());
    }
    Err(no_such_user(user, number))
}

/// The phase in which a step's container is prepared. After the first step the container has the
/// solver's changes.
fn phase_before(number: usize) -> Phase {
    if number > 0 { Phase::Solve } else { Phase::Prepare }
}

/// The error that the container of step `number` does not know the user.
fn no_such_user(user: &str, number: usize) -> NoVerdict {
    let error = EngineError::NoSuchUser { user: user.to_owned() };
    match phase_before(number) {
        Phase::Prepare => error.into(),
        // The task or the solver is at fault. A control decides.
        phase => NoVerdict::Sandbox { phase, error: SandboxError::Failed { message: error.to_string() } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::{HarborTask, parse_manifest};
    use crate::model::{Assume, Blame};
    use crate::verify::target::JudgedSteps;

    #[test]
    fn a_user_who_is_missing_later_may_have_been_removed_by_the_solver() {
        let check = |number: usize, assume: Assume, blame: Option<Blame>, outcome: Option<Outcome>| {
            let missing = no_such_user("solver", number);
            assert_eq!(missing.blame(), blame, "{number}: {missing}");
            let verdict = missing.verdict(assume).ok();
            assert_eq!(verdict.map(|verdict| verdict.outcome), outcome, "{number} {assume:?}");
        };
        check(0, Assume::Nothing, Some(Blame::Task), Some(Outcome::VerifierError));
        check(1, Assume::Nothing, None, None);
        check(1, Assume::SolverAtFault, None, Some(Outcome::Fail));
        check(1, Assume::TaskAtFault, None, Some(Outcome::VerifierError));
    }

    #[test]
    fn a_task_passes_with_a_full_score_in_every_step_that_counts() {
        let full = || Some(true);
        let check = |strategy: &str, steps: &[Option<bool>], expect: Option<(Outcome, &[(&str, bool)])>| {
            let text = format!(
                "multi_step_reward_strategy = \"{strategy}\"\n[[steps]]\nname = \"a\"\n[[steps]]\nname = \"b\"\n"
            );
            let (manifest, _) = parse_manifest(&text).unwrap();
            let (name, files) = ("task".to_owned(), FileTree::default());
            let task = Foreign::new(&HarborTask { name, manifest, files, findings: Vec::new() }).unwrap();
            let mut judged = JudgedSteps::default();
            for (step, passed) in ["a", "b"].into_iter().zip(steps) {
                let verdict = match passed {
                    Some(passed) => {
                        let outcome = if *passed { Outcome::Pass } else { Outcome::Fail };
                        let id = CheckId::reward().in_step(step);
                        let checks = vec![CheckResult { id, passed: *passed }];
                        Ok(Verdict { outcome, cause: String::new(), checks })
                    }
                    None => Err(NoVerdict::NoResults { cause: "none".to_owned() }),
                };
                judged.add(Judged::of(verdict));
            }
            let found = judged.verdict(&task, Assume::Nothing).ok();
            let expect = expect.map(|(outcome, checks)| {
                let checks = checks.iter().map(|(step, passed)| CheckResult {
                    id: CheckId::reward().in_step(step),
                    passed: *passed,
                });
                Verdict { outcome, cause: String::new(), checks: checks.collect() }
            });
            assert_eq!(found, expect, "{strategy} {steps:?}");
        };
        let passed = Some((Outcome::Pass, [("a", true), ("b", true)].as_slice()));
        check("mean", &[full(), full()], passed);
        check("mean", &[Some(false), full()], Some((Outcome::Fail, &[("a", false), ("b", true)])));
        check("mean", &[None, full()], None);
        check("final", &[Some(false), full()], Some((Outcome::Pass, &[("b", true)])));
        check("final", &[None, full()], Some((Outcome::Pass, &[("b", true)])));
        check("final", &[full(), None], None);
        // The checks of a step that was not reached have failed.
        check("final", &[full()], Some((Outcome::Fail, &[("a", true), ("b", false)])));
        check("mean", &[Some(false)], Some((Outcome::Fail, &[("a", false), ("b", false)])));
    }
}
