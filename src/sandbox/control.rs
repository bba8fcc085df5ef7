//! Sets the user of a sandbox's shells, and ends its processes.

use std::time::Duration;

use crate::guest::frame::{ToGuest, ToHost};

use super::account;
use super::request::{MAX_PATH, fits};
use super::sandbox::FILE_TIMEOUT;
use super::{GetError, Sandbox, SandboxError};

/// Time-out of a kill. The guest kills in one step, and takes long only if it gets hardly any
/// processor time.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of the files that list users and groups.
const MAX_ACCOUNTS: u64 = 1 << 20;
/// Maximum number of groups of a user. The kernel's own limit is 65,536.
const MAX_GROUPS: usize = 4096;

impl Sandbox {
    /// Sets the user of all shells and terminals that start from now on. `user` is a name or a
    /// number, and perhaps a colon and a group. Other programs, and files, stay root's. Returns
    /// false if the container has no such user.
    pub async fn act_as(&self, user: &str) -> Result<bool, SandboxError> {
        let passwd = self.known("/etc/passwd").await?;
        let Some(account) = account::find(user, &passwd, &self.known("/etc/group").await?) else {
            return Ok(false);
        };
        // These files belong to the image, so they are untrusted.
        fits("the user's name", account.name.len(), MAX_PATH)?;
        fits("the user's home folder", account.home.len(), MAX_PATH)?;
        fits("the list of the user's groups", account.groups.len(), MAX_GROUPS)?;
        self.done(|id| ToGuest::Account { id, account }, FILE_TIMEOUT).await.map(|()| true)
    }

    /// Kills every process in the sandbox but the guest, also those in sessions of their own. The
    /// files stay. Nothing runs until the next request, and the next command starts a new shell.
    pub async fn end_processes(&self) -> Result<(), SandboxError> {
        self.done(|id| ToGuest::KillAll { id }, KILL_TIMEOUT).await
    }

    /// Sends a request with only one answer: that it is done.
    async fn done(
        &self,
        request: impl FnOnce(u32) -> ToGuest,
        timeout: Duration,
    ) -> Result<(), SandboxError> {
        let mut operation = self.begin(request).await?;
        match self.next(&mut operation, timeout).await? {
            ToHost::Done { .. } => Ok(()),
            ToHost::Failed { errno, limit, message, .. } => Err(self.failed(errno, limit, &message).await),
            other => Err(self.nonsense(&other).await),
        }
    }

    /// A small text file of the container. Empty if it does not exist.
    async fn known(&self, path: &str) -> Result<String, SandboxError> {
        match self.get(path, MAX_ACCOUNTS).await {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(GetError::Sandbox(error)) => Err(error),
            Err(_) => Ok(String::new()),
        }
    }
}
