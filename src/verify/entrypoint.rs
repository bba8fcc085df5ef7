//! The ENTRYPOINT of a foreign task's image. Harbor runs it with the arguments
//! `sh -c "sleep infinity"` in place of the image's CMD. An ENTRYPOINT may prepare files and start
//! services.

use std::time::Duration;

use super::foreign::Unsupported;
use super::in_place::StepContext;
use super::no_verdict::{NoVerdict, Phase};
use crate::sandbox::{Process, ProcessOutcome, Sandbox};

/// Time within which the ENTRYPOINT must run its arguments. An ENTRYPOINT that never does is a
/// service itself, and has started by then.
const READY_WITHIN: Duration = Duration::from_secs(15);
/// Additional time within which the script ends on its own.
const MARGIN: Duration = Duration::from_secs(15);
/// Maximum bytes of the ENTRYPOINT's output in a message.
const MAX_OUTPUT: usize = 16 << 10;
/// The script's exit status if the ENTRYPOINT ended.
const ENDED: i32 = 3;
/// Starts the ENTRYPOINT in a session of its own, which outlives the script. Then waits until the
/// ENTRYPOINT runs its arguments, which create a file. The files lie in memory, so that the
/// container's own files do not change.
const START: &str = r#"
ready=/dev/shm/.entrypoint-ready log=/dev/shm/.entrypoint-log
rm -f "$ready" "$log"
setsid "$@" sh -c ': > /dev/shm/.entrypoint-ready; exec sleep infinity' \
    </dev/null > >(exec setsid sh -c 'head -c 16384 > /dev/shm/.entrypoint-log; exec cat > /dev/null' 2>/dev/null) 2>&1 &
pid=$!
for (( turn = 0; turn < TURNS; turn++ )); do
    [ -e "$ready" ] && break
    if ! kill -0 "$pid" 2>/dev/null; then
        wait "$pid"; status=$?
        sleep 0.2
        tail -c 2000 "$log"; echo "it ended with status $status"
        exit 3
    fi
    sleep 0.05
done
rm -f "$ready" "$log"
exit 0
"#;
/// Turns of the script's loop in a second.
const TURNS_PER_SECOND: u64 = 20;

impl StepContext<'_> {
    /// Runs the image's ENTRYPOINT, if it has one, until it runs its arguments.
    pub(super) async fn start_entrypoint(&self, sandbox: &Sandbox) -> Result<(), NoVerdict> {
        let config = self.config;
        if config.entrypoint.is_empty() {
            return Ok(());
        }
        let unsupported = |why: String| {
            let entrypoint = config.entrypoint.join(" ");
            NoVerdict::Unsupported(Unsupported(format!("the image's ENTRYPOINT (`{entrypoint}`) {why}")))
        };
        if !matches!(config.user.as_str(), "" | "root" | "0" | "0:0" | "root:root") {
            return Err(unsupported(format!("runs as `USER {}`, and is run as root here", config.user)));
        }
        let script = START.replace("TURNS", &(READY_WITHIN.as_secs() * TURNS_PER_SECOND).to_string());
        let mut argv: Vec<_> = ["bash", "-c", &script, "bash"].map(Into::into).to_vec();
        argv.extend(config.entrypoint.iter().map(Into::into));
        let variables = config.env.iter().chain(&self.task.environment_env);
        let mut env: Vec<_> = variables.map(|(name, value)| (name.into(), value.into())).collect();
        if !config.env.iter().any(|(name, _)| name == "HOME") {
            env.push(("HOME".into(), "/root".into()));
        }
        let process = Process {
            argv,
            env,
            cwd: config.workdir.clone(),
            stdin: Vec::new(),
            timeout: READY_WITHIN * 4 + MARGIN,
            max_output: MAX_OUTPUT,
        };
        let done = sandbox.spawn(&process).await;
        let done = done.map_err(|error| NoVerdict::Sandbox { phase: Phase::Prepare, error })?;
        let said = String::from_utf8_lossy(&done.stdout);
        match done.outcome {
            ProcessOutcome::Exited(0) => Ok(()),
            ProcessOutcome::Exited(ENDED) => Err(unsupported(format!("does not stay: {}", said.trim()))),
            other => {
                let error = String::from_utf8_lossy(&done.stderr);
                Err(unsupported(format!("cannot be run ({other:?}): {} {}", said.trim(), error.trim())))
            }
        }
    }
}
