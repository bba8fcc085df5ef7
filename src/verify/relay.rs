//! The tests' only way to the subject's programs: a request to the host, which runs it by the guest of the subject's
//! container. What comes back is data.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::sandbox::{Process, ProcessOutcome, RelayCall, Sandbox, SandboxError};

/// Where the relay listens in the verifier's container.
pub(super) const SOCKET: &str = "/run/termsmith-relay.sock";
/// Output that one program may return, each of the two streams.
const MAX_OUTPUT: usize = 4 << 20;
/// A test asks for seconds; nothing it runs needs more than this.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

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

/// Answers calls until the verifier is gone.
pub(super) async fn serve(mut calls: tokio::sync::mpsc::Receiver<RelayCall>, subject: &Sandbox) {
    while let Some(call) = calls.recv().await {
        let reply = match answer(&call.request, subject).await {
            Ok(reply) => reply,
            Err(error) => Reply::Broken { error },
        };
        // A verifier that has gone away needs no answer.
        let _ = call.reply.send(serde_json::to_vec(&reply).unwrap_or_default());
    }
}

async fn answer(request: &[u8], subject: &Sandbox) -> Result<Reply, String> {
    let request: Request = serde_json::from_slice(request).map_err(|error| error.to_string())?;
    let decode = |text: &str| BASE64.decode(text).map_err(|error| error.to_string());
    for (path, content) in &request.files {
        match subject.put(path, &decode(content)?, 0o644).await {
            Ok(()) => {}
            Err(error) => return lost_or(error),
        }
    }
    let process = Process {
        argv: request.argv.into_iter().map(Into::into).collect(),
        env: request.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: request.cwd,
        stdin: decode(&request.stdin)?,
        timeout: Duration::try_from_secs_f64(request.timeout).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT),
        keep: MAX_OUTPUT,
    };
    match subject.spawn(&process).await {
        Ok(done) => {
            // The shell's conventions: 124 of timeout(1), 127 for what cannot be started, 128 + signal.
            let (code, stderr) = match done.outcome {
                ProcessOutcome::Exited(code) => (code, done.stderr),
                ProcessOutcome::Signaled(signal) => (128 + signal, done.stderr),
                ProcessOutcome::TimedOut => (124, done.stderr),
                ProcessOutcome::NotStarted(why) => (127, why.into_bytes()),
            };
            Ok(Reply::Ran { code, stdout: BASE64.encode(done.stdout), stderr: BASE64.encode(stderr) })
        }
        Err(error) => lost_or(error),
    }
}

/// A subject that took its own container down has failed, and says so by a status; a failing engine has not.
fn lost_or(error: SandboxError) -> Result<Reply, String> {
    match error {
        SandboxError::Engine(error) => Err(error.to_string()),
        lost => Ok(Reply::Ran { code: 137, stdout: String::new(), stderr: BASE64.encode(lost.to_string()) }),
    }
}
