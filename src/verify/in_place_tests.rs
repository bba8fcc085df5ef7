//! Runs the tests of a foreign task's step, in the solver's container or in one with its artifacts, and reads what they report.

use std::collections::BTreeMap;
use std::time::Duration;

use super::act::quoted;
use super::condition::Condition;
use super::foreign::{Foreign, ForeignStep, Mode, Strategy};
use super::in_place::TrialContext;
use super::no_verdict::{NoVerdict, Phase};
use super::reports::{ReportKind, find_report, parse_report};
use super::reward::{REWARD_JSON, REWARD_TEXT, RewardError, is_full, parse_reward};
use super::room::VerifierLog;
use super::subject::CheckError;
use crate::model::{CheckId, CheckResult, Outcome, Verdict};
use crate::sandbox::{
    ArchiveError, EngineError, GetError, LaunchSpec, Process, ProcessOutcome, Sandbox, SandboxError, Stopped,
};

/// Maximum size of a reward file: it holds a few numbers.
const MAX_REWARD: u64 = 64 << 10;
/// Maximum size of a report: some thousand checks with their messages.
const MAX_REPORT: u64 = 4 << 20;
/// Bytes of the end of the tests' output that are kept, for people.
const MAX_LOG: usize = 64 << 10;
/// Maximum size of an output whose end is read: package managers and tracebacks write some megabytes.
const MAX_OUTPUT: u64 = 16 << 20;
/// Time limit of a command of the harness itself.
const HARNESS_TIMEOUT: Duration = Duration::from_secs(60);
/// As in the clean room, a verdict must not depend on the load of this machine.
const VERIFIER_TIMEOUT_FACTOR: u32 = 5;
/// Maximum size of one task's artifacts, in bytes.
const MAX_ARTIFACTS: u64 = 256 << 20;
const TESTS_DIR: &str = "/tests";

/// Results of one run of the tests.
pub(super) struct Reported {
    pub(super) rewards: Result<BTreeMap<String, f64>, RewardError>,
    /// Checks from a report, if the tests write a known format.
    pub(super) checks: Vec<CheckResult>,
    pub(super) output: String,
}

/// Report files commonly written by Harbor tasks.
const REPORTS: [(&str, ReportKind); 4] = [
    ("/logs/verifier/ctrf.json", ReportKind::Ctrf),
    ("/logs/verifier/junit.xml", ReportKind::Junit),
    ("/logs/verifier/report.xml", ReportKind::Junit),
    ("/logs/verifier/results.tap", ReportKind::Tap),
];

