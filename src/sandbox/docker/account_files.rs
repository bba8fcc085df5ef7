//! The account files of a container, `/etc/passwd` and `/etc/group`.
//!
//! dockerd and runc open both files at every start of a container. Docker 20.10 opens `/etc/group`
//! for every archive too. They do it as root of the host, without a time limit, and while dockerd
//! holds the container's lock. If a FIFO is in their place, such a request never ends, and neither
//! does any later one about the container, e.g. its removal.
//!
//! A solver is root in its container. So the files are checked as soon as its processes have ended,
//! and before a container starts with its state.

use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;

use crate::sandbox::{ContainerId, EngineError, Preload};

use super::Shared;
use super::api::{self, asked_again};

/// The folder of both files.
const FOLDER: &str = "/etc";
/// The names of the files, with the smallest contents that let a container start as root.
const FILES: [(&str, &str); 2] = [("passwd", "root:x:0:0:root:/root:/bin/bash\n"), ("group", "root:x:0:\n")];
/// Maximum size of an account file. The engine parses all of it. Debian's files have 1 to 2 kB.
const MAX_BYTES: i64 = 1 << 20;
/// Go's `os.FileMode` bits of everything that is no regular file, e.g. a folder, a link or a FIFO
/// (`fs.ModeType`).
const MODE_TYPE: u32 = 0x8f28_0000;
const MODE_FOLDER: u32 = 1 << 31;

impl Shared {
    /// Replaces account files that are links, FIFOs, devices or too long. The new ones have the
    /// smallest contents. A folder stays, since the engine refuses it at once.
    pub(super) async fn make_account_files_plain(&self, id: &ContainerId) -> Result<(), EngineError> {
        for (name, content) in FILES {
            let options = ContainerArchiveInfoOptionsBuilder::new().path(&format!("{FOLDER}/{name}")).build();
            let look = || self.docker.get_container_archive_info(id.as_str(), Some(options.clone()));
            let found = match asked_again(look).await {
                Ok(found) => found,
                // If the engine cannot resolve a path, it cannot open it either.
                Err(error) if api::status(&error).is_some() => continue,
                Err(error) => return Err(self.error("look a file up", error)),
            };
            if !is_plain(found.file_mode, found.size) {
                tracing::debug!(container = %id, name, mode = found.file_mode, "replacing an account file");
                let tar = file_tar(name, content).map_err(|source| EngineError::Spool { source })?;
                self.upload(id, &Preload { dest: FOLDER.to_owned(), tar: tar.into() }).await?;
            }
        }
        Ok(())
    }
}

fn is_plain(mode: u32, bytes: i64) -> bool {
    match mode & MODE_TYPE {
        0 => bytes <= MAX_BYTES,
        kind => kind == MODE_FOLDER,
    }
}

fn file_tar(name: &str, content: &str) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, name, content.as_bytes())?;
    tar.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_files_and_folders_are_left_to_the_engine() {
        let check =
            |mode: u32, bytes: i64, expect: bool| assert_eq!(is_plain(mode, bytes), expect, "{mode:o}");
        check(0o644, 1_500, true);
        check(0o644, MAX_BYTES + 1, false);
        check((1 << 31) | 0o755, 4_096, true);
        check((1 << 25) | 0o644, 0, false);
        check((1 << 27) | 0o777, 11, false);
        check((1 << 26) | (1 << 21) | 0o666, 0, false);
    }
}
