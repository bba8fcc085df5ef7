//! Copies of the guest binary, one for each container. If containers shared one file, programs
//! could send messages between them by locks on it, although the containers share no network and no
//! writable file.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::sandbox::ContainerId;
use crate::sandbox::owner::{Life, Owner};

use super::Shared;

/// Minimum age of an unused copy that is removed. A younger one may belong to a container that is
/// being created.
const UNUSED_AGE: Duration = Duration::from_secs(600);

impl Shared {
    /// The container's copy, made if it is missing.
    pub(super) async fn own_guest(&self, container: &str) -> io::Result<PathBuf> {
        let (from, to) = (self.guest.clone(), self.guest_copy(container));
        // The guest has about a megabyte, but a disk may be slow.
        let copied = tokio::task::spawn_blocking(move || {
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::copy(from, &to)?;
            Ok(to)
        });
        copied.await.map_err(io::Error::other)?
    }

    /// Removes the copy of a removed container.
    pub(super) fn forget_guest(&self, container: &str) {
        match fs::remove_file(self.guest_copy(container)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(container, %error, "cannot remove a copy of the guest");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Removes copies for containers that do not exist. Their owner ended before it removed them.
    /// `containers` are those of this engine. The folder also has copies for other engines of this
    /// host.
    pub(super) fn sweep_guests(&self, containers: &BTreeSet<String>) {
        let Ok(copies) = fs::read_dir(self.guest_copies()) else { return };
        for copy in copies.flatten() {
            let name = copy.file_name().to_string_lossy().into_owned();
            let written = copy.metadata().and_then(|found| found.modified());
            let age = written.ok().and_then(|written| SystemTime::now().duration_since(written).ok());
            if !containers.contains(&name)
                && age.is_some_and(|age| age > UNUSED_AGE)
                && self.is_left_over(&name)
            {
                self.forget_guest(&name);
            }
        }
    }

    /// Whether no living process, including this one, can have a container of this name.
    fn is_left_over(&self, name: &str) -> bool {
        if name.starts_with(&self.prefix) {
            return !self.live().contains_key(&ContainerId(name.to_owned()));
        }
        has_dead_owner(name, &self.owner, Life::of)
    }

    fn guest_copies(&self) -> PathBuf {
        self.cache.join("guests")
    }

    fn guest_copy(&self, container: &str) -> PathBuf {
        self.guest_copies().join(container)
    }
}

/// Whether the process that chose this name ([`super::prefix`]) has certainly ended, as far as
/// `observer` can know.
fn has_dead_owner(name: &str, observer: &Owner, life: impl Fn(u32) -> Life) -> bool {
    let mut fields = name.split('-').skip(1);
    let (Some(host), Some(pid), Some(started)) = (fields.next(), fields.next(), fields.next()) else {
        return false;
    };
    let (Ok(pid), Ok(started)) = (pid.parse(), started.parse()) else { return false };
    // A name does not contain the boot. But after a reboot, the process number has another start
    // time.
    let owner = Owner { host: host.to_owned(), boot: observer.boot.clone(), pid, started };
    owner.is_dead(observer, life)
}

#[cfg(test)]
mod tests {
    use super::super::prefix;
    use super::*;

    #[test]
    fn only_copies_of_processes_that_have_ended_are_left_over() {
        let observer = Owner { host: "0123456789ab".into(), boot: "b".into(), pid: 1, started: 10 };
        let check = |owner: &Owner, life: Life, expect: bool| {
            let name = format!("{}4", prefix(owner));
            assert_eq!(has_dead_owner(&name, &observer, |_| life), expect, "{name} {life:?}");
        };
        let other = Owner { pid: 7, ..observer.clone() };
        // The container is another engine's, so this engine does not list it.
        check(&other, Life::Started(10), false);
        check(&other, Life::Ended, true);
        check(&other, Life::Unknown, false);
        check(&other, Life::Started(11), true);
        check(&Owner { host: "ba9876543210".into(), ..other }, Life::Ended, false);
        for name in ["", "x", "termsmith", "termsmith-0123456789ab-7", "termsmith-0123456789ab-x-10-0-4"] {
            assert!(!has_dead_owner(name, &observer, |_| Life::Ended), "{name}");
        }
    }
}
