//! The only way from the tests to the solver's programs. The tests send a request to the host. The
//! host runs the program through the guest of the solver's container, and returns its output as
//! data.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::host_busy::{Observed, PATIENCE, Place};
use crate::model::{Assume, Blame};
use crate::sandbox::{Engine, Process, ProcessOutcome, ProcessResult, RelayCall, Sandbox, SandboxError};

/// Address of the relay in the verifier's container.
pub(super) const SOCKET: &str = "/run/termsmith-relay.sock";
/// Maximum bytes of each output of one program.
const MAX_OUTPUT: usize = 4 << 20;
/// Maximum time limit of one program, before the factor of [`Serving::patience`]. Tests ask for
/// seconds.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// Out-of-memory kills after which the solver's container is killed. Programs that merely need too
/// much memory have far fewer.
const MAX_OUT_OF_MEMORY: usize = 30;
/// Time between two looks at the number of kills.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Exit status of a program that met its time limit. timeout(1) has the same.
const TIMED_OUT: i32 = 124;
/// A line on the standard error of a probe (`templates/verifier/patience.py`). The probe started a
/// program that met its time limit.
const MET_LIMIT: &[u8] = b"a program met its time limit";
/// Additional time after which the guest itself ends a program.
const GUEST_MARGIN: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    argv: Vec<String>,
    stdin: String,
    cwd: String,
    timeout: f64,
    files: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Reply {
    Ran { code: i32, stdout: String, stderr: String },
    Broken { error: String },
}

/// Settings for the answers.
#[derive(Clone, Copy)]
pub(super) struct Serving<'a> {
    pub(super) engine: &'a Engine,
    /// Processors of the solver's container.
    pub(super) cpus: f64,
    /// Factor for time limits.
    pub(super) patience: u32,
    pub(super) assume: Assume,
    pub(super) leftovers: Leftovers,
}

/// What happens to processes that a program leaves behind, in sessions of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftovers {
    /// They are killed, as in Harbor's separate mode. Tests make hundreds of calls, and with each
    /// one a program could leave a process that takes processor time from the tests.
    Killed,
    /// They live on, because the task's services run in the same container.
    Kept,
}

/// Answers calls until the solver's container is lost for reasons that are not its fault. No check
/// may fail for such a loss.
///
/// If the verifier is gone, nothing is left to answer. The verifier's own error names the cause.
pub(super) async fn serve(
    mut calls: tokio::sync::mpsc::Receiver<RelayCall>,
    solver_container: &Sandbox,
    serving: Serving<'_>,
    observed: &mut Observed,
) -> SandboxError {
    while let Some(call) = calls.recv().await {
        let answered = tokio::select! {
            answered = answer(call.request.whole(), solver_container, serving, observed) => answered,
            never = ending_storms(solver_container) => never,
        };
        let reply = match answered {
            Ok(reply) => reply,
            Err(Unanswered::Malformed(error)) => Reply::Broken { error },
            Err(Unanswered::Sandbox(error)) => match serving.assume.blame(error.blame()) {
                Some(Blame::Solver) => ended_by_itself(&error),
                Some(Blame::Task | Blame::Infra | Blame::Caller) | None => return error,
            },
        };
        if call.reply.all(serde_json::to_vec(&reply).unwrap_or_default()).await.is_err() {
            tracing::debug!("the verifier went away before a call of its relay was answered");
        }
    }
    std::future::pending().await
}

