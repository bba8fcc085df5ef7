//! The clean-room verification: from a killed solver to a verdict.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::no_verdict::{NoVerdict, Phase};
use super::outline::Outline;
use super::programs::{self, Left};
use super::relay;
use super::results::{Reported, parse_results};
use super::subject::{CheckError, CheckedSubject, Packing, SubjectLimits, SubjectState, check_archives};
use crate::model::{Blame, CheckId, Limits, Outcome, Task, Verdict};
use crate::sandbox::{
    ArchiveError, Engine, EngineError, GetError, Image, LaunchSpec, Network, Process, ProcessOutcome,
    Sandbox, SandboxError, Spooled, Stopped,
};

/// Path of the subject in the verifier's container.
const SUBJECT_ROOT: &str = "subject";
const RESULTS: &str = "/logs/verifier/checks.json";
/// Maximum size of the results: an id, a flag and a bounded message per check.
const MAX_RESULTS: u64 = 1 << 20;
/// Bytes of pytest's output that are kept, for people; the verdict does not depend on it.
const MAX_LOG: usize = 64 << 10;
/// The three files that the engine mounts over a container's own.
const ENGINE_FILES: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];
/// The declared limit assumes an idle machine. A verdict must not depend on the load of this one, so only a run that takes several times as
/// long is the subject's fault.
const VERIFIER_TIMEOUT_FACTOR: u32 = 5;
/// A fixed order other than the declared one: it shows whether checks depend on each other, and can be repeated.
const SHUFFLE_SEED: &str = "1";
/// Disk space of the largest subject in the verifier's container.
const SUBJECT_MB: u32 = (SubjectLimits::STANDARD.bytes >> 20) as u32;

/// A verdict with the observations of its verification.
#[derive(Debug)]
pub struct Judged {
    pub verdict: Verdict,
    /// Hash of the subject's final state; equal states have equal hashes.
    pub state: Option<String>,
    pub outline: Outline,
    pub log: VerifierLog,
}

/// Observations of the verification. Written to `observed/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifierLog {
    /// Why checks failed.
    pub messages: BTreeMap<CheckId, String>,
    /// Output of the test runner.
    pub output: String,
    /// Entries of the subject that were dropped, with the reason.
    pub dropped: Vec<String>,
    pub seconds: f64,
}

/// Kills the solver in `sandbox` and judges the state that it left.
pub async fn judge(
    engine: &Engine,
    image: &Image,
    task: &Task,
    sandbox: Sandbox,
    silent: Option<Blame>,
) -> Result<Judged, NoVerdict> {
    judge_under(engine, image, task, sandbox, Condition::Ordinary, silent).await
}

/// [`judge`], which also keeps an image of the judged state, from which the solver can continue; none of a state that an image cannot hold,
/// which is a failure.
pub async fn judge_and_keep(
    engine: &Engine,
    image: &Image,
    task: &Task,
    sandbox: Sandbox,
    silent: Option<Blame>,
) -> Result<(Judged, Option<Image>), NoVerdict> {
    let started = Instant::now();
    let mounted = match engine_files(task, &sandbox).await {
        Ok(mounted) => mounted,
        Err(lost) => return unread(lost, silent).map(|judged| (judged, None)),
    };
    let stopped = sandbox.stop().await?;
    let kept = match stopped.commit().await {
        Ok(kept) => kept,
        Err(error) => return unread(error.into(), silent).map(|judged| (judged, None)),
    };
    let mut judged =
        judge_stopped(engine, image, task, stopped, mounted, Condition::Ordinary, silent).await?;
    judged.log.seconds = started.elapsed().as_secs_f64();
    Ok((judged, Some(kept)))
}

/// [`judge`], with the verifier under `condition` too.
pub(super) async fn judge_under(
    engine: &Engine,
    image: &Image,
    task: &Task,
    sandbox: Sandbox,
    condition: Condition,
    silent: Option<Blame>,
) -> Result<Judged, NoVerdict> {
    let started = Instant::now();
    let mounted = match engine_files(task, &sandbox).await {
        Ok(mounted) => mounted,
        Err(lost) => return unread(lost, silent),
    };
    let stopped = sandbox.stop().await?;
    let mut judged = judge_stopped(engine, image, task, stopped, mounted, condition, silent).await?;
    judged.log.seconds = started.elapsed().as_secs_f64();
    Ok(judged)
}

