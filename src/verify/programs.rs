//! The container of the solver's programs. Tests run these programs through the relay.

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
/// Maximum bytes of the output of either, for messages.
const MAX_LOG: usize = 64 << 10;
/// Moves each root from the unpacked archive to its own place. If the solver deleted a root, it is
/// missing there too.
const PLACE: &str = r#"for root in "$@"; do
    rm -rf -- "$root" || exit
    if [ -e "/subject$root" ] || [ -L "/subject$root" ]; then
        mkdir -p -- "${root%/*}/" && mv -T -- "/subject$root" "$root" || exit
    fi
done
rm -rf /subject"#;

/// The parts that the container is made from.
pub(super) struct Left<'a> {
    pub(super) stopped: Stopped,
    /// The roots, below `/subject`.
    pub(super) files: &'a Spooled,
    /// Limits of a container that holds the roots.
    pub(super) limits: &'a Limits,
}

/// Starts the container for the solver's programs.
///
/// It is a new container of the task's image, with only the declared roots in it. A program that
/// the solver put anywhere else, e.g. another `make`, was not asked for, and other harnesses do not
/// have it either.
///
/// Services need the solver's own container, and so do roots that cannot be moved. There the
/// solver's container is started again.
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

/// Whether the verdict depends only on the roots, and on nothing else in the solver's container.
pub(super) fn see_only_roots(submission: &SubmissionSpec) -> bool {
    !submission.programs || is_movable(submission)
}

/// Whether the roots can be moved into another container. Harbor's separate mode moves the same
/// roots.
fn is_movable(submission: &SubmissionSpec) -> bool {
    // The engine mounts files of its own in these folders.
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

/// Starts the solver's stopped container again. Only the task's bring-up command runs there.
async fn bring_up(
    engine: &Engine,
    image: &Image,
    task: &Task,
    stopped: Stopped,
) -> Result<Sandbox, NoVerdict> {
    let solver_container = match stopped.restart("/").await {
        Ok(solver_container) => solver_container,
        Err(error @ (EngineError::NotStarted { .. } | EngineError::Guest { .. })) => {
            // The solver may have put a file in place of a folder that the engine needs. An engine
            // in trouble could not start a pristine container either. The trouble may have passed
            // by now, so this is a loss without evidence.
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
