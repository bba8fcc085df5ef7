//! Reads the archives of a solver's container. They are hostile input.
//!
//! Names, depth, counts and sizes in headers are checked before any content is used. Links are
//! copied, and never followed. Devices, FIFOs and sockets are dropped, and named in the log. Set-id
//! bits are cleared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::entries::Names;
use super::fingerprint::{self, EntryKind, Facts, FileFingerprint, Fingerprint, StateHashes};
use crate::sandbox::{Spool, Spooled};
use tar::{Archive, Builder, EntryType, Header};

/// Limits of a submission.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionLimits {
    /// Bytes of all contents.
    pub bytes: u64,
    /// Number of entries of all kinds.
    pub entries: u32,
    /// Number of components of one path.
    pub depth: u32,
    /// Bytes of all paths and of the targets of links.
    pub names: u64,
}

impl SubmissionLimits {
    /// Results of terminal tasks have a few megabytes. A much larger submission is an accident or
    /// an attack, and failing it costs less than filling the host's disk.
    pub const STANDARD: Self = Self { bytes: 256 << 20, entries: 100_000, depth: 64, names: 16 << 20 };
}

impl Default for SubmissionLimits {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// Why a submission is rejected. The solver is at fault, so the trial fails.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    #[error("`{root}` holds more than {limit} bytes")]
    TooLarge { root: String, limit: u64 },
    #[error("`{root}` holds more than {limit} entries")]
    TooMany { root: String, limit: u32 },
    #[error("`{root}` has paths of more than {limit} components")]
    TooDeep { root: String, limit: u32 },
    #[error("`{root}` has paths of more than {limit} bytes")]
    TooLong { root: String, limit: usize },
    #[error("the paths in `{root}` have more than {limit} bytes")]
    TooManyNames { root: String, limit: u64 },
    #[error("the archive of `{root}` is damaged: {message}")]
    Damaged { root: String, message: String },
}

/// Why the check of a submission ended early.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Submission(#[from] SubmissionError),
    /// The host could not write a temporary file for a large archive. The solver is not at fault.
    #[error("a temporary file cannot be read or written: {0}")]
    Host(std::io::Error),
}

impl CheckError {
    /// The cause of an error while the archive of `root` was copied. Errors of the operating system
    /// are the host's.
    fn of(root: &str, error: std::io::Error) -> Self {
        let os_error = |error: &(dyn std::error::Error + 'static)| {
            error.downcast_ref::<std::io::Error>().is_some_and(|error| error.raw_os_error().is_some())
        };
        let mut sources =
            std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        if sources.any(os_error) {
            return Self::Host(error);
        }
        SubmissionError::Damaged { root: root.to_owned(), message: error.to_string() }.into()
    }
}

/// A checked submission.
#[derive(Debug)]
pub struct CheckedSubmission {
    /// An archive. Its paths begin with the requested prefix.
    pub files: Packing,
    pub state: SubmissionState,
}

/// Facts about a checked submission, without its files.
#[derive(Debug, Default)]
pub struct SubmissionState {
    /// Hashes of paths, types, modes, owners, contents and link targets. Times and interpreter
    /// caches do not count. `None` if they are not known.
    pub hashes: Option<StateHashes>,
    /// Regular files by their absolute path in the solver's container.
    pub fingerprint: Fingerprint,
    /// Dropped paths with reasons: the first few, and the number of the others.
    pub dropped: Vec<String>,
}

/// Maximum number of dropped entries that are named.
const NAMED: usize = 20;
/// Maximum characters of one name.
const NAMED_CHARS: usize = 200;
/// Maximum bytes of a path in the verifier's container. Linux takes 4,095 (`PATH_MAX`), and the
/// folders in which engines unpack need some of them.
const MAX_PATH: usize = 3_800;

/// Entries that are not copied.
#[derive(Debug, Default)]
struct Dropped {
    named: Vec<String>,
    others: u32,
}

impl Dropped {
    fn push(&mut self, path: &Path, why: &str) {
        if self.named.len() == NAMED {
            self.others += 1;
            return;
        }
        let shown: String = path.to_string_lossy().chars().take(NAMED_CHARS).collect();
        self.named.push(format!("{shown}: {why}"));
    }

    fn listed(mut self) -> Vec<String> {
        if self.others > 0 {
            self.named.push(format!("{} others", self.others));
        }
        self.named
    }
}

/// A tar archive while it is written.
pub struct Packing(Builder<Spool>);

