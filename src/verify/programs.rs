//! The container in which programs that a solver left are run.

use std::time::Duration;

use super::condition::Condition;
use super::no_verdict::{NoVerdict, Phase};
use super::room::pristine;
use super::target::TrialContext;
use crate::model::{Limits, SubmissionSpec, Task};
use crate::sandbox::{
    Engine, EngineError, ExecLimit, Image, LaunchSpec, Network, Process, ProcessOutcome, Sandbox,
    SandboxError, Spooled, Stopped,
};

/// Time limit for the start of a service.
const BRING_UP: Duration = Duration::from_secs(30);
/// Time limit for moving the submission into its place.
const PLACING: Duration = Duration::from_secs(60);
/// Bytes of output that are kept of either.
const MAX_LOG: usize = 64 << 10;
/// Moves each root from where the archive was unpacked to its own place. A root that the solver deleted is missing there too.
const PLACE: &str = r#"for root in "$@"; do
    rm -rf -- "$root" || exit
    if [ -e "/subject$root" ] || [ -L "/subject$root" ]; then
        mkdir -p -- "${root%/*}/" && mv -T -- "/subject$root" "$root" || exit
    fi
done
rm -rf /subject"#;

/// What the container is made of.
pub(super) struct Left<'a> {
    pub(super) stopped: Stopped,
    /// The roots, below `/subject`.
    pub(super) files: &'a Spooled,
    /// Of a container that holds them.
    pub(super) limits: &'a Limits,
}

/// Starts the container for the programs of `task`.
///
/// It is a new one of the task's image with nothing of the solver's but the declared roots: a program that the solver put anywhere else, such as
/// another `make`, was not asked for, and is not there in other harnesses either. Services, and roots that need their own container,
/// get the solver's, started again.
pub(super) async fn start(
    context: &TrialContext<'_>,
    task: &Task,
    left: Left<'_>,
) -> Result<Sandbox, NoVerdict> {
    let TrialContext { engine, images, condition, .. } = *context;
    let image = &images.solver;
    if !is_movable(&task.submission) {
        return bring_up(engine, image, task, left.stopped).await;
    }
    let Left { stopped, files, limits } = left;
    stopped.destroy().await;
    let spec = LaunchSpec { limits, purpose: "programs", ..pristine(image, task, Network::None) };
    let sandbox = engine.launch(&spec).await?;
    match place(&sandbox, task, files, condition).await {
        Ok(()) => Ok(sandbox),
        Err(error) => {
            sandbox.destroy().await;
            Err(lost(error))
        }
    }
}

/// Whether the verdict depends on nothing of the solver's container but its roots.
pub(super) fn see_only_roots(submission: &SubmissionSpec) -> bool {
    !submission.programs || is_movable(submission)
}

/// Whether the roots can be moved into another container. Harbor's separate mode moves the same.
fn is_movable(submission: &SubmissionSpec) -> bool {
    // The engine mounts files of its own there.
    let holds_mounts = |root: &String| matches!(root.as_str(), "/" | "/etc" | "/proc" | "/sys" | "/dev");
    submission.needs_shared().is_none() && !submission.roots.iter().any(holds_mounts)
}

async fn place(
    sandbox: &Sandbox,
    task: &Task,
    files: &Spooled,
    condition: Condition<'_>,
) -> Result<(), SandboxError> {
    sandbox.unpack(files).await?;
    let argv = ["sh", "-c", PLACE, "sh"].into_iter().chain(task.submission.roots.iter().map(String::as_str));
    let process = Process {
        argv: argv.map(Into::into).collect(),
        env: vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
        cwd: "/".to_owned(),
        stdin: Vec::new(),
        timeout: PLACING,
        max_output: MAX_LOG,
    };
    let done = sandbox.spawn(&process).await?;
    if done.outcome != ProcessOutcome::Exited(0) {
        let message =
            format!("the submission cannot be put in its place: {}", String::from_utf8_lossy(&done.stderr));
        return Err(SandboxError::Failed { message });
    }
    condition.prepare(sandbox).await
}

/// A container of the solver's committed state, running only the task's bring-up command.
async fn bring_up(
    engine: &Engine,
    image: &Image,
    task: &Task,
    stopped: Stopped,
) -> Result<Sandbox, NoVerdict> {
    let solver_container = match stopped.restart("/").await {
        Ok(solver_container) => solver_container,
        Err(error @ (EngineError::NotStarted { .. } | EngineError::Guest { .. })) => {
            // A file in place of a folder that the engine needs can cause this. An engine in trouble could not start a pristine container
            // either. The remaining case is a loss without evidence, since the trouble may have passed.
            engine.launch(&pristine(image, task, Network::None)).await?.destroy().await;
            let message = format!("the solver's container cannot be started again: {error}");
            return Err(lost(SandboxError::Failed { message }));
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(command) = &task.submission.bring_up {
        let limit = ExecLimit { timeout: BRING_UP, max_output: MAX_LOG };
        if let Err(error) = solver_container.shell(command, &limit).await {
            solver_container.destroy().await;
            return Err(lost(error));
        }
    }
    Ok(solver_container)
}

fn lost(error: SandboxError) -> NoVerdict {
    NoVerdict::Sandbox { phase: Phase::Programs, error }
}
