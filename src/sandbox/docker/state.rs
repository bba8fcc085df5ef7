//! Reads a container's state, and its differences from the image, from the engine.

use bollard::models::{ChangeType, ContainerState};
use bollard::query_parameters::{
    KillContainerOptionsBuilder, TopOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

use crate::sandbox::{Change, ChangeKind, ContainerId, EngineError, StoppedState};

use super::api::{self, asked_again};
use super::launch::GUEST_FOLDER;
use super::{DockerEngine, Shared};

/// Maximum time between the end of the stream and the engine's record of the exit. After it the
/// container counts as running.
pub(super) const EXIT_NOTED: Duration = Duration::from_secs(5);

impl Shared {
    pub(super) async fn kill(&self, name: &str) -> Result<(), EngineError> {
        // Process 1 ignores SIGTERM, so `stop` would wait ten seconds before its SIGKILL.
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        // The engine answers a second kill with 409.
        match asked_again(|| self.docker.kill_container(name, Some(options.clone()))).await {
            Ok(()) => Ok(()),
            Err(error) if api::status(&error) == Some(409) => Ok(()),
            Err(error) => {
                if self.kill_from_host(name).await == 0 {
                    return Err(self.error("kill a container", error));
                }
                let killed = asked_again(|| self.docker.kill_container(name, Some(options.clone()))).await;
                match killed {
                    Ok(()) => Ok(()),
                    Err(error) if api::status(&error) == Some(409) => Ok(()),
                    Err(error) => Err(self.error("kill a container", error)),
                }
            }
        }
    }

    /// Kills every process of a container one by one, and returns their number.
    ///
    /// The engine kills process 1 only, and waits for its end. That may never come, e.g. if a
    /// solver gave it the idle scheduling class and runs busy loops. Only for an engine of this
    /// host, since its process numbers are ours. A process counts only if its control group names
    /// the container.
    async fn kill_from_host(&self, name: &str) -> usize {
        let options = TopOptionsBuilder::new().ps_args("-eo pid").build();
        let (Ok(inspected), Ok(top)) = (
            self.docker.inspect_container(name, None).await,
            self.docker.top_processes(name, Some(options)).await,
        ) else {
            return 0;
        };
        let Some(id) = inspected.id.filter(|id| !id.is_empty()) else { return 0 };
        let numbers = top.processes.into_iter().flatten();
        let mut killed = 0;
        for number in numbers.filter_map(|columns| columns.first()?.parse::<i32>().ok()) {
            let groups = std::fs::read_to_string(format!("/proc/{number}/cgroup")).unwrap_or_default();
            let Some(process) = Pid::from_raw(number).filter(|_| groups.contains(&id)) else { continue };
            match kill_process(process, Signal::KILL) {
                Ok(()) => killed += 1,
                Err(error) => tracing::debug!(container = name, number, %error, "cannot kill a process"),
            }
        }
        tracing::warn!(
            container = name,
            killed,
            "the engine cannot kill a container, so its processes were killed"
        );
        killed
    }
}

impl Shared {
    /// The state of a container. It is requested until the engine gives a reliable answer.
    pub(super) async fn inspect_state(&self, name: &str) -> Result<ContainerState, EngineError> {
        let inspected = asked_again(|| self.docker.inspect_container(name, None)).await;
        Ok(inspected.map_err(|error| self.error("inspect a container", error))?.state.unwrap_or_default())
    }
}

impl DockerEngine {
    /// Kills every process. A container that has ended is no error.
    pub(in crate::sandbox) async fn kill(&self, id: &ContainerId) -> Result<(), EngineError> {
        tracing::debug!(container = %id, "killing a container");
        self.shared.kill(id.as_str()).await?;
        // From now on nothing changes the container's files, and the engine reads them.
        self.ended(id).await?;
        self.shared.make_account_files_plain(id).await
    }

    /// How the container ended.
    pub(in crate::sandbox) async fn state(&self, id: &ContainerId) -> Result<StoppedState, EngineError> {
        let state = self.shared.inspect_state(id.as_str()).await?;
        Ok(StoppedState {
            exit_code: state.exit_code.unwrap_or_default(),
            oom_killed: state.oom_killed.unwrap_or_default(),
        })
    }

    /// Waits until the engine has recorded the end of a killed container.
    pub(super) async fn ended(&self, id: &ContainerId) -> Result<(), EngineError> {
        let options = WaitContainerOptionsBuilder::new().condition("not-running").build();
        let mut exit = Box::pin(self.shared.docker.wait_container(id.as_str(), Some(options)));
        match tokio::time::timeout(EXIT_NOTED, exit.next()).await {
            // Bollard reports a status other than 0 as an error of a kind of its own.
            Ok(None | Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. }))) => Ok(()),
            Ok(Some(Err(error))) => Err(self.shared.error("wait for a container", error)),
            Err(_) => Err(EngineError::Transport {
                action: "wait for a container",
                message: format!("killed, but not gone after {} s", EXIT_NOTED.as_secs()),
            }),
        }
    }

    /// Differences from the image.
    pub(in crate::sandbox) async fn changes(&self, id: &ContainerId) -> Result<Vec<Change>, EngineError> {
        let list = || self.shared.docker.container_changes(id.as_str());
        let changes = asked_again(list).await;
        let changes = changes.map_err(|error| self.shared.error("list changes", error))?.unwrap_or_default();
        let kind = |kind| match kind {
            ChangeType::_0 => ChangeKind::Modified,
            ChangeType::_1 => ChangeKind::Added,
            ChangeType::_2 => ChangeKind::Deleted,
        };
        let ours = |path: &str| {
            path.strip_prefix(GUEST_FOLDER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let changes = changes.into_iter().filter(|change| !ours(&change.path));
        Ok(changes.map(|change| Change { path: change.path, kind: kind(change.kind) }).collect())
    }
}