impl Packing {
    pub(super) fn new() -> Self {
        Self(Builder::new(Spool::new()))
    }

    /// Adds a regular file that belongs to root.
    pub fn add(&mut self, path: &str, mode: u32, bytes: &[u8]) -> std::io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(mode);
        header.set_size(bytes.len() as u64);
        self.0.append_data(&mut header, path, bytes)
    }

    /// Ends the archive.
    pub fn finish(self) -> std::io::Result<Spooled> {
        self.0.into_inner()?.finish()
    }
}

impl std::fmt::Debug for Packing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Packing").finish_non_exhaustive()
    }
}

/// A reader that hashes everything that is read through it.
struct Hashing<R> {
    from: R,
    hasher: blake3::Hasher,
    read: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.read += count as u64;
        Ok(count)
    }
}

/// Checks the archives of `roots`, which are absolute paths with tar bytes. Writes them below
/// `prefix`.
pub fn check_archives(
    prefix: &str,
    roots: &[(String, Spooled)],
    limits: &SubmissionLimits,
) -> Result<CheckedSubmission, CheckError> {
    let mut out = Layout {
        files: Packing::new(),
        state: BTreeMap::new(),
        fingerprint: Fingerprint::new(),
        dropped: Dropped::default(),
    };
    let mut left = Left { bytes: limits.bytes, entries: limits.entries, names: limits.names };
    for (root, tar) in roots {
        // The engine names entries relative to the root's parent.
        let parent = Path::new(root).parent().unwrap_or(Path::new("/"));
        let parent = parent.strip_prefix("/").unwrap_or(parent);
        let base = Path::new(prefix).join(parent);
        add_root(&mut out, &base, root, tar, limits, &mut left)?;
    }
    let entries = out.state.iter().filter(|(path, _)| !is_cache(path));
    let hashes = StateHashes::of(entries.map(|(path, facts)| (path.as_os_str().as_bytes(), facts)));
    let state =
        SubmissionState { hashes: Some(hashes), fingerprint: out.fingerprint, dropped: out.dropped.listed() };
    Ok(CheckedSubmission { files: out.files, state })
}

struct Layout {
    files: Packing,
    state: BTreeMap<PathBuf, Facts>,
    fingerprint: Fingerprint,
    dropped: Dropped,
}

struct Left {
    bytes: u64,
    entries: u32,
    names: u64,
}