impl TrialContext<'_> {
    /// Judges step `number` as the task declares. The container is given back if a step follows.
    pub(super) async fn judge(
        &self,
        step: &ForeignStep,
        number: usize,
        sandbox: Sandbox,
    ) -> Result<(Reported, Option<Sandbox>), NoVerdict> {
        let goes_on = number + 1 < self.task.steps.len();
        let (judged, sandbox) = match &self.task.mode {
            Mode::Shared => (self.judge_here(step, &sandbox).await, Some(sandbox)),
            Mode::Separate { artifacts, own_image } => {
                let stopped = sandbox.stop().await?;
                let judged = self.judge_apart(step, &stopped, artifacts, *own_image).await;
                (judged, if goes_on { Some(self.started_again(stopped).await?) } else { None })
            }
        };
        let reported = judged.map_err(|error| NoVerdict::Sandbox { phase: Phase::Verify, error })?;
        Ok((reported, sandbox.filter(|_| goes_on)))
    }

    /// The solver's container for its next step.
    async fn started_again(&self, stopped: Stopped) -> Result<Sandbox, NoVerdict> {
        match stopped.restart(self.spec.workdir).await {
            Ok(sandbox) => Ok(sandbox),
            // What the solver put in the place of folders that the engine needs can cause this, and so can an engine in trouble.
            Err(error @ (EngineError::NotStarted { .. } | EngineError::Guest { .. })) => {
                let message = format!("the container cannot be started again: {error}");
                Err(NoVerdict::Sandbox { phase: Phase::Solve, error: SandboxError::Failed { message } })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Judges in the solver's container, with its processes still running.
    async fn judge_here(&self, step: &ForeignStep, sandbox: &Sandbox) -> Result<Reported, SandboxError> {
        self.harness(&format!("rm -f {REWARD_TEXT} {REWARD_JSON}"), sandbox).await?;
        sandbox.put_tree(TESTS_DIR, &step.tests).await?;
        let reported = self.run_tests(step, self.spec.workdir, sandbox).await?;
        sandbox.check_host_disk().await?;
        Ok(reported)
    }

    /// Judges in a new container with only the declared artifacts, at their original paths.
    async fn judge_apart(
        &self,
        step: &ForeignStep,
        stopped: &Stopped,
        artifacts: &[String],
        own_image: bool,
    ) -> Result<Reported, SandboxError> {
        let image = self.images.verifier.as_ref().filter(|_| own_image).unwrap_or(&self.images.solver);
        let config = self.engine.image_config(image).await?;
        let spec = LaunchSpec { image, workdir: &config.workdir, purpose: "verifier", ..self.spec.clone() };
        let verifier = self.engine.launch(&spec).await?;
        // The tests have the variables of their own image.
        let apart = TrialContext { config: &config, spec: &spec, ..*self };
        for artifact in artifacts {
            let archive = match stopped.archive(artifact, MAX_ARTIFACTS).await {
                Ok(archive) => archive,
                Err(ArchiveError::Engine(error)) => return Err(error.into()),
                Err(lost @ ArchiveError::AllUnreadable { .. }) => {
                    return Err(SandboxError::Failed { message: lost.to_string() });
                }
                // A missing artifact is left to the tests to report.
                Err(
                    ArchiveError::Missing { .. }
                    | ArchiveError::TooLarge { .. }
                    | ArchiveError::Unreadable { .. },
                ) => continue,
            };
            let limits = super::SubjectLimits::default();
            let root = [(artifact.clone(), archive.tar)];
            let carried = match super::check_archives("", &root, &limits) {
                Ok(carried) => carried,
                Err(CheckError::Subject(_)) => continue,
                Err(CheckError::Host(source)) => return Err(EngineError::Spool { source }.into()),
            };
            // As Harbor does it: what the image has in the folder would hide deletions.
            let place = quoted(artifact);
            apart
                .harness(&format!("[ ! -d {place} ] || find {place} -mindepth 1 -delete"), &verifier)
                .await?;
            let files = carried.files.finish().map_err(|source| EngineError::Spool { source })?;
            verifier.unpack(&files).await?;
        }
        self.condition.prepare(&verifier).await?;
        apart.harness("mkdir -p /logs/verifier && chmod 777 /logs/verifier", &verifier).await?;
        if !own_image {
            verifier.put_tree(TESTS_DIR, &step.tests).await?;
        }
        let reported = apart.run_tests(step, &config.workdir, &verifier).await?;
        verifier.check_host_disk().await?;
        Ok(reported)
    }

    async fn run_tests(
        &self,
        step: &ForeignStep,
        workdir: &str,
        sandbox: &Sandbox,
    ) -> Result<Reported, SandboxError> {
        let tests = "(/tests/test.sh) > /logs/verifier/test-stdout.txt 2>&1";
        let script = match &step.verifier_user {
            None => format!("chmod +x /tests/test.sh; {tests}"),
            Some(user) => format!(
                "chmod +x /tests/test.sh; exec su -m -s /bin/bash {} -c {}",
                quoted(user),
                quoted(tests)
            ),
        };
        let mut env = self.config.env.clone();
        env.extend(self.task.environment_env.iter().cloned());
        env.extend(step.verifier_env.iter().cloned());
        if self.condition == Condition::Shuffled {
            env.extend(shuffled(sandbox).await?);
        }
        let process = Process {
            argv: ["bash", "-c", &script].map(Into::into).to_vec(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: workdir.to_owned(),
            stdin: Vec::new(),
            timeout: step.verifier_timeout * VERIFIER_TIMEOUT_FACTOR,
            keep: MAX_LOG,
        };
        let done = sandbox.spawn(&process).await?;
        let output = match sandbox.get("/logs/verifier/test-stdout.txt", MAX_OUTPUT).await {
            Ok(text) => String::from_utf8_lossy(end(&text)).into_owned(),
            Err(GetError::Sandbox(error)) => return Err(error),
            Err(_) => String::new(),
        };
        if done.outcome == ProcessOutcome::TimedOut {
            let output = format!("{output}\nthe tests ran out of time\n");
            return Ok(Reported { rewards: Err(RewardError::Missing), checks: Vec::new(), output });
        }
        let file = async |path, most| match sandbox.get(path, most).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(GetError::Sandbox(error)) => Err(error),
            Err(_) => Ok(None),
        };
        let (json, text) = (file(REWARD_JSON, MAX_REWARD).await?, file(REWARD_TEXT, MAX_REWARD).await?);
        let rewards = parse_reward(json.as_deref(), text.as_deref());
        let mut checks = Vec::new();
        for (path, kind) in REPORTS {
            if let Some(report) =
                file(path, MAX_REPORT).await?.and_then(|bytes| String::from_utf8(bytes).ok())
                && let Ok(found) = parse_report(kind, &report)
            {
                checks = found;
                break;
            }
        }
        if checks.is_empty() {
            checks = find_report(&output).map(|(_, found)| found).unwrap_or_default();
        }
        Ok(Reported { rewards, checks, output })
    }

    /// A command of the harness itself, outside the solver's shell.
    pub(super) async fn harness(&self, script: &str, sandbox: &Sandbox) -> Result<(), SandboxError> {
        let env = self.config.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let process = Process {
            argv: ["bash", "-c", script].map(Into::into).to_vec(),
            env,
            cwd: "/".to_owned(),
            stdin: Vec::new(),
            timeout: HARNESS_TIMEOUT,
            keep: MAX_LOG,
        };
        // Harbor ignores failures of these commands: a solver can make each of them fail.
        sandbox.spawn(&process).await.map(drop)
    }
}

/// The last [`MAX_LOG`] bytes.
fn end(output: &[u8]) -> &[u8] {
    &output[output.len().saturating_sub(MAX_LOG)..]
}

/// Makes pytest run its tests in another order, by a plugin on its path.
async fn shuffled(sandbox: &Sandbox) -> Result<Vec<(String, String)>, SandboxError> {
    const FOLDER: &str = "/run/order";
    const PLUGIN: &str =
        "import random\n\n\ndef pytest_collection_modifyitems(items):\n    random.Random(1).shuffle(items)\n";
    sandbox.put(&format!("{FOLDER}/termsmith_order.py"), PLUGIN.as_bytes(), 0o644).await?;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Ok(vec![pair("PYTHONPATH", FOLDER), pair("PYTEST_ADDOPTS", "-p termsmith_order")])
}

/// The verdict of a whole trial: a pass requires a full score. Checks are those of the reports, or the rewards themselves.
pub(super) fn combine(
    task: &Foreign,
    steps: &[Reported],
    log: &mut VerifierLog,
) -> Result<Verdict, RewardError> {
    let from = match task.strategy {
        Strategy::Final if steps.len() == task.steps.len() => steps.len().saturating_sub(1),
        Strategy::Final | Strategy::Mean => 0,
    };
    // Steps that were not reached have not passed.
    let mut full = steps.len() == task.steps.len();
    let mut checks = Vec::new();
    for (step, reported) in task.steps.iter().zip(steps).skip(from) {
        let rewards = match &reported.rewards {
            Ok(rewards) => rewards,
            Err(error) => return Err(error.clone()),
        };
        full &= is_full(rewards);
        let named = |check: &CheckId| check.in_step(&step.name);
        checks.extend(reported.checks.iter().map(|check| CheckResult { id: named(&check.id), ..*check }));
        if reported.checks.is_empty() {
            checks.push(CheckResult { id: named(&CheckId::reward()), passed: is_full(rewards) });
        }
        if !is_full(rewards) {
            let told: Vec<_> = rewards.iter().map(|(name, value)| format!("{name} is {value}")).collect();
            log.messages.insert(named(&CheckId::reward()), told.join(", "));
        }
    }
    for step in task.steps.iter().skip(steps.len()) {
        checks.push(CheckResult { id: CheckId::reward().in_step(&step.name), passed: false });
    }
    let outcome = if full { Outcome::Pass } else { Outcome::Fail };
    Ok(Verdict { outcome, cause: String::new(), checks })
}

/// Whether a step's rewards allow the next step. A missing reward is below every threshold (Harbor's `_min_reward_failure`).
pub(super) fn suffices(step: &ForeignStep, reported: &Reported) -> bool {
    let reward = |name: &str| reported.rewards.as_ref().ok().and_then(|rewards| rewards.get(name).copied());
    step.min_reward.iter().all(|(name, least)| reward(name).is_some_and(|reward| reward >= *least))
}
