//! Judges one step of another maker's task. The tests run in the solver's container, or in a
//! container with its artifacts. Their reports are read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::act::end_of;
use super::condition::Condition;
use super::fingerprint::{Changed, changed};
use super::foreign::{ForeignStep, Mode};
use super::host_busy::watched;
use super::in_place::StepContext;
use super::missing_runner::{MissingRunner, missing_runner};
use super::no_verdict::{NoVerdict, Phase};
use super::pauses::Pauses;
use super::reports::{ReportKind, find_report, parse_report};
use super::reward::{REWARD_JSON, REWARD_TEXT, RewardError, is_full, paid, parse_reward};
use super::room::{OUT_OF_TIME, VerifierLog};
use super::submission::CheckError;
use super::target::{Judged, Retain, TrialContext};
use crate::model::{CheckId, CheckResult, Outcome, Verdict};
use crate::sandbox::{
    ArchiveError, EngineError, GetError, LaunchSpec, Process, ProcessOutcome, Sandbox, SandboxError, Stopped,
};
use crate::syntax::shell_word;

/// Maximum size of a reward file. It holds a few numbers.
const MAX_REWARD: u64 = 64 << 10;
/// Maximum size of a report. It holds some thousand checks with their messages.
const MAX_REPORT: u64 = 4 << 20;
/// Bytes of the end of the tests' output in the log, for people.
const MAX_LOG: usize = 64 << 10;
/// Time limit of one command of the harness.
const HARNESS_TIMEOUT: Duration = Duration::from_secs(60);
/// Factor for the declared limit, so that no verdict depends on the load of this machine.
const VERIFIER_TIMEOUT_FACTOR: u32 = 5;
/// Maximum bytes of one task's artifacts.
const MAX_ARTIFACTS: u64 = 256 << 20;
const TESTS_DIR: &str = "/tests";
/// Empties the folders of tests and results. In a task of several steps, Harbor does it before and
/// after each step's tests (`_reset_shared_step_verifier_dirs`). So nobody finds the files of an
/// earlier step.
const EMPTIED: &str = "for dir in /logs/verifier /tests; do
    if [ -L $dir ] || { [ -e $dir ] && [ ! -d $dir ]; }; then rm -rf $dir; fi
    mkdir -p $dir && find $dir -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +
done
chmod 777 /logs/verifier";

/// Results of one run of the tests.
struct Reported {
    rewards: Result<BTreeMap<String, f64>, RewardError>,
    /// The checks of a report, if the tests wrote one in a known format.
    checks: Vec<CheckResult>,
    output: String,
    /// The tests ran out of time on a busy host.
    host_busy: bool,
    /// Processor time that their container used meanwhile, as far as the kernel counts it.
    processor_seconds: f64,
}

/// Report files that Harbor's tasks often write.
const REPORTS: [(&str, ReportKind); 4] = [
    ("/logs/verifier/ctrf.json", ReportKind::Ctrf),
    ("/logs/verifier/junit.xml", ReportKind::Junit),
    ("/logs/verifier/report.xml", ReportKind::Junit),
    ("/logs/verifier/results.tap", ReportKind::Tap),
];