async fn judge_stopped(
    engine: &Engine,
    image: &Image,
    task: &Task,
    stopped: Stopped,
    mounted: Vec<(String, Vec<u8>)>,
    condition: Condition,
    silent: Option<Blame>,
) -> Result<Judged, NoVerdict> {
    let subject = match read_subject(task, &stopped, mounted).await {
        Ok(Ok(subject)) => subject,
        Ok(Err(cause)) => return Ok(failed(cause, String::new())),
        Err(lost) => return unread(lost, silent),
    };
    let CheckedSubject { files, state: subject } = subject;
    let files = files.finish().map_err(host_failed)?;
    let limits = condition.limits(&task.limits);
    // A subject can be larger here than on the solver's disk, since sparse files are written in full.
    let limits = Limits { storage_mb: limits.storage_mb + SUBJECT_MB, ..limits };
    let programs = if task.subject.programs {
        let left = Left { stopped, files: &files, limits: &limits };
        match programs::start(engine, image, task, left, condition).await {
            Ok(sandbox) => Some(sandbox),
            Err(lost) => return judged_without(lost, silent, subject, VerifierLog::default()),
        }
    } else {
        stopped.destroy().await;
        None
    };
    let network = match &programs {
        // Services need a network between the containers; programs alone need none.
        Some(sandbox) if task.subject.bring_up.is_some() => Network::Of(sandbox.id().clone()),
        _ => Network::None,
    };
    let mut tests = Packing::new();
    let shipped = task.tests.iter();
    let shipped = shipped.map(|(path, file)| (format!("tests/{path}"), file.mode(), file.bytes.as_slice()));
    let tests = add_files(&mut tests, shipped).and_then(|()| tests.finish()).map_err(host_failed)?;
    let spec = LaunchSpec { limits: &limits, ..pristine(image, task, network) };
    let verifier = match furnish(engine, &spec, [files, tests], condition).await {
        Ok(verifier) => verifier,
        Err(error) => {
            // The subject is unpacked there, so a verifier that cannot be prepared is a loss of the verification without evidence.
            let lost = NoVerdict::Sandbox { phase: Phase::Verify, error };
            return judged_without(lost, silent, subject, VerifierLog::default());
        }
    };
    let mut log = VerifierLog::default();
    let ran = match &programs {
        None => run_checks(task, &verifier, condition, &mut log).await,
        Some(programs) => {
            let calls = verifier.serve_relay(relay::SOCKET).await;
            match calls {
                Err(error) => Err(NoVerdict::Sandbox { phase: Phase::Verify, error }),
                Ok(calls) => tokio::select! {
                    ran = run_checks(task, &verifier, condition, &mut log) => ran,
                    error = relay::serve(calls, programs, silent) => {
                        Err(NoVerdict::Sandbox { phase: Phase::Programs, error })
                    }
                },
            }
        }
    };
    let ran = match ran {
        Ok(verdict) if !verdict.passed() => match verifier.check_host_disk().await {
            Ok(()) => Ok(verdict),
            // The subject's programs ran at that time too. If only they are not known to have suffered, they held the disk.
            Err(_) if held_the_disk(programs.as_ref()).await => Ok(verdict),
            Err(error) => Err(NoVerdict::Sandbox { phase: Phase::Verify, error }),
        },
        ran => ran,
    };
    verifier.destroy().await;
    let ran = match (ran, programs) {
        (Ok(verdict), Some(programs)) if !verdict.passed() => {
            // Clients of the services see a lost subject as a refused connection, which must not count as the solver's failure.
            let lives = alive(&programs, silent).await;
            lives.map(|()| verdict).map_err(|error| NoVerdict::Sandbox { phase: Phase::Programs, error })
        }
        (ran, _) => ran,
    };
    match ran {
        Ok(verdict) => {
            let log = VerifierLog { dropped: subject.dropped, ..log };
            Ok(Judged { verdict, state: Some(subject.hash), outline: subject.outline, log })
        }
        Err(lost) => judged_without(lost, silent, subject, log),
    }
}

