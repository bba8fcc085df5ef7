//! One run of a task's tests. The tests and the submission's files are in a pristine container, and
//! the solver's programs in another one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::host_busy::{Observed, PATIENCE, watched};
use super::no_verdict::{NoVerdict, Phase, despite_load};
use super::own_place::own_places;
use super::pauses::Pauses;
use super::relay::{self, Leftovers, Serving};
use super::results::{Reported, parse_results};
use super::submission::Packing;
use super::target::TrialContext;
use crate::model::{Assume, Blame, CheckId, Limits, Outcome, Task, Verdict};
use crate::sandbox::{
    EngineError, GetError, Image, LaunchSpec, Network, Process, ProcessOutcome, Sandbox, SandboxError,
    Spooled,
};

/// The folder in the verifier's container that gets the submission's files. Tests know it by a name
/// that no solver knows.
pub(super) const RECEIVED: &str = "subject";
const RESULTS: &str = "/logs/verifier/checks.json";
/// Maximum size of the results. Each check has an id, a flag and a bounded message.
pub(super) const MAX_RESULTS: u64 = 1 << 20;
/// Maximum bytes of pytest's output in the log. People read it, and the verdict does not depend on
/// it.
const MAX_LOG: usize = 64 << 10;
/// An order of checks other than the declared one. It shows whether checks depend on each other. It
/// is fixed, so that a trial can be repeated.
const SHUFFLE_SEED: &str = "1";

/// Why a trial has no verdict if a program met its limit on a busy host.
const HOST_BUSY: &str = "the host was too busy to run the solver's programs";
/// The cause of a verdict if the tests together met their limit.
pub(super) const OUT_OF_TIME: &str = "verification timed out";

/// Observations of a verification. They are written to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifierLog {
    /// Messages of failed checks.
    pub messages: BTreeMap<CheckId, String>,
    /// Output of the test runner.
    pub output: String,
    /// Entries of the submission that were dropped, with the reason.
    pub dropped: Vec<String>,
    pub seconds: f64,
    /// Processor time of the containers of tests and programs, as far as the kernel counts it.
    #[serde(default)]
    pub processor_seconds: f64,
}

impl VerifierLog {
    /// Adds the log of a later step.
    pub(super) fn add(&mut self, later: Self) {
        self.messages.extend(later.messages);
        self.output.push_str(&later.output);
        self.dropped.extend(later.dropped);
        self.seconds += later.seconds;
        self.processor_seconds += later.processor_seconds;
    }
}

/// Everything that one run of the tests needs.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    pub(super) context: &'a TrialContext<'a>,
    pub(super) task: &'a Task,
    /// The submission's roots, below `/subject`.
    pub(super) files: &'a Spooled,
    /// Limits of a container that holds the roots.
    pub(super) limits: &'a Limits,
}

/// The result of one run.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) ran: Result<Verdict, NoVerdict>,
    pub(super) log: VerifierLog,
}