fn add_root(
    out: &mut Layout,
    base: &Path,
    root: &str,
    tar: &Spooled,
    limits: &SubmissionLimits,
    left: &mut Left,
) -> Result<(), CheckError> {
    let damaged = |error: std::io::Error| CheckError::of(root, error);
    let mut archive = Archive::new(tar.reader());
    let mut names = Names::default();
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        if names.read(&mut entry).map_err(damaged)? {
            continue;
        }
        let Names { path, link, uid, gid } = std::mem::take(&mut names);
        let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
        let link = link.or_else(|| entry.link_name_bytes().map(Cow::into_owned)).unwrap_or_default();
        left.entries = left
            .entries
            .checked_sub(1)
            .ok_or_else(|| SubmissionError::TooMany { root: root.to_owned(), limit: limits.entries })?;
        let name = Path::new(OsStr::from_bytes(&path)).to_path_buf();
        let Some(path) = plain(&name) else {
            out.dropped.push(&name, "not a plain relative path");
            continue;
        };
        if Path::new(root).file_name().is_some_and(|top| !path.starts_with(top)) {
            let message = format!("`{}` is not below it", path.display().to_string().escape_debug());
            return Err(SubmissionError::Damaged { root: root.to_owned(), message }.into());
        }
        if path.components().count() > limits.depth as usize {
            return Err(SubmissionError::TooDeep { root: root.to_owned(), limit: limits.depth }.into());
        }
        let place = base.join(&path);
        if place.as_os_str().len() > MAX_PATH {
            return Err(SubmissionError::TooLong { root: root.to_owned(), limit: MAX_PATH }.into());
        }
        left.names = left
            .names
            .checked_sub((place.as_os_str().len() + link.len()) as u64)
            .ok_or_else(|| SubmissionError::TooManyNames { root: root.to_owned(), limit: limits.names })?;
        // In the archive of a real folder, no entry is below a link or a file. Unpacked, such an
        // entry would follow the link.
        if place
            .ancestors()
            .skip(1)
            .any(|above| out.state.get(above).is_some_and(|is| is.kind != EntryKind::Folder))
        {
            out.dropped.push(&path, "below something that is no folder");
            continue;
        }
        let size = entry.size();
        left.bytes = left
            .bytes
            .checked_sub(size)
            .ok_or_else(|| SubmissionError::TooLarge { root: root.to_owned(), limit: limits.bytes })?;
        let mut header = clean_header(entry.header());
        if let Some(uid) = uid {
            header.set_uid(uid);
        }
        if let Some(gid) = gid {
            header.set_gid(gid);
        }
        let mode = header.mode().unwrap_or(0);
        let owner = format!("{}:{}", header.uid().unwrap_or(0), header.gid().unwrap_or(0));
        let absolute = |path: &Path| {
            let parent = Path::new(root).parent().unwrap_or(Path::new("/"));
            parent.join(path).to_string_lossy().into_owned()
        };
        let kind = entry.header().entry_type();
        let facts = match kind {
            EntryType::Regular | EntryType::Continuous => {
                header.set_entry_type(EntryType::Regular);
                header.set_size(size);
                let absolute = absolute(&path);
                let file = if size <= fingerprint::MAX_PARSED {
                    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
                    entry.read_to_end(&mut content).map_err(damaged)?;
                    if content.len() as u64 != size {
                        return Err(damaged(ErrorKind::UnexpectedEof.into()));
                    }
                    out.files.0.append_data(&mut header, &place, content.as_slice()).map_err(damaged)?;
                    FileFingerprint::of(&absolute, &content)
                } else {
                    let mut content = Hashing { from: &mut entry, hasher: blake3::Hasher::new(), read: 0 };
                    out.files.0.append_data(&mut header, &place, &mut content).map_err(damaged)?;
                    if content.read != size {
                        return Err(damaged(ErrorKind::UnexpectedEof.into()));
                    }
                    FileFingerprint::of_large(content.hasher.finalize(), size)
                };
                let facts = Facts::of_file(&format!("{mode:o} {owner}"), &file);
                if !is_cache(&path) {
                    out.fingerprint.insert(absolute, file);
                }
                facts
            }
            EntryType::Directory => {
                header.set_size(0);
                out.files.0.append_data(&mut header, &place, std::io::empty()).map_err(damaged)?;
                Facts::of_folder(&format!("{mode:o} {owner}"))
            }
            EntryType::Symlink => {
                header.set_size(0);
                let target = Path::new(OsStr::from_bytes(&link));
                out.files.0.append_link(&mut header, &place, target).map_err(damaged)?;
                Facts::of_other(format!("link {owner} {}", String::from_utf8_lossy(&link)))
            }
            EntryType::Link => {
                // A hard link must lead to an earlier file of this archive. Otherwise it is
                // dropped.
                let linked = plain(Path::new(OsStr::from_bytes(&link))).and_then(|target| {
                    let facts = out.state.get(&base.join(&target))?;
                    (facts.kind == EntryKind::File).then(|| (target, facts.clone()))
                });
                let Some((target, facts)) = linked else {
                    out.dropped.push(&path, "hard link to nothing in the archive");
                    continue;
                };
                header.set_size(0);
                out.files.0.append_link(&mut header, &place, base.join(&target)).map_err(damaged)?;
                // The two names are one file. Either of them can come first in the archive.
                if !is_cache(&path)
                    && let Some(file) = out.fingerprint.get(&absolute(&target)).cloned()
                {
                    out.fingerprint.insert(absolute(&path), file);
                }
                facts
            }
            other => {
                out.dropped.push(&path, name_of(other));
                continue;
            }
        };
        out.state.insert(place, facts);
    }
    Ok(())
}

/// The path without leading `./`. `None` if it is absolute or contains `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => out.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!out.as_os_str().is_empty()).then_some(out)
}

/// A header with owner, mode without set-id bits, and time. All other fields of the solver's header
/// are dropped.
fn clean_header(from: &Header) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(from.entry_type());
    header.set_mode(from.mode().unwrap_or(0o644) & 0o1777);
    header.set_uid(from.uid().unwrap_or(0));
    header.set_gid(from.gid().unwrap_or(0));
    header.set_mtime(from.mtime().unwrap_or(0));
    header
}

/// Interpreter caches contain times, so with them two equal states would differ.
fn is_cache(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "__pycache__")
}

fn name_of(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Fifo => "FIFO",
        EntryType::Char | EntryType::Block => "device",
        EntryType::GNUSparse => "sparse file",
        _ => "unknown kind of entry",
    }
}

#[cfg(test)]
mod tests;
