//! Who acts in a sandbox: the user of its shells, and the end of its processes.

use std::time::Duration;

use crate::guest::frame::{ToGuest, ToHost};

use super::account;
use super::request::{MAX_PATH, fits};
use super::sandbox::FILE_TIMEOUT;
use super::{GetError, Sandbox, SandboxError};

/// The guest kills in one step; it is late only where it gets hardly any processor time.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of the files that list users and groups.
const MAX_ACCOUNTS: u64 = 1 << 20;
/// More groups than any user has; the kernel's own limit is 65,536.
const MAX_GROUPS: usize = 4096;

impl Sandbox {
    /// Sets the user (a name or a number, optionally with a group after a colon) of all shells and terminals started from here
    /// on. Other programs, and files, stay root's. `false` if the container has no such user.
    pub async fn act_as(&self, user: &str) -> Result<bool, SandboxError> {
        let passwd = self.known("/etc/passwd").await?;
        let Some(account) = account::find(user, &passwd, &self.known("/etc/group").await?) else {
            return Ok(false);
        };
        // The files belong to the image and are untrusted.
        fits("the user's name", account.name.len(), MAX_PATH)?;
        fits("the user's home folder", account.home.len(), MAX_PATH)?;
        fits("the list of the user's groups", account.groups.len(), MAX_GROUPS)?;
        self.done(|id| ToGuest::Account { id, account }, FILE_TIMEOUT).await.map(|()| true)
    }

    /// Kills every process in it but the guest, also those in sessions of their own. The files stay, nothing runs until the next request, and
    /// the next command begins in a new shell.
    pub async fn end_processes(&self) -> Result<(), SandboxError> {
        self.done(|id| ToGuest::KillAll { id }, KILL_TIMEOUT).await
    }

    /// Sends a request whose only answer is that it is done.
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

    /// A small text file of the container, or an empty text if it does not exist.
    async fn known(&self, path: &str) -> Result<String, SandboxError> {
        match self.get(path, MAX_ACCOUNTS).await {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(GetError::Sandbox(error)) => Err(error),
            Err(_) => Ok(String::new()),
        }
    }
}