impl Room<'_> {
    /// Runs the tests. `programs` is the container of the solver's programs, if the tests run any.
    /// It is destroyed afterwards.
    pub(super) async fn verify(&self, programs: Option<Sandbox>) -> Verified {
        let verifier = match self.furnish(programs.as_ref()).await {
            Ok(verifier) => verifier,
            Err(lost) => return Verified { ran: Err(lost), log: VerifierLog::default() },
        };
        let mut log = VerifierLog::default();
        let mut observed = Observed::default();
        let leftovers = match self.task.submission.bring_up {
            Some(_) => Leftovers::Kept,
            None => Leftovers::Killed,
        };
        let TrialContext { engine, assume, .. } = *self.context;
        let patience = patience(assume);
        let serving = Serving { engine, cpus: self.limits.cpus, patience, assume, leftovers };
        let running = async {
            match &programs {
                None => self.run_checks(&verifier, patience, &mut log).await,
                Some(programs) => match verifier.serve_relay(relay::SOCKET).await {
                    Err(error) => Err(NoVerdict::Sandbox { phase: Phase::Verify, error }),
                    Ok(calls) => tokio::select! {
                        ran = self.run_checks(&verifier, patience, &mut log) => ran,
                        error = relay::serve(calls, programs, serving, &mut observed) => {
                            Err(NoVerdict::Sandbox { phase: Phase::Programs, error })
                        }
                    },
                },
            }
        };
        let own: Vec<_> = [Some(&verifier), programs.as_ref()].into_iter().flatten().collect();
        let pauses = Pauses::watch(&own);
        let (ran, looks) = watched(engine, &own, Box::pin(running)).await;
        if ran.is_ok() {
            for sandbox in &own {
                log.processor_seconds += sandbox.processor_time().await.unwrap_or_default().as_secs_f64();
            }
        }
        let ran = match ran {
            Ok(verdict) if !verdict.passed() => match pauses.check() {
                Ok(()) => Ok(verdict),
                Err(error) => Err(NoVerdict::Sandbox { phase: Phase::Verify, error }),
            },
            ran => ran,
        };
        let ran = match ran {
            Ok(verdict) if verdict.checks.is_empty() && looks.host_busy() => {
                despite_load(verdict, assume, OUT_OF_TIME)
            }
            ran => ran,
        };
        let ran = match ran {
            Ok(verdict) if observed.host_busy && !verdict.passed() => {
                despite_load(verdict, assume, HOST_BUSY)
            }
            ran => ran,
        };
        let ran = match ran {
            Ok(verdict) if !verdict.passed() => match verifier.check_host_disk().await {
                Ok(()) => Ok(verdict),
                // If the solver's programs held much of the full disk, the verdict stands.
                Err(_) if held_the_disk(programs.as_ref()).await => Ok(verdict),
                Err(error) => Err(NoVerdict::Sandbox { phase: Phase::Verify, error }),
            },
            ran => ran,
        };
        verifier.destroy().await;
        let ran = match (ran, programs) {
            (Ok(verdict), Some(programs)) if !verdict.passed() => {
                // If the solver's container is lost, clients of its services see a refused
                // connection. That must not count as the solver's failure.
                let lives = alive(&programs, assume).await;
                lives.map(|()| verdict).map_err(|error| NoVerdict::Sandbox { phase: Phase::Programs, error })
            }
            (ran, _) => ran,
        };
        Verified { ran, log }
    }

    /// Starts the verifier's container, with the submission and the tests in it.
    async fn furnish(&self, programs: Option<&Sandbox>) -> Result<Sandbox, NoVerdict> {
        let network = match programs {
            // Services need a network between the containers. Programs need none.
            Some(sandbox) if self.task.submission.bring_up.is_some() => Network::Of(sandbox.id().clone()),
            _ => Network::None,
        };
        let mut tests = Packing::new();
        let shipped = self.task.tests.iter();
        let shipped =
            shipped.map(|(path, file)| (format!("tests/{path}"), file.mode(), file.bytes.as_slice()));
        let tests = add_files(&mut tests, shipped).and_then(|()| tests.finish()).map_err(host_failed)?;
        let TrialContext { engine, images, condition, .. } = *self.context;
        let spec = LaunchSpec { limits: self.limits, ..pristine(&images.solver, self.task, network) };
        let furnished = async {
            let verifier = engine.launch(&spec).await?;
            for archive in [self.files, &tests] {
                verifier.unpack(archive).await?;
            }
            condition.prepare(&verifier).await?;
            Ok(verifier)
        };
        // The submission is unpacked there. So a verifier that cannot be prepared is a loss without
        // evidence.
        furnished.await.map_err(|error| NoVerdict::Sandbox { phase: Phase::Verify, error })
    }

    async fn run_checks(
        &self,
        verifier: &Sandbox,
        patience: u32,
        log: &mut VerifierLog,
    ) -> Result<Verdict, NoVerdict> {
        let (task, condition) = (self.task, self.context.condition);
        let lost = |error| NoVerdict::Sandbox { phase: Phase::Verify, error };
        let env = [
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME", "/root".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("SUBJECT_RECEIVED", format!("/{RECEIVED}")),
            ("SUBJECT_ROOTS", own_places(&task.submission.roots).join(":")),
            ("SUBJECT_WORKDIR", task.submission.workdir().to_owned()),
        ];
        let relay = task.submission.programs.then(|| ("TERMSMITH_RELAY", relay::SOCKET.to_owned()));
        let shuffle =
            (condition == Condition::Shuffled).then(|| ("TERMSMITH_SHUFFLE", SHUFFLE_SEED.to_owned()));
        let patient = (patience > 1).then(|| ("TERMSMITH_PATIENCE", patience.to_string()));
        let first = match condition {
            Condition::FirstFailure { likely, .. } => {
                let likely: Vec<_> = likely.iter().map(CheckId::as_str).collect();
                Some(("TERMSMITH_FIRST_FAILURE", likely.join("\n")))
            }
            _ => None,
        };
        let process = Process {
            argv: ["/usr/bin/python3", "-I", "-S", "-B", "/tests/run_checks.py"].map(Into::into).to_vec(),
            env: env
                .into_iter()
                .chain(relay)
                .chain(shuffle)
                .chain(patient)
                .chain(first)
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: "/".to_owned(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(task.limits.verifier_timeout_sec.into()) * patience,
            max_output: MAX_LOG,
        };
        let done = verifier.spawn(&process).await.map_err(lost)?;
        log.output =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        if done.outcome == ProcessOutcome::TimedOut {
            // The tests wait for nothing but the solver's files and programs, so the solver caused
            // the timeout.
            return Ok(Verdict::without_checks(Outcome::Fail, OUT_OF_TIME));
        }
        // A program that kills the test runner may have written results in its place.
        if done.outcome != ProcessOutcome::Exited(0) {
            let cause = format!("the test runner ended ({:?}) without results", done.outcome);
            return Err(NoVerdict::NoResults { cause });
        }
        match verifier.get(RESULTS, MAX_RESULTS).await {
            Ok(text) => {
                let extent = match condition {
                    Condition::FirstFailure { .. } => Reported::UntilOneFails,
                    Condition::Ordinary
                    | Condition::Shuffled
                    | Condition::Offline
                    | Condition::HalfCpu
                    | Condition::Clock
                    | Condition::Rebuilt => Reported::All,
                };
                let (checks, messages) = parse_results(&text, &task.checks, extent)
                    .map_err(|error| NoVerdict::NoResults { cause: error.to_string() })?;
                log.messages = messages;
                Ok(Verdict::from_checks(checks))
            }
            Err(GetError::Sandbox(error)) => Err(lost(error)),
            Err(GetError::Missing { .. } | GetError::NotRegular { .. } | GetError::TooLarge { .. }) => {
                Err(NoVerdict::NoResults { cause: "the test runner left no results".to_owned() })
            }
        }
    }
}