/// Whether the subject's programs ran while the disk of the host was full, and held much of it.
async fn held_the_disk(programs: Option<&Sandbox>) -> bool {
    match programs {
        Some(programs) => programs.check_host_disk().await.is_ok(),
        None => false,
    }
}

/// An error if `programs` was lost, or could not write, and the solver is not known to be at fault.
async fn alive(programs: &Sandbox, silent: Option<Blame>) -> Result<(), SandboxError> {
    /// Any request that a running guest answers.
    const QUESTION: &str = "/proc/self/does-not-exist";
    programs.check_host_disk().await?;
    match programs.get(QUESTION, 1).await {
        Ok(_) | Err(GetError::Missing { .. } | GetError::NotRegular { .. } | GetError::TooLarge { .. }) => {
            Ok(())
        }
        Err(GetError::Sandbox(error)) => match error.blame().or(silent) {
            Some(Blame::Solver) => Ok(()),
            Some(Blame::Task | Blame::Infra | Blame::Caller) | None => Err(error),
        },
    }
}

/// The verdict on `subject` if the verification was lost through the fault of the solver or the task.
fn judged_without(
    lost: NoVerdict,
    silent: Option<Blame>,
    subject: SubjectState,
    mut log: VerifierLog,
) -> Result<Judged, NoVerdict> {
    log.output.push_str(&lost.to_string());
    let verdict = lost.verdict(silent)?;
    let log = VerifierLog { dropped: subject.dropped, ..log };
    let state = (!subject.hash.is_empty()).then_some(subject.hash);
    Ok(Judged { verdict, state, outline: subject.outline, log })
}

/// The verdict on a subject that could not be read.
fn unread(lost: NoVerdict, silent: Option<Blame>) -> Result<Judged, NoVerdict> {
    judged_without(lost, silent, SubjectState::default(), VerifierLog::default())
}

