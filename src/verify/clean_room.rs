//! The clean-room verification: from a killed solver to a verdict.

use std::time::Instant;

use super::no_verdict::{NoVerdict, Phase};
use super::outline::{Outline, StateHashes};
use super::programs::{self, Left};
use super::room::{MAX_RESULTS, Room, SUBJECT_ROOT, VerifierLog, add_files, host_failed};
use super::subject::{CheckError, CheckedSubject, SubjectLimits, SubjectState, check_archives};
use super::trial::TrialContext;
use crate::model::{Assume, Limits, Outcome, Task, Verdict};
use crate::sandbox::{ArchiveError, GetError, Image, Sandbox, SandboxError, Stopped};

/// The three files that the engine mounts over a container's own.
const ENGINE_FILES: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];
/// Disk space of the largest subject in the verifier's container, which holds it twice: for the
/// tests, and in its own place.
const SUBJECT_MB: u32 = 2 * (SubjectLimits::STANDARD.bytes >> 20) as u32;

/// A verdict with the observations of its verification.
#[derive(Debug)]
pub struct Judged {
    pub verdict: Verdict,
    /// Of the subject's final state, if that was read.
    pub hashes: Option<StateHashes>,
    pub outline: Outline,
    pub log: VerifierLog,
}

/// Kills the solver in `sandbox` and judges the state that it left.
pub async fn judge(context: TrialContext<'_>, task: &Task, sandbox: Sandbox) -> Result<Judged, NoVerdict> {
    let started = Instant::now();
    let mounted = match engine_files(task, &sandbox).await {
        Ok(mounted) => mounted,
        Err(lost) => return unread(lost, context.assume),
    };
    let stopped = sandbox.stop().await?;
    let mut judged = judge_stopped(context, task, stopped, mounted).await?;
    judged.log.seconds = started.elapsed().as_secs_f64();
    Ok(judged)
}

/// Like [`judge`], and saves the judged state as an image, from which the solver can continue.
/// There is no image, and the solver fails, if an image cannot hold the state.
pub async fn judge_and_keep(
    context: TrialContext<'_>,
    task: &Task,
    sandbox: Sandbox,
) -> Result<(Judged, Option<Image>), NoVerdict> {
    let started = Instant::now();
    let mounted = match engine_files(task, &sandbox).await {
        Ok(mounted) => mounted,
        Err(lost) => return unread(lost, context.assume).map(|judged| (judged, None)),
    };
    let stopped = sandbox.stop().await?;
    let kept = match stopped.commit().await {
        Ok(kept) => kept,
        Err(error) => return unread(error.into(), context.assume).map(|judged| (judged, None)),
    };
    let mut judged = judge_stopped(context, task, stopped, mounted).await?;
    judged.log.seconds = started.elapsed().as_secs_f64();
    Ok((judged, Some(kept)))
}

async fn judge_stopped(
    context: TrialContext<'_>,
    task: &Task,
    stopped: Stopped,
    mounted: Vec<(String, Vec<u8>)>,
) -> Result<Judged, NoVerdict> {
    let TrialContext { engine, images, condition, assume, .. } = context;
    let subject = match read_subject(task, &stopped, mounted).await {
        Ok(Ok(subject)) => subject,
        Ok(Err(cause)) => return Ok(failed(cause, String::new())),
        Err(lost) => return unread(lost, assume),
    };
    let CheckedSubject { files, state: subject } = subject;
    let files = files.finish().map_err(host_failed)?;
    let limits = condition.limits(&task.limits);
    // A subject can be larger here than on the solver's disk, since sparse files are written in full.
    let limits = Limits { storage_mb: limits.storage_mb + SUBJECT_MB, ..limits };
    let room = Room { context, task, files: &files, limits: &limits };
    let programs = if task.subject.programs {
        let left = Left { stopped, files: &files, limits: &limits };
        match programs::start(engine, &images.solver, task, left, condition).await {
            Ok(sandbox) => Some(sandbox),
            Err(lost) => return judged_without(lost, assume, subject, VerifierLog::default()),
        }
    } else {
        stopped.destroy().await;
        None
    };
    let verified = Box::pin(room.verify(programs)).await;
    match verified.ran {
        Ok(verdict) => {
            let log = VerifierLog { dropped: subject.dropped, ..verified.log };
            Ok(Judged { verdict, hashes: subject.hashes, outline: subject.outline, log })
        }
        Err(lost) => judged_without(lost, assume, subject, verified.log),
    }
}

/// The verdict on `subject` if the verification was lost through the fault of the solver or the task.
fn judged_without(
    lost: NoVerdict,
    assume: Assume,
    subject: SubjectState,
    mut log: VerifierLog,
) -> Result<Judged, NoVerdict> {
    log.output.push_str(&lost.to_string());
    let verdict = lost.verdict(assume)?;
    let log = VerifierLog { dropped: subject.dropped, ..log };
    Ok(Judged { verdict, hashes: subject.hashes, outline: subject.outline, log })
}

/// The verdict on a subject that could not be read.
fn unread(lost: NoVerdict, assume: Assume) -> Result<Judged, NoVerdict> {
    judged_without(lost, assume, SubjectState::default(), VerifierLog::default())
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

fn failed(cause: String, seen: String) -> Judged {
    Judged {
        verdict: Verdict::without_checks(Outcome::Fail, cause),
        hashes: None,
        outline: Outline::new(),
        log: VerifierLog { output: seen, ..VerifierLog::default() },
    }
}