/// Factor for all time limits. A retry after a timeout on a busy host gets [`PATIENCE`] times the
/// limit, since the control may have had less to do. Only a second timeout is the solver's fault.
fn patience(assume: Assume) -> u32 {
    match assume {
        Assume::SolverAtFault => PATIENCE,
        Assume::TaskAtFault | Assume::Nothing => 1,
    }
}

/// Whether the solver's programs held much of the host's disk while it was full.
async fn held_the_disk(programs: Option<&Sandbox>) -> bool {
    match programs {
        Some(programs) => programs.check_host_disk().await.is_ok(),
        None => false,
    }
}

/// An error if `programs` was lost or could not write. No error if the solver is known to be at
/// fault.
async fn alive(programs: &Sandbox, assume: Assume) -> Result<(), SandboxError> {
    /// A request that every running guest answers.
    const QUESTION: &str = "/proc/self/does-not-exist";
    programs.check_host_disk().await?;
    match programs.get(QUESTION, 1).await {
        Ok(_) | Err(GetError::Missing { .. } | GetError::NotRegular { .. } | GetError::TooLarge { .. }) => {
            Ok(())
        }
        Err(GetError::Sandbox(error)) => match assume.blame(error.blame()) {
            Some(Blame::Solver) => Ok(()),
            Some(Blame::Task | Blame::Infra | Blame::Caller) | None => Err(error),
        },
    }
}

/// The launch specification of a verifier: the task's unmodified image.
pub(super) fn pristine<'a>(image: &'a Image, task: &'a Task, network: Network) -> LaunchSpec<'a> {
    LaunchSpec {
        image,
        limits: &task.limits,
        profile: task.profile,
        network,
        workdir: "/",
        purpose: "verifier",
        preload: Vec::new(),
        layer: None,
    }
}

/// Adds (path, mode, bytes) to an archive.
pub(super) fn add_files<'a>(
    packing: &mut Packing,
    mut files: impl Iterator<Item = (String, u32, &'a [u8])>,
) -> std::io::Result<()> {
    files.try_for_each(|(path, mode, bytes)| packing.add(&path, mode, bytes))
}

pub(super) fn host_failed(source: std::io::Error) -> NoVerdict {
    EngineError::Spool { source }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_holds_except_beside_a_control() {
        let check = |assume: Assume, expect: u32| assert_eq!(patience(assume), expect, "{assume:?}");
        check(Assume::Nothing, 1);
        check(Assume::TaskAtFault, 1);
        check(Assume::SolverAtFault, 5);
    }
}