async fn run_checks(
    task: &Task,
    verifier: &Sandbox,
    condition: Condition,
    log: &mut VerifierLog,
) -> Result<Verdict, NoVerdict> {
    let lost = |error| NoVerdict::Sandbox { phase: Phase::Verify, error };
    let env = [
        ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOME", "/root".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("SUBJECT_ROOT", format!("/{SUBJECT_ROOT}")),
        ("SUBJECT_WORKDIR", task.subject.workdir().to_owned()),
    ];
    let relay = task.subject.programs.then(|| ("TERMSMITH_RELAY", relay::SOCKET.to_owned()));
    let shuffle = (condition == Condition::Shuffled).then(|| ("TERMSMITH_SHUFFLE", SHUFFLE_SEED.to_owned()));
    let first = (condition == Condition::FirstFailure).then(|| ("TERMSMITH_FIRST_FAILURE", "1".to_owned()));
    let process = Process {
        argv: ["/usr/bin/python3", "-I", "-B", "/tests/run_checks.py"].map(Into::into).to_vec(),
        env: env
            .into_iter()
            .chain(relay)
            .chain(shuffle)
            .chain(first)
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: "/".to_owned(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(task.limits.verifier_timeout_sec.into()) * VERIFIER_TIMEOUT_FACTOR,
        keep: MAX_LOG,
    };
    let done = verifier.spawn(&process).await.map_err(lost)?;
    log.output =
        format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.outcome == ProcessOutcome::TimedOut {
        // The tests wait only for the subject's files and programs, so the subject caused the timeout.
        return Ok(Verdict::without_checks(Outcome::Fail, "verification timed out"));
    }
    match verifier.get(RESULTS, MAX_RESULTS).await {
        Ok(text) => {
            let extent = match condition {
                Condition::FirstFailure => Reported::UntilOneFails,
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
            let cause = format!("the test runner ended ({:?}) without results", done.outcome);
            Err(NoVerdict::NoResults { cause })
        }
    }
}

/// The subject's files, or the reason why they count as a failure of the solver.
async fn read_subject(
    task: &Task,
    stopped: &Stopped,
    mounted: Vec<(String, Vec<u8>)>,
) -> Result<Result<CheckedSubject, String>, NoVerdict> {
    let limits = SubjectLimits::default();
    let mut archives = Vec::new();
    for root in &task.subject.roots {
        match stopped.archive(root, limits.bytes).await {
            Ok(archive) => archives.push((root.clone(), archive.tar)),
            // A deleted root counts as an empty one: every check that needs it fails.
            Err(ArchiveError::Missing { .. }) => {}
            Err(ArchiveError::Engine(error)) => return Err(error.into()),
            Err(lost @ ArchiveError::AllUnreadable { .. }) => {
                let error = SandboxError::Failed { message: lost.to_string() };
                return Err(NoVerdict::Sandbox { phase: Phase::Solve, error });
            }
            Err(spoilt @ (ArchiveError::TooLarge { .. } | ArchiveError::Unreadable { .. })) => {
                return Ok(Err(spoilt.to_string()));
            }
        }
    }
    let checked = tokio::task::spawn_blocking(move || {
        let mut checked = check_archives(SUBJECT_ROOT, &archives, &limits)?;
        let files = mounted.iter();
        let files = files.map(|(path, bytes)| (format!("{SUBJECT_ROOT}{path}"), 0o644, bytes.as_slice()));
        add_files(&mut checked.files, files).map_err(CheckError::Host)?;
        Ok(checked)
    })
    .await;
    match checked {
        Ok(Ok(checked)) => Ok(Ok(checked)),
        Ok(Err(CheckError::Subject(error))) => Ok(Err(error.to_string())),
        Ok(Err(CheckError::Host(source))) => Err(host_failed(source)),
        Err(error) => {
            let cause = format!("the subject's archive could not be read: {error}");
            Err(NoVerdict::NoResults { cause })
        }
    }
}

fn host_failed(source: std::io::Error) -> NoVerdict {
    EngineError::Spool { source }.into()
}

/// Contents of the files that the engine mounts over the container's own, where a root covers them.
async fn engine_files(task: &Task, sandbox: &Sandbox) -> Result<Vec<(String, Vec<u8>)>, NoVerdict> {
    let mut found = Vec::new();
    if !task.subject.roots.iter().any(|root| root == "/etc" || root == "/") {
        return Ok(found);
    }
    for path in ENGINE_FILES {
        match sandbox.get(path, MAX_RESULTS).await {
            Ok(bytes) => found.push((path.to_owned(), bytes)),
            // The file was deleted, or replaced by a link, a folder or a huge file: the subject has none.
            Err(GetError::Missing { .. } | GetError::NotRegular { .. } | GetError::TooLarge { .. }) => {}
            Err(GetError::Sandbox(error)) => return Err(NoVerdict::Sandbox { phase: Phase::Solve, error }),
        }
    }
    Ok(found)
}

/// Adds (path, mode, bytes) to an archive.
fn add_files<'a>(
    packing: &mut Packing,
    mut files: impl Iterator<Item = (String, u32, &'a [u8])>,
) -> std::io::Result<()> {
    files.try_for_each(|(path, mode, bytes)| packing.add(&path, mode, bytes))
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
    }
}

/// A new container with `archives` unpacked in it.
async fn furnish(
    engine: &Engine,
    spec: &LaunchSpec<'_>,
    archives: [Spooled; 2],
    condition: Condition,
) -> Result<Sandbox, SandboxError> {
    let verifier = engine.launch(spec).await?;
    for archive in &archives {
        verifier.unpack(archive).await?;
    }
    condition.prepare(&verifier).await?;
    Ok(verifier)
}

fn failed(cause: String, seen: String) -> Judged {
    Judged {
        verdict: Verdict::without_checks(Outcome::Fail, cause),
        state: None,
        outline: Outline::new(),
        log: VerifierLog { output: seen, ..VerifierLog::default() },
    }
}
