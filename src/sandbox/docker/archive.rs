//! Downloads folders of a stopped container as tar bytes.

use bollard::query_parameters::{ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder};
use std::io::Write as _;
use std::ops::ControlFlow;

use futures_util::StreamExt as _;

use crate::sandbox::{ArchiveError, ContainerId, EngineError, Spool, Spooled};

use super::api::{self, asked_again};
use super::{DockerEngine, Shared};

/// Maximum attempts of a download. An error that blames the container must occur twice.
const ATTEMPTS: usize = 3;
/// Lookups of a path, each followed by a lookup of `/`. All must agree before the path counts as
/// unreadable. The engine always answers 500 for a loop of links, and sometimes for trouble of its
/// own. [`asked_again`] repeats each lookup.
const REFUSALS: usize = 3;
/// Size of a tar block. An archive ends with two blocks of zeros.
const BLOCK: usize = 512;

impl DockerEngine {
    /// Downloads the archive of one folder, with a size limit.
    ///
    /// A missing or unreadable `root` becomes part of a verdict. So the engine is believed only if
    /// three things hold. It reports the error twice, a lookup of the path says the same, and a
    /// lookup of `/` in the same container works.
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
                && let Some(unread) = self.shared.why_unread(id, root).await
            {
                let root = root.to_owned();
                return Err(match unread {
                    Unread::Missing => ArchiveError::Missing { root },
                    Unread::Path => ArchiveError::Unreadable { root },
                    Unread::All => ArchiveError::AllUnreadable { root },
                });
            }
            if attempt == ATTEMPTS {
                return Err(match error {
                    // A lookup finds the path. Or it finds nothing, and cannot be relied on.
                    ArchiveError::Missing { root } | ArchiveError::Unreadable { root } => {
                        let message =
                            format!("the engine finds `{root}` in the container, but does not send it");
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

/// The cause that a failed download points to.
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
                // The engine answers 500 for a loop of links on the path, and for trouble of its
                // own.
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

    /// Why a path cannot be read, in a container that answers for `/` or that refuses every path.
    /// `None` if that is not certain.
    async fn why_unread(&self, id: &ContainerId, root: &str) -> Option<Unread> {
        let mut looks = Vec::new();
        loop {
            looks.push((self.look_up(id, root).await, self.look_up(id, "/").await));
            if let ControlFlow::Break(unread) = conclusion(&looks) {
                return unread;
            }
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

/// The result of lookups of a path that the engine does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Missing,
    /// The engine refuses the path, but not `/`.
    Path,
    /// The engine refuses every path.
    All,
}

/// The conclusion from lookups of a path, each with one of `/`, once no more are needed. `None` if
/// nothing is certain.
///
/// The download's own status does not decide. A path that is only missing is part of the solver's
/// work. It must not count as unreadable because the engine was in trouble during both downloads.
/// Refusals must last until `/` is looked up. A full disk of the host refuses everything, and once
/// looked like the solver's failure.
fn conclusion(looks: &[(Found, Found)]) -> ControlFlow<Option<Unread>> {
    let mut shown = None;
    for look in looks {
        let seen = match look {
            (Found::Missing, Found::Yes) => return ControlFlow::Break(Some(Unread::Missing)),
            (Found::Refused, Found::Yes) => Unread::Path,
            (Found::Refused, Found::Refused) => Unread::All,
            (Found::Yes | Found::Missing | Found::Unanswered, _)
            | (Found::Refused, Found::Missing | Found::Unanswered) => return ControlFlow::Break(None),
        };
        if *shown.get_or_insert(seen) != seen {
            return ControlFlow::Break(None);
        }
    }
    if looks.len() == REFUSALS { ControlFlow::Break(shown) } else { ControlFlow::Continue(()) }
}

/// The engine's answer to a lookup of a path in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Yes,
    /// The path or the container is missing.
    Missing,
    Refused,
    Unanswered,
}

/// How far an archive was read. A proxy may cut a body off at any byte, also between two entries.
/// Such a body is a shorter archive without an error.
#[derive(Default)]
struct Progress {
    /// The bytes of the present block so far.
    block: Vec<u8>,
    /// Bytes of content before the next header, padded to blocks.
    content: u64,
    /// Number of successive blocks of zeros in place of a header.
    zeros: usize,
    /// A header could not be read, so nothing after it can be followed.
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

    /// Whether the end of the archive was read: two blocks of zeros.
    fn is_complete(&self) -> bool {
        self.zeros == 2 && !self.damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine refuses `refusals` lookups, and then says that the path and `/` are `of` this
    /// kind.
    #[test]
    fn only_lasting_refusals_make_a_path_unreadable() {
        use Found::{Missing, Refused, Unanswered, Yes};
        let check = |of: (Found, Found), refusals: usize, expect: Option<Unread>| {
            let found = |lookup: usize, is: Found| if lookup < refusals { Refused } else { is };
            let mut looks = Vec::new();
            let concluded = loop {
                looks.push((found(2 * looks.len(), of.0), found(2 * looks.len() + 1, of.1)));
                if let ControlFlow::Break(unread) = conclusion(&looks) {
                    break unread;
                }
            };
            assert_eq!(concluded, expect, "{of:?} after {refusals} refusals");
        };
        check((Missing, Yes), 0, Some(Unread::Missing));
        check((Refused, Yes), 0, Some(Unread::Path));
        check((Refused, Refused), 0, Some(Unread::All));
        for of in [(Yes, Yes), (Missing, Missing), (Unanswered, Yes), (Refused, Unanswered)] {
            check(of, 0, None);
        }
        // Whenever the trouble ends, the path is there.
        for refusals in 1..2 * REFUSALS {
            check((Yes, Yes), refusals, None);
        }
    }

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
