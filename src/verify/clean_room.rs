//! The clean-room verification: from a running solver to a verdict.

use std::time::Instant;

use super::no_verdict::{NoVerdict, Phase};
use super::programs::{self, Left};
use super::room::{MAX_RESULTS, RECEIVED, Room, Verified, VerifierLog, add_files, host_failed};
use super::submission::{CheckError, CheckedSubmission, SubmissionLimits, SubmissionState, check_archives};
use super::target::{Judged, Retain, TrialContext};
use crate::model::{Limits, Outcome, Task, Verdict};
use crate::sandbox::{ArchiveError, GetError, Sandbox, SandboxError, Stopped};

/// The files that the engine mounts over the container's own files.
const ENGINE_FILES: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];
/// Disk space of the largest submission in the verifier's container. It lies there twice: once for
/// the tests, and once in its own place.
const SUBMISSION_MB: u32 = 2 * (SubmissionLimits::STANDARD.bytes >> 20) as u32;

/// Kills the solver in `sandbox` and judges the state that it left.
pub(super) async fn judge(
    context: &TrialContext<'_>,
    task: &Task,
    sandbox: Sandbox,
    retain: Retain,
) -> Judged {
    let started = Instant::now();
    let mut judged = judge_sandbox(context, task, sandbox, retain).await.unwrap_or_else(Judged::lost);
    judged.log.seconds = started.elapsed().as_secs_f64();
    judged
}

async fn judge_sandbox(
    context: &TrialContext<'_>,
    task: &Task,
    sandbox: Sandbox,
    retain: Retain,
) -> Result<Judged, NoVerdict> {
    let mounted = engine_files(task, &sandbox).await?;
    let stopped = sandbox.stop().await?;
    let state_image = match retain {
        // If no image can hold the state, the solver fails.
        Retain::StateImage => Some(stopped.commit().await?),
        Retain::Fingerprint | Retain::Nothing => None,
    };
    let submission = match read_submission(task, &stopped, mounted).await? {
        Ok(submission) => submission,
        Err(cause) => {
            return Ok(Judged {
                state_image,
                ..Judged::of(Ok(Verdict::without_checks(Outcome::Fail, cause)))
            });
        }
    };
    let CheckedSubmission { files, state: SubmissionState { hashes, fingerprint, dropped } } = submission;
    let exact = hashes.as_ref().filter(|_| programs::see_only_roots(&task.submission));
    let known = exact.and_then(|hashes| context.condition.known(&hashes.exact, &task.checks));
    if let Some(checks) = known.filter(|_| retain == Retain::Fingerprint) {
        stopped.destroy().await;
        let log = VerifierLog { dropped, ..VerifierLog::default() };
        return Ok(Judged { hashes, fingerprint, log, ..Judged::of(Ok(Verdict::from_checks(checks))) });
    }
    let files = files.finish().map_err(host_failed)?;
    // Sparse files are written in full here, so a submission can be larger than on the solver's
    // disk.
    let limits = Limits { storage_mb: context.limits.storage_mb + SUBMISSION_MB, ..context.limits.clone() };
    let room = Room { context, task, files: &files, limits: &limits };
    let programs = if task.submission.programs {
        let left = Left { stopped, files: &files, limits: &limits };
        programs::start(context, task, left).await.map(Some)
    } else {
        stopped.destroy().await;
        Ok(None)
    };
    let Verified { ran, log } = match programs {
        Ok(programs) => Box::pin(room.verify(programs)).await,
        Err(lost) => Verified { ran: Err(lost), log: VerifierLog::default() },
    };
    let log = VerifierLog { dropped, ..log };
    Ok(Judged { verdict: ran, hashes, fingerprint, log, state_image, reward: None, next: None })
}

/// The submission's files. `Err` inside says why the solver fails.
async fn read_submission(
    task: &Task,
    stopped: &Stopped,
    mounted: Vec<(String, Vec<u8>)>,
) -> Result<Result<CheckedSubmission, String>, NoVerdict> {
    let limits = SubmissionLimits::default();
    let mut archives = Vec::new();
    for root in &task.submission.roots {
        match stopped.archive(root, limits.bytes).await {
            Ok(archive) => archives.push((root.clone(), archive.tar)),
            // The solver deleted the root. Every check that needs it fails.
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
        let mut checked = check_archives(RECEIVED, &archives, &limits)?;
        let files = mounted.iter();
        let files = files.map(|(path, bytes)| (format!("{RECEIVED}{path}"), 0o644, bytes.as_slice()));
        add_files(&mut checked.files, files).map_err(CheckError::Host)?;
        Ok(checked)
    })
    .await;
    match checked {
        Ok(Ok(checked)) => Ok(Ok(checked)),
        Ok(Err(CheckError::Submission(error))) => Ok(Err(error.to_string())),
        Ok(Err(CheckError::Host(source))) => Err(host_failed(source)),
        Err(error) => {
            let cause = format!("the submission's archive could not be read: {error}");
            Err(NoVerdict::NoResults { cause })
        }
    }
}

/// Contents of the files that the engine mounts, if a root contains them, e.g. `/etc/hosts` in
/// `/etc`.
async fn engine_files(task: &Task, sandbox: &Sandbox) -> Result<Vec<(String, Vec<u8>)>, NoVerdict> {
    let mut found = Vec::new();
    if !task.submission.roots.iter().any(|root| root == "/etc" || root == "/") {
        return Ok(found);
    }
    for path in ENGINE_FILES {
        match sandbox.get(path, MAX_RESULTS).await {
            Ok(bytes) => found.push((path.to_owned(), bytes)),
            // The solver deleted the file, or replaced it, e.g. by a link. So the submission does
            // not have it.
            Err(GetError::Missing { .. } | GetError::NotRegular { .. } | GetError::TooLarge { .. }) => {}
            Err(GetError::Sandbox(error)) => return Err(NoVerdict::Sandbox { phase: Phase::Solve, error }),
        }
    }
    Ok(found)
}
