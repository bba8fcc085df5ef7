//! A copy of the guest binary for each container. Locks on one file that several containers have mounted would carry messages between
//! them, although they share no network and no writable file.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::Shared;

/// Minimum age of a copy that no container uses: a younger one may be of a container that is being created.
const UNUSED_AGE: Duration = Duration::from_secs(600);

impl Shared {
    /// The container's copy, made if it is missing.
    pub(super) async fn own_guest(&self, container: &str) -> io::Result<PathBuf> {
        let (from, to) = (self.guest.clone(), self.guest_copy(container));
        // About a megabyte, but a disk may be slow.
        let copied = tokio::task::spawn_blocking(move || {
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::copy(from, &to)?;
            Ok(to)
        });
        copied.await.map_err(io::Error::other)?
    }

    /// Removes the copy of a container that is gone.
    pub(super) fn forget_guest(&self, container: &str) {
        match fs::remove_file(self.guest_copy(container)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(container, %error, "cannot remove a copy of the guest");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Removes copies of containers that do not exist: their owner ended before it removed them.
    pub(super) fn sweep_guests(&self, containers: &BTreeSet<String>) {
        let Ok(copies) = fs::read_dir(self.guest_copies()) else { return };
        for copy in copies.flatten() {
            let name = copy.file_name().to_string_lossy().into_owned();
            let written = copy.metadata().and_then(|found| found.modified());
            let age = written.ok().and_then(|written| SystemTime::now().duration_since(written).ok());
            if !containers.contains(&name) && age.is_some_and(|age| age > UNUSED_AGE) {
                self.forget_guest(&name);
            }
        }
    }

    fn guest_copies(&self) -> PathBuf {
        self.cache.join("guests")
    }

    fn guest_copy(&self, container: &str) -> PathBuf {
        self.guest_copies().join(container)
    }
}