impl StepContext<'_> {
    /// Judges the step as the task declares.
    pub(super) async fn judge(self, sandbox: Sandbox, retain: Retain) -> Judged {
        let started = Instant::now();
        let mut judged = self.judged(sandbox, retain).await.unwrap_or_else(Judged::lost);
        judged.log.seconds = started.elapsed().as_secs_f64();
        judged
    }

    async fn judged(&self, sandbox: Sandbox, retain: Retain) -> Result<Judged, NoVerdict> {
        let (mut state_image, mut left) = (None, Changed::default());
        match retain {
            Retain::Nothing => {}
            Retain::Fingerprint => left = changed(&sandbox).await?,
            Retain::StateImage => state_image = Some(sandbox.snapshot().await?),
        }
        let is_last = self.number + 1 == self.task.steps.len();
        let goes_on = |reported: &Reported| !is_last && suffices(self.step, reported);
        let (reported, next) = match &self.task.mode {
            Mode::Shared => {
                let reported = self.judge_here(&sandbox, is_last).await.map_err(while_tests_ran)?;
                let next = goes_on(&reported).then_some(sandbox);
                (reported, next)
            }
            Mode::Separate { artifacts, own_image } => {
                let stopped = sandbox.stop().await?;
                let reported = self.judge_apart(&stopped, artifacts, *own_image).await?;
                let next = if goes_on(&reported) { Some(self.started_again(stopped).await?) } else { None };
                (reported, next)
            }
        };
        if reported.host_busy {
            return Err(NoVerdict::OutOfTime { cause: OUT_OF_TIME.to_owned() });
        }
        let reward = reported.rewards.as_ref().ok().and_then(paid);
        let mut log = VerifierLog::default();
        let verdict = verdict(self.step, &reported, self.context.missing_runner, &mut log);
        log.output = reported.output;
        log.processor_seconds = reported.processor_seconds;
        let Changed { fingerprint, hashes } = left;
        Ok(Judged { verdict, hashes, fingerprint, log, reward, state_image, next })
    }

    /// Starts the solver's container again for its next step.
    async fn started_again(&self, stopped: Stopped) -> Result<Sandbox, NoVerdict> {
        match stopped.restart(self.spec.workdir).await {
            Ok(sandbox) => Ok(sandbox),
            // The solver may have replaced a folder that the engine needs. Or the engine is in
            // trouble.
            Err(error @ (EngineError::NotStarted { .. } | EngineError::Guest { .. })) => {
                let message = format!("the container cannot be started again: {error}");
                Err(NoVerdict::Sandbox { phase: Phase::Solve, error: SandboxError::Failed { message } })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Judges in the solver's container, while its processes still run.
    async fn judge_here(&self, sandbox: &Sandbox, is_last: bool) -> Result<Reported, SandboxError> {
        let is_one_of_several = self.task.steps.len() > 1;
        let cleared =
            if is_one_of_several { EMPTIED.to_owned() } else { format!("rm -f {REWARD_TEXT} {REWARD_JSON}") };
        self.harness(&cleared, sandbox).await?;
        sandbox.put_tree(TESTS_DIR, &self.step.tests).await?;
        let reported = self.run_tests(sandbox).await?;
        if !is_last {
            self.harness(EMPTIED, sandbox).await?;
        }
        sandbox.check_host_disk().await?;
        Ok(reported)
    }

    /// Judges in a new container. It has only the declared artifacts, at their original paths.
    async fn judge_apart(
        &self,
        stopped: &Stopped,
        artifacts: &[String],
        own_image: bool,
    ) -> Result<Reported, NoVerdict> {
        let TrialContext { engine, images, condition, .. } = *self.context;
        let image = images.verifier.as_ref().filter(|_| own_image).unwrap_or(&images.solver);
        let config = engine.image_config(image).await.map_err(engine_failed)?;
        // As in Harbor, the task's work directory holds for both containers.
        let workdir = self.task.workdir.as_deref().unwrap_or(&config.workdir);
        let spec = LaunchSpec { image, workdir, purpose: "verifier", layer: None, ..self.spec.clone() };
        // The tests have the variables of their own image.
        let apart = StepContext { config: &config, spec, ..self.clone() };
        let verifier = engine.launch(&apart.spec).await.map_err(engine_failed)?;
        apart.start_entrypoint(&verifier).await?;
        for artifact in artifacts {
            let archive = match stopped.archive(artifact, MAX_ARTIFACTS).await {
                Ok(archive) => archive,
                Err(ArchiveError::Engine(error)) => return Err(engine_failed(error)),
                Err(lost @ ArchiveError::AllUnreadable { .. }) => {
                    return Err(while_tests_ran(SandboxError::Failed { message: lost.to_string() }));
                }
                // The tests report a missing artifact themselves.
                Err(
                    ArchiveError::Missing { .. }
                    | ArchiveError::TooLarge { .. }
                    | ArchiveError::Unreadable { .. },
                ) => continue,
            };
            let limits = super::SubmissionLimits::default();
            let root = [(artifact.clone(), archive.tar)];
            let carried = match super::check_archives("", &root, &limits) {
                Ok(carried) => carried,
                Err(CheckError::Submission(_)) => continue,
                Err(CheckError::Host(source)) => return Err(engine_failed(EngineError::Spool { source })),
            };
            // The folder is emptied first, as Harbor does. Otherwise the image's files would hide
            // deletions.
            let place = shell_word(artifact);
            apart
                .harness(&format!("[ ! -d {place} ] || find {place} -mindepth 1 -delete"), &verifier)
                .await
                .map_err(while_tests_ran)?;
            let files = carried.files.finish();
            let files = files.map_err(|source| engine_failed(EngineError::Spool { source }))?;
            verifier.unpack(&files).await.map_err(while_tests_ran)?;
        }
        condition.prepare(&verifier).await.map_err(while_tests_ran)?;
        let logs = apart.harness("mkdir -p /logs/verifier && chmod 777 /logs/verifier", &verifier).await;
        logs.map_err(while_tests_ran)?;
        if !own_image {
            verifier.put_tree(TESTS_DIR, &self.step.tests).await.map_err(while_tests_ran)?;
        }
        let reported = apart.run_tests(&verifier).await.map_err(while_tests_ran)?;
        verifier.check_host_disk().await.map_err(while_tests_ran)?;
        Ok(reported)
    }

    async fn run_tests(&self, sandbox: &Sandbox) -> Result<Reported, SandboxError> {
        let step = self.step;
        let tests = "(/tests/test.sh) > /logs/verifier/test-stdout.txt 2>&1";
        let script = match &step.verifier_user {
            None => format!("chmod +x /tests/test.sh; {tests}"),
            Some(user) => format!(
                "chmod +x /tests/test.sh; exec su -m -s /bin/bash {} -c {}",
                shell_word(user),
                shell_word(tests)
            ),
        };
        let mut env = self.config.env.clone();
        env.extend(self.task.environment_env.iter().cloned());
        env.extend(step.verifier_env.iter().cloned());
        if self.context.condition == Condition::Shuffled {
            env.extend(shuffled(sandbox).await?);
        }
        let process = Process {
            argv: ["bash", "-c", &script].map(Into::into).to_vec(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: self.spec.workdir.to_owned(),
            stdin: Vec::new(),
            timeout: step.verifier_timeout * VERIFIER_TIMEOUT_FACTOR,
            max_output: MAX_LOG,
        };
        let before = reports(sandbox).await?;
        let before: Vec<_> = before.iter().map(|report| report.as_deref().map(blake3::hash)).collect();
        let pauses = Pauses::watch(&[sandbox]);
        let began = sandbox.processor_time().await;
        let (done, looks) = watched(self.context.engine, &[sandbox], sandbox.spawn(&process)).await;
        let done = done?;
        let used = sandbox.processor_time().await.zip(began).map(|(now, then)| now.saturating_sub(then));
        let processor_seconds = used.unwrap_or_default().as_secs_f64();
        // Bash's own messages come first, e.g. that there is no such user.
        let said = [done.stdout.as_slice(), done.stderr.as_slice()].map(String::from_utf8_lossy).concat();
        let printed = end_of("/logs/verifier/test-stdout.txt", MAX_LOG, sandbox).await?;
        let output = format!("{said}{printed}");
        if done.outcome == ProcessOutcome::TimedOut {
            pauses.check()?;
            let output = format!("{output}\nthe tests ran out of time\n");
            let (rewards, host_busy) = (Err(RewardError::Missing), looks.host_busy());
            return Ok(Reported { rewards, checks: Vec::new(), output, host_busy, processor_seconds });
        }
        let json = file(sandbox, REWARD_JSON, MAX_REWARD).await?;
        let text = file(sandbox, REWARD_TEXT, MAX_REWARD).await?;
        let rewards = parse_reward(json.as_deref(), text.as_deref());
        if !rewards.as_ref().is_ok_and(is_full) {
            pauses.check()?;
        }
        let mut checks = written(&before, &reports(sandbox).await?);
        if checks.is_empty() {
            checks = find_report(&printed).map(|(_, found)| found).unwrap_or_default();
        }
        Ok(Reported { rewards, checks, output, host_busy: false, processor_seconds })
    }

    /// Runs a command of the harness, outside the solver's shell.
    pub(super) async fn harness(&self, script: &str, sandbox: &Sandbox) -> Result<(), SandboxError> {
        let env = self.config.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let process = Process {
            argv: ["bash", "-c", script].map(Into::into).to_vec(),
            env,
            cwd: "/".to_owned(),
            stdin: Vec::new(),
            timeout: HARNESS_TIMEOUT,
            max_output: MAX_LOG,
        };
        // Harbor ignores failures of these commands, since a solver can make each of them fail.
        sandbox.spawn(&process).await.map(drop)
    }
}

fn while_tests_ran(error: SandboxError) -> NoVerdict {
    NoVerdict::Sandbox { phase: Phase::Verify, error }
}

fn engine_failed(error: EngineError) -> NoVerdict {
    while_tests_ran(error.into())
}

/// A file of the container. `None` if it is missing.
async fn file(sandbox: &Sandbox, path: &str, most: u64) -> Result<Option<Vec<u8>>, SandboxError> {
    match sandbox.get(path, most).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(GetError::Sandbox(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The files at the paths of [`REPORTS`].
async fn reports(sandbox: &Sandbox) -> Result<Vec<Option<Vec<u8>>>, SandboxError> {
    let mut found = Vec::with_capacity(REPORTS.len());
    for (path, _) in REPORTS {
        found.push(file(sandbox, path, MAX_REPORT).await?);
    }
    Ok(found)
}

/// The checks of the first report that the tests wrote. A file that is in `after` as it was in
/// `before` is not theirs. It was not removed earlier, because in Harbor a test script finds the
/// solver's files there too.
fn written(before: &[Option<blake3::Hash>], after: &[Option<Vec<u8>>]) -> Vec<CheckResult> {
    let all = REPORTS.iter().zip(before).zip(after);
    let mut found = all.filter_map(|(((_, kind), before), after)| {
        let after = after.as_deref().filter(|after| *before != Some(blake3::hash(after)))?;
        parse_report(*kind, std::str::from_utf8(after).ok()?).ok()
    });
    found.next().unwrap_or_default()
}

/// Makes pytest run its tests in another order. A plugin on its path does that.
async fn shuffled(sandbox: &Sandbox) -> Result<Vec<(String, String)>, SandboxError> {
    const FOLDER: &str = "/run/order";
    const PLUGIN: &str =
        "import random\n\n\ndef pytest_collection_modifyitems(items):\n    random.Random(1).shuffle(items)\n";
    sandbox.put(&format!("{FOLDER}/termsmith_order.py"), PLUGIN.as_bytes(), 0o644).await?;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Ok(vec![pair("PYTHONPATH", FOLDER), pair("PYTEST_ADDOPTS", "-p termsmith_order")])
}

/// The verdict on one step. A pass needs a full score. The checks are those of the report, or else
/// the reward itself.
fn verdict(
    step: &ForeignStep,
    reported: &Reported,
    missing: MissingRunner,
    log: &mut VerifierLog,
) -> Result<Verdict, NoVerdict> {
    let rewards =
        reported.rewards.as_ref().map_err(|error| NoVerdict::NoResults { cause: error.to_string() })?;
    let is_full = is_full(rewards);
    let could_not_run = (missing == MissingRunner::AsksControl && !is_full)
        .then(|| missing_runner(&reported.output))
        .flatten();
    if let Some(line) = could_not_run {
        return Err(NoVerdict::NoRunner { line: line.to_owned() });
    }
    let named = |check: &CheckId| check.in_step(&step.name);
    // Someone else may have written a report while the tests ran. So the reward file alone decides
    // the check named `reward`.
    let (others, own): (Vec<_>, Vec<_>) =
        reported.checks.iter().partition(|check| check.id != CheckId::reward());
    // If everything in the report passed, it does not explain the missing reward.
    let is_contradicted = !is_full && others.iter().all(|check| check.passed);
    let mut checks = Vec::new();
    if is_contradicted || others.is_empty() || !own.is_empty() {
        checks.push(CheckResult { id: named(&CheckId::reward()), passed: is_full });
    }
    if !is_contradicted {
        checks.extend(others.iter().map(|check| CheckResult { id: named(&check.id), passed: check.passed }));
    }
    if !is_full {
        let listed: Vec<_> = rewards.iter().map(|(name, value)| format!("{name} is {value}")).collect();
        log.messages.insert(named(&CheckId::reward()), listed.join(", "));
    }
    let outcome = if is_full { Outcome::Pass } else { Outcome::Fail };
    Ok(Verdict { outcome, cause: String::new(), checks })
}

/// Whether a step's rewards allow the next step. A missing reward is below every minimum (Harbor's
/// `_min_reward_failure`).
fn suffices(step: &ForeignStep, reported: &Reported) -> bool {
    let reward = |name: &str| reported.rewards.as_ref().ok().and_then(|rewards| rewards.get(name).copied());
    step.min_reward.iter().all(|(name, least)| reward(name).is_some_and(|reward| reward >= *least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::{HarborTask, Manifest};
    use crate::model::FileTree;
    use crate::verify::Foreign;

    fn task() -> Foreign {
        let directory = HarborTask {
            name: "a".to_owned(),
            manifest: Manifest::default(),
            files: FileTree::default(),
            findings: Vec::new(),
        };
        Foreign::new(&directory).unwrap()
    }

    #[test]
    fn checks_that_contradict_the_reward_are_dropped() {
        let check = |reward: f64, reported: &[(&str, bool)], expect: &[(&str, bool)]| {
            let checks = reported
                .iter()
                .map(|(id, passed)| CheckResult { id: CheckId::parse(*id).unwrap(), passed: *passed });
            let reported = Reported {
                rewards: Ok(BTreeMap::from([("reward".to_owned(), reward)])),
                checks: checks.collect(),
                output: String::new(),
                host_busy: false,
                processor_seconds: 0.0,
            };
            let (missing, mut log) = (MissingRunner::AsksControl, VerifierLog::default());
            let task = task();
            let verdict = verdict(task.step(0), &reported, missing, &mut log).unwrap();
            let found: Vec<_> =
                verdict.checks.iter().map(|check| (check.id.as_str(), check.passed)).collect();
            assert_eq!(found, expect, "{reward}");
            assert_eq!(verdict.passed(), reward >= 1.0);
        };
        check(1.0, &[("a", true), ("b", true)], &[("a", true), ("b", true)]);
        check(1.0, &[("a", true), ("b", false)], &[("a", true), ("b", false)]);
        check(0.0, &[("a", true), ("b", false)], &[("a", true), ("b", false)]);
        // A report as a solver would plant it.
        check(0.0, &[("a", true), ("b", true)], &[("reward", false)]);
        check(0.5, &[("a", true)], &[("reward", false)]);
        check(0.0, &[("reward", true), ("b", false)], &[("reward", false), ("b", false)]);
        check(1.0, &[("reward", false), ("b", true)], &[("reward", true), ("b", true)]);
        check(0.0, &[], &[("reward", false)]);
        check(1.0, &[], &[("reward", true)]);
    }

    #[test]
    fn tests_without_their_runner_ask_a_control_unless_they_pass() {
        let check = |reward: f64, output: &str, missing: MissingRunner, expect: Option<Outcome>| {
            let reported = Reported {
                rewards: Ok(BTreeMap::from([("reward".to_owned(), reward)])),
                checks: Vec::new(),
                output: output.to_owned(),
                host_busy: false,
                processor_seconds: 0.0,
            };
            let found = verdict(task().step(0), &reported, missing, &mut VerifierLog::default());
            match &found {
                Ok(verdict) => assert_eq!(Some(verdict.outcome), expect, "{output}"),
                Err(error) => {
                    assert!(matches!(error, NoVerdict::NoRunner { .. }) && expect.is_none(), "{error}");
                }
            }
        };
        let (asks, ignored) = (MissingRunner::AsksControl, MissingRunner::Ignored);
        let says = "/tests/test.sh: line 4: uvx: command not found\n";
        check(0.0, says, asks, None);
        check(0.0, says, ignored, Some(Outcome::Fail));
        check(1.0, says, asks, Some(Outcome::Pass));
        check(0.0, "1 failed\n", asks, Some(Outcome::Fail));
    }

    #[test]
    fn only_reports_that_the_tests_wrote_are_read() {
        let ctrf = |status: &str| {
            format!("{{\"results\": {{\"tests\": [{{\"name\": \"a\", \"status\": \"{status}\"}}]}}}}")
        };
        let tap = "ok 1 - b\n";
        let check = |before: [Option<&str>; 4], after: [Option<&str>; 4], expect: &[(&str, bool)]| {
            let before = before.map(|text| text.map(|text| blake3::hash(text.as_bytes())));
            let after = after.map(|text| text.map(|text| text.as_bytes().to_vec()));
            let checks = written(&before, &after);
            let found: Vec<_> = checks.iter().map(|check| (check.id.as_str(), check.passed)).collect();
            assert_eq!(found, expect, "{after:?}");
        };
        let (passed, failed) = (ctrf("passed"), ctrf("failed"));
        check([None; 4], [Some(&failed), None, None, Some(tap)], &[("a", false)]);
        // The report is the solver's, or an earlier step's.
        check([Some(&passed), None, None, None], [Some(&passed), None, None, None], &[]);
        check([Some(&passed), None, None, None], [Some(&passed), None, None, Some(tap)], &[("b", true)]);
        check([Some(&passed), None, None, None], [Some(&failed), None, None, None], &[("a", false)]);
        check([Some(tap), None, None, None], [None; 4], &[]);
    }

    #[test]
    fn folders_of_an_earlier_step_are_emptied_whatever_lies_there() {
        let check = |lay: &dyn Fn(&std::path::Path)| {
            let dir = tempfile::tempdir().unwrap();
            lay(dir.path());
            let place = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
            let script = EMPTIED
                .replace("/logs/verifier", &place("verifier"))
                .replace(" /tests", &format!(" {}", place("tests")));
            assert!(std::process::Command::new("bash").args(["-c", &script]).status().unwrap().success());
            for name in ["verifier", "tests"] {
                assert!(dir.path().join(name).symlink_metadata().unwrap().is_dir(), "{name}");
                assert_eq!(std::fs::read_dir(place(name)).unwrap().count(), 0, "{name}");
            }
        };
        check(&|_| {});
        check(&|dir| {
            std::fs::create_dir_all(dir.join("verifier/ctrf.json")).unwrap();
            std::fs::create_dir_all(dir.join("tests")).unwrap();
            std::fs::write(dir.join("tests/.hidden"), "x").unwrap();
        });
        check(&|dir| {
            std::fs::write(dir.join("verifier"), "x").unwrap();
            std::os::unix::fs::symlink("/nonexistent", dir.join("tests")).unwrap();
        });
    }
}
