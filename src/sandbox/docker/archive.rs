//! Folders of a stopped container, as tar bytes.

use bollard::query_parameters::{ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder};
use std::io::Write as _;

use futures_util::StreamExt as _;

use crate::sandbox::{ArchiveError, ContainerId, EngineError, Spool, Spooled};

use super::api::{self, asked_again};
use super::{DockerEngine, Shared};

/// Maximum attempts of a download. An error that blames the container must occur twice.
const ATTEMPTS: usize = 3;
/// Lookups that must all be refused before a path counts as unreadable. The engine answers 500 for a loop of links, always, and for trouble
/// of its own, at times. Each lookup is repeated by [`asked_again`].
const REFUSALS: usize = 3;
/// Tar consists of blocks of this size, and ends with two zero blocks.
const BLOCK: usize = 512;

impl DockerEngine {
    /// Downloads the archive of one folder, with a size limit.
    ///
    /// A missing or unreadable `root` becomes part of a verdict, so it is believed only if the engine reports it twice, says the same when
    /// it looks the path up, and can look up `/` in the same container.
    pub(in crate::sandbox) async fn archive(
        &self,
        id: &ContainerId,
        root: &str,
        max_bytes: u64,
    ) -> Result<Spooled, ArchiveError> {
        let mut attempt = 1;
        let mut reported_before = None;
        loop {
            let error = match self.shared.download(id, root, max_bytes).await {
                Ok(tar) => return Ok(tar),
                Err(error @ ArchiveError::TooLarge { .. }) => return Err(error),
                Err(error) => error,
            };
            let reported = About::of(&error);
            if reported == About::Path
                && reported_before == Some(reported)
                && let Some(error) = self.shared.why_unread(id, root).await
            {
                return Err(error);
            }
            if attempt == ATTEMPTS {
                return Err(match error {
                    // Look-ups find it, or find nothing and cannot be relied on.
                    ArchiveError::Missing { root } | ArchiveError::Unreadable { root } => {
                        let message =
                            format!("the engine finds `{root}` in the container, and does not send it");
                        EngineError::Transport { action: "fetch files", message }.into()
                    }
                    other => other,
                });
            }
            tracing::debug!(container = %id, root, %error, attempt, "fetching files again");
            reported_before = Some(reported);
            attempt += 1;
        }
    }
}

/// What a failed download indicates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Path,
    Engine,
}

impl About {
    fn of(error: &ArchiveError) -> Self {
        match error {
            ArchiveError::Missing { .. }
            | ArchiveError::Unreadable { .. }
            | ArchiveError::AllUnreadable { .. }
            | ArchiveError::TooLarge { .. } => Self::Path,
            ArchiveError::Engine(_) => Self::Engine,
        }
    }
}

