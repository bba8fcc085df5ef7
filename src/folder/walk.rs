//! Lists an untrusted folder. This file uses only the standard library, because the build script
//! compiles it too.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Limits of a folder. Exceeding one is an error.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Number of regular files.
    pub files: usize,
    /// Number of nested folders below the root.
    pub depth: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

/// One regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Path below the root, with `/` as separator.
    pub path: String,
    /// Bytes at the time of listing.
    pub len: u64,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// Why a folder is refused.
#[derive(Debug)]
pub struct WalkError {
    /// The file or folder that causes the error.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a file or folder.
#[derive(Debug)]
pub enum Fault {
    Io(io::Error),
    Link,
    Special,
    /// A device, FIFO or socket. Reading it may never end.
    Endless,
    Folder,
    NotUtf8,
    Changed,
    TooManyFiles(usize),
    TooDeep(usize),
    TooManyBytes(u64),
    /// A single file has more bytes than this.
    TooLarge(u64),
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.path);
        match &self.fault {
            Fault::Io(error) => write!(f, "failed to read `{path}`: {error}"),
            Fault::Link => write!(
                f,
                "`{path}` is a symbolic link\nhint: links are never followed; replace the link by the file"
            ),
            Fault::Special => write!(f, "`{path}` is neither a regular file nor a folder\nhint: remove it"),
            Fault::Endless => write!(
                f,
                "`{path}` is a device, a named pipe or a socket\nhint: give a file; a pipe of the shell works too, e.g. `/dev/stdin`"
            ),
            Fault::Folder => write!(f, "`{path}` is a folder\nhint: give a file"),
            Fault::TooLarge(most) => {
                write!(f, "`{path}` is larger than {most} bytes\nhint: is it the right file?")
            }
            Fault::NotUtf8 => write!(f, "the name of `{path}` is not UTF-8\nhint: rename it"),
            Fault::Changed => {
                write!(f, "`{path}` changed while it was read\nhint: try again when nothing writes to it")
            }
            Fault::TooManyFiles(most) => {
                write!(f, "`{path}` holds more than {most} files\nhint: is it the right folder?")
            }
            Fault::TooDeep(most) => {
                write!(f, "`{path}` lies more than {most} folders deep\nhint: is it the right folder?")
            }
            Fault::TooManyBytes(most) => {
                write!(
                    f,
                    "the files up to `{path}` hold more than {most} bytes\nhint: is it the right folder?"
                )
            }
        }
    }
}

/// A path on one line. A file name may contain a line feed, which could forge the next line of a
/// message.
pub fn shown(path: &Path) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    path.display().to_string().chars().map(escaped).collect()
}

impl std::error::Error for WalkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            Fault::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl WalkError {
    /// The error for `path` that failed with `error`.
    pub fn io(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), fault: Fault::Io(error) }
    }

    fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_owned(), fault }
    }
}

/// How leftover files are treated, i.e. those for which [`is_clutter`] is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clutter {
    /// They are kept. A task may be about such a file, e.g. a compiled module to analyse.
    Kept,
    /// They are skipped, as in termsmith's own folders.
    LeftOut,
}

/// Whether editors, Python or file managers leave files with this name, e.g. `.DS_Store`. Harbor
/// does not package such files (`DEFAULT_IGNORES` in its `publisher/packager.py`), but builds and
/// tests see them.
pub fn is_clutter(name: &str) -> bool {
    const NAMES: [&str; 2] = ["__pycache__", ".DS_Store"];
    const ENDINGS: [&str; 4] = [".pyc", ".swp", ".swo", "~"];
    NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The content of a folder.
#[derive(Debug, Default)]
pub struct Listed {
    /// Regular files, in path order.
    pub files: Vec<Found>,
    /// Paths of the empty folders.
    pub empty_folders: Vec<String>,
    /// Paths of symbolic links, each with its target as written.
    pub links: Vec<(String, String)>,
}

/// How symbolic links are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Refused,
    /// They are listed, and never followed.
    Listed,
}

/// Lists everything below `root`. Special files are errors.
pub fn walk(root: &Path, bounds: &Bounds, clutter: Clutter, links: Links) -> Result<Listed, WalkError> {
    let mut listing = Listing { found: Listed::default(), bytes: 0, bounds, clutter, links };
    listing.folder(root, "", 0)?;
    listing.found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing.found)
}

struct Listing<'a> {
    found: Listed,
    bytes: u64,
    bounds: &'a Bounds,
    clutter: Clutter,
    links: Links,
}

impl Listing<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), WalkError> {
        if depth > self.bounds.depth {
            return Err(WalkError::new(folder, Fault::TooDeep(self.bounds.depth)));
        }
        let mut empty = true;
        for entry in fs::read_dir(folder).map_err(|error| WalkError::io(folder, error))? {
            let entry = entry.map_err(|error| WalkError::io(folder, error))?;
            empty = false;
            let place = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else { return Err(WalkError::new(&place, Fault::NotUtf8)) };
            if self.clutter == Clutter::LeftOut && is_clutter(name) {
                continue;
            }
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            // This is the metadata of the entry itself, not of a link's target.
            let metadata = entry.metadata().map_err(|error| WalkError::io(&place, error))?;
            if metadata.is_symlink() && self.links == Links::Listed {
                self.link(&place, path)?;
            } else if metadata.is_symlink() {
                return Err(WalkError::new(&place, Fault::Link));
            } else if metadata.is_dir() {
                self.folder(&place, &path, depth + 1)?;
            } else if metadata.is_file() {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                self.file(&place, Found { path, len: metadata.len(), executable })?;
            } else {
                return Err(WalkError::new(&place, Fault::Special));
            }
        }
        if empty && !prefix.is_empty() {
            self.count(folder)?;
            self.found.empty_folders.push(prefix.to_owned());
        }
        Ok(())
    }

    fn file(&mut self, place: &Path, found: Found) -> Result<(), WalkError> {
        self.bytes = self.bytes.saturating_add(found.len);
        if self.bytes > self.bounds.bytes {
            return Err(WalkError::new(place, Fault::TooManyBytes(self.bounds.bytes)));
        }
        self.count(place)?;
        self.found.files.push(found);
        Ok(())
    }

    fn link(&mut self, place: &Path, path: String) -> Result<(), WalkError> {
        let target = fs::read_link(place).map_err(|error| WalkError::io(place, error))?;
        let Some(target) = target.to_str() else { return Err(WalkError::new(place, Fault::NotUtf8)) };
        self.count(place)?;
        self.found.links.push((path, target.to_owned()));
        Ok(())
    }

    /// Returns an error if there are more entries than the bounds allow.
    fn count(&self, place: &Path) -> Result<(), WalkError> {
        let Listed { files, empty_folders, links } = &self.found;
        if files.len() + empty_folders.len() + links.len() == self.bounds.files {
            return Err(WalkError::new(place, Fault::TooManyFiles(self.bounds.files)));
        }
        Ok(())
    }
}
