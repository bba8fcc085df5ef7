//! Whether an installed agent can run in a task's image: asked once, before the first rollout
//! there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::evaluation::fresh;
use super::record::RolloutError;
use crate::agent::catalog::Libc;
use crate::agent::{AgentError, Program};
use crate::model::{EnvironmentDigest, ShellOutcome};
use crate::sandbox::{ExecLimit, LayerState};
use crate::verify::{Target, TrialError, TrialRunner};

/// Agents print their version within 5 seconds of processor time. On a busy host, OpenHands took a
/// minute.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Kept bytes of what the agent prints.
const OUTPUT_BYTES: usize = 8 << 10;

/// The images in which an agent was checked. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Preflight {
    checked: Arc<Mutex<BTreeMap<EnvironmentDigest, Arc<OnceCell<String>>>>>,
}

impl Preflight {
    /// An error if the agent cannot run in the task's image. An image is checked once.
    pub(super) async fn check(
        &self,
        runner: &TrialRunner<'_>,
        target: &dyn Target,
        program: &Program,
    ) -> Result<(), RolloutError> {
        let cell = {
            // An entry is complete when it is added, so a panic elsewhere leaves nothing half-made.
            let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
            checked.entry(target.environment_digest().clone()).or_default().clone()
        };
        cell.get_or_try_init(|| version(runner, target, program)).await.map(|_| ())
    }
}

/// What an installed agent prints as its version in a container of the task. Empty for an agent
/// that cannot be asked, e.g. a user's own command.
pub async fn version(
    runner: &TrialRunner<'_>,
    target: &dyn Target,
    program: &Program,
) -> Result<String, RolloutError> {
    let Some(command) = program.check() else { return Ok(String::new()) };
    if let Some(installed) = &program.installed {
        let engine = runner.engine.get().await.map_err(TrialError::Engine)?;
        match engine.layer_state(&installed.layer).await.map_err(TrialError::Engine)? {
            LayerState::Whole => {}
            LayerState::Missing | LayerState::HalfFilled => {
                let (agent, version) = (program.name.clone(), installed.version.clone());
                return Err(AgentError::NotInstalled { agent, version }.into());
            }
        }
    }
    let (sandbox, _) = fresh(runner, target, program.layer()).await?;
    let limit = ExecLimit { timeout: TIMEOUT, max_output: OUTPUT_BYTES };
    let ran = sandbox.shell(&command, &limit).await.map_err(AgentError::NotStarted)?;
    sandbox.destroy().await;
    let output = String::from_utf8_lossy(&ran.output).into_owned();
    let agent = program.name.clone();
    let how = match ran.outcome {
        ShellOutcome::Exited(0) => return Ok(output.trim().to_owned()),
        ShellOutcome::Exited(status) => format!("exit status {status}"),
        ShellOutcome::ShellDied(status) => format!("its shell ended with {status}"),
        ShellOutcome::TimedOut => return Err(too_slow(agent, output).into()),
    };
    Err(AgentError::CannotRun { agent, how, output }.into())
}

fn too_slow(agent: String, output: String) -> AgentError {
    AgentError::TooSlow { agent, seconds: TIMEOUT.as_secs(), output }
}

/// The C library of a task's image. `None` if it has none, or another one.
pub async fn image_libc(runner: &TrialRunner<'_>, target: &dyn Target) -> Result<Option<Libc>, RolloutError> {
    // The names of the loaders, which programs for that library have in their header.
    const SCRIPT: &str = "for loader in /lib/ld-musl-* /lib64/ld-linux-* /lib/ld-linux-*; do
if [ -e $loader ]; then case $loader in *musl*) echo musl;; *) echo glibc;; esac; break; fi; done";
    let (sandbox, _) = fresh(runner, target, None).await?;
    let ran = sandbox.shell(SCRIPT, &ExecLimit::default()).await.map_err(AgentError::NotStarted)?;
    sandbox.destroy().await;
    Ok(match String::from_utf8_lossy(&ran.output).trim() {
        "musl" => Some(Libc::Musl),
        "glibc" => Some(Libc::Glibc),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Blame;
    use crate::verify::Blamed as _;

    #[test]
    fn slowness_is_no_proof_against_an_agent() {
        let check = |error: AgentError, expect: Blame| {
            let error = RolloutError::from(error);
            assert_eq!(error.blame(), Some(expect), "{error}");
        };
        let (agent, how, output) = ("openhands".to_owned(), "exit status 127".to_owned(), String::new());
        check(too_slow(agent.clone(), output.clone()), Blame::Infra);
        check(AgentError::CannotRun { agent, how, output }, Blame::Caller);
    }
}