/// Kills the solver's container once it has run out of memory [`MAX_OUT_OF_MEMORY`] times.
/// Otherwise programs that fill it again after each kill would occupy the host until the tests run
/// out of time. The loss answers the call.
async fn ending_storms<T>(solver_container: &Sandbox) -> T {
    while solver_container.out_of_memory_kills() < MAX_OUT_OF_MEMORY {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    if let Err(error) = solver_container.kill().await {
        tracing::debug!(%error, "cannot kill a container that runs out of memory again and again");
    }
    std::future::pending().await
}

/// Whether a program met its time limit. The program may also have started another one that did.
fn met_a_limit(ran: &Result<ProcessResult, SandboxError>) -> bool {
    let Ok(done) = ran else { return false };
    let said_so = || done.stderr.split(|byte| *byte == b'\n').any(|line| line == MET_LIMIT);
    matches!(done.outcome, ProcessOutcome::TimedOut | ProcessOutcome::Exited(TIMED_OUT)) || said_so()
}

/// Why a call has no answer.
enum Unanswered {
    /// The tests sent an invalid request.
    Malformed(String),
    Sandbox(SandboxError),
}

async fn answer(
    request: Option<&[u8]>,
    solver_container: &Sandbox,
    serving: Serving<'_>,
    observed: &mut Observed,
) -> Result<Reply, Unanswered> {
    let max_timeout = MAX_TIMEOUT * serving.patience;
    let malformed = |error: &dyn std::fmt::Display| Unanswered::Malformed(error.to_string());
    let request = request.ok_or_else(|| malformed(&"the request is too long"))?;
    let request: Request = serde_json::from_slice(request).map_err(|error| malformed(&error))?;
    let decode = |text: &str| BASE64.decode(text).map_err(|error| malformed(&error));
    for (path, content) in &request.files {
        if let Err(error) = solver_container.put(path, &decode(content)?, 0o644).await {
            return refused_or_lost(error);
        }
    }
    let limit = Duration::try_from_secs_f64(request.timeout).unwrap_or(max_timeout).min(max_timeout);
    let limit = observed.limit(limit);
    let process = Process {
        argv: request.argv.into_iter().map(Into::into).collect(),
        env: request.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: request.cwd,
        stdin: decode(&request.stdin)?,
        timeout: limit * PATIENCE + GUEST_MARGIN,
        max_output: MAX_OUTPUT,
    };
    let place = Place { engine: serving.engine, programs: solver_container, cpus: serving.cpus };
    let ran = observed.during(place, limit, solver_container.spawn(&process), met_a_limit).await;
    if serving.leftovers == Leftovers::Killed
        && let Err(error) = solver_container.end_processes().await
    {
        return refused_or_lost(error);
    }
    match ran {
        None => Ok(Reply::Ran { code: TIMED_OUT, stdout: String::new(), stderr: String::new() }),
        Some(Ok(done)) => {
            // Conventions of shells: 124 from timeout(1), 127 for a program that cannot be started,
            // 128 + signal.
            let (code, stderr) = match done.outcome {
                ProcessOutcome::Exited(code) => (code, done.stderr),
                ProcessOutcome::Signaled(signal) => (128 + signal, done.stderr),
                ProcessOutcome::TimedOut => (TIMED_OUT, done.stderr),
                ProcessOutcome::NotStarted(why) => (127, why.into_bytes()),
            };
            Ok(Reply::Ran { code, stdout: BASE64.encode(done.stdout), stderr: BASE64.encode(stderr) })
        }
        Some(Err(error)) => refused_or_lost(error),
    }
}

/// Answers a request that the running container could not carry out like a failed program, since
/// the files are the solver's. A request that must not be sent is an error of the tests.
fn refused_or_lost(error: SandboxError) -> Result<Reply, Unanswered> {
    match error {
        SandboxError::Failed { .. } => Ok(ended_by_itself(&error)),
        SandboxError::TooLarge { .. } | SandboxError::Nul { .. } => {
            Err(Unanswered::Malformed(error.to_string()))
        }
        SandboxError::Lost(_) | SandboxError::Engine(_) => Err(Unanswered::Sandbox(error)),
    }
}

/// A solver that destroyed its own container has failed. The status says so.
fn ended_by_itself(error: &SandboxError) -> Reply {
    Reply::Ran { code: 137, stdout: String::new(), stderr: BASE64.encode(error.to_string()) }
}