impl Shared {
    async fn download(&self, id: &ContainerId, root: &str, max_bytes: u64) -> Result<Spooled, ArchiveError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(root).build();
        let mut pieces = Box::pin(self.docker.download_from_container(id.as_str(), Some(options)));
        let mut tar = Spool::new();
        let mut progress = Progress::default();
        let spooled = |source| EngineError::Spool { source };
        while let Some(piece) = pieces.next().await {
            let piece = match piece.map_err(|error| self.error("fetch files", error)) {
                Ok(piece) => piece,
                Err(EngineError::Refused { status: 404, .. }) => {
                    return Err(ArchiveError::Missing { root: root.to_owned() });
                }
                // The engine reports a loop of links on the path with the same 500 as trouble of its own.
                Err(EngineError::Refused { .. }) => {
                    return Err(ArchiveError::Unreadable { root: root.to_owned() });
                }
                Err(error) => return Err(error.into()),
            };
            if tar.written() + piece.len() as u64 > max_bytes {
                return Err(ArchiveError::TooLarge { root: root.to_owned(), max: max_bytes });
            }
            progress.read(&piece);
            tar.write_all(&piece).map_err(spooled)?;
        }
        if !progress.is_complete() {
            let message =
                format!("the archive of `{root}` ends after {} bytes, in its middle", tar.written());
            return Err(EngineError::Transport { action: "fetch files", message }.into());
        }
        Ok(tar.finish().map_err(spooled)?)
    }

    /// What is wrong with a path of a container that answers for `/`, or refuses every path; `None` if that is not certain.
    ///
    /// The download's own status does not decide: a path that is only missing is part of the solver's work, and must not count as
    /// unreadable because the engine was in trouble at both downloads.
    async fn why_unread(&self, id: &ContainerId, root: &str) -> Option<ArchiveError> {
        for _ in 0..REFUSALS {
            match self.look_up(id, root).await {
                Found::Refused => {}
                Found::Missing if self.look_up(id, "/").await == Found::Yes => {
                    return Some(ArchiveError::Missing { root: root.to_owned() });
                }
                Found::Yes | Found::Missing | Found::Unanswered => return None,
            }
        }
        match self.look_up(id, "/").await {
            Found::Yes => Some(ArchiveError::Unreadable { root: root.to_owned() }),
            Found::Refused => Some(ArchiveError::AllUnreadable { root: root.to_owned() }),
            Found::Missing | Found::Unanswered => None,
        }
    }

    async fn look_up(&self, id: &ContainerId, path: &str) -> Found {
        let options = ContainerArchiveInfoOptionsBuilder::new().path(path).build();
        let look = || self.docker.get_container_archive_info(id.as_str(), Some(options.clone()));
        match asked_again(look).await {
            Ok(_) => Found::Yes,
            Err(error) => match api::status(&error) {
                Some(404) => Found::Missing,
                Some(_) => Found::Refused,
                None => Found::Unanswered,
            },
        }
    }
}

/// What the engine says when it looks up a path in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Yes,
    /// The path, or the container.
    Missing,
    Refused,
    Unanswered,
}

/// How far an archive was read. A body that a proxy truncated can end at any byte, also between two entries, and is then a shorter
/// archive without an error.
#[derive(Default)]
struct Progress {
    /// Bytes of the present block.
    block: Vec<u8>,
    /// Bytes of content, padded to blocks, before the next header.
    content: u64,
    /// Blocks of zeros in succession where a header was expected.
    zeros: usize,
    /// A header that cannot be read: nothing after it can be followed.
    damaged: bool,
}

impl Progress {
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.damaged && self.zeros < 2 {
            let skipped = usize::try_from(self.content).unwrap_or(usize::MAX).min(bytes.len());
            self.content -= skipped as u64;
            bytes = &bytes[skipped..];
            let taken = (BLOCK - self.block.len()).min(bytes.len());
            self.block.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.block.len() == BLOCK {
                self.end_block();
            }
        }
    }

    fn end_block(&mut self) {
        if self.block.iter().all(|byte| *byte == 0) {
            self.zeros += 1;
        } else if self.zeros > 0 {
            self.damaged = true;
        } else {
            let size = tar::Header::from_byte_slice(&self.block).entry_size().ok();
            match size.and_then(|size| size.checked_next_multiple_of(BLOCK as u64)) {
                Some(size) => self.content = size,
                None => self.damaged = true,
            }
        }
        self.block.clear();
    }

    /// Whether the archive's end was read: two blocks of zeros.
    fn is_complete(&self) -> bool {
        self.zeros == 2 && !self.damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_archives_are_detected() {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in
            [("a".to_owned(), vec![0; 2000]), ("b".repeat(300), vec![7; 512]), ("c".to_owned(), vec![])]
        {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, bytes.as_slice()).unwrap();
        }
        let whole = tar.into_inner().unwrap();
        let is_complete = |tar: &[u8], piece: usize| {
            let mut progress = Progress::default();
            tar.chunks(piece).for_each(|piece| progress.read(piece));
            progress.is_complete()
        };
        for piece in [1, 7, BLOCK, 700, usize::MAX] {
            assert!(is_complete(&whole, piece), "pieces of {piece} bytes");
        }
        assert!(is_complete(&[whole.clone(), vec![0; 8192]].concat(), 700), "padded to a record");
        for end in 0..whole.len() {
            assert!(!is_complete(&whole[..end], 700), "cut off after {end} of {} bytes", whole.len());
        }
    }
}
