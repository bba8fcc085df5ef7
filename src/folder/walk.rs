//! Lists an untrusted folder. Uses the standard library only: the build script compiles this file
//! too.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Limits of a folder; a larger one is refused.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Regular files.
    pub files: usize,
    /// Folders below the root on the way to a file.
    pub depth: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

/// One regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Below the root, with `/` between its parts.
    pub path: String,
    /// Bytes, when it was listed.
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
    /// A device, FIFO or socket: reading it may never end.
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
                "`{path}` is a symbolic link\nhint: links are never followed; put the file itself there"
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

/// A path on one line: a name may contain a line feed, and forge the next line of a message.
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
    /// `path` failed with `error`.
    pub fn io(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), fault: Fault::Io(error) }
    }

    fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_owned(), fault }
    }
}

/// What is done with files that [`is_clutter`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clutter {
    /// In a task it may be what the task is about, such as a compiled module to take apart.
    Kept,
    /// In a folder of ours it is only left behind.
    LeftOut,
}

/// Whether a file or folder of this name is one that editors, Python and file managers leave
/// behind. Harbor's packager ignores the same (`DEFAULT_IGNORES` of its `publisher/packager.py`),
/// but a build and the tests get it.
pub fn is_clutter(name: &str) -> bool {
    const NAMES: [&str; 2] = ["__pycache__", ".DS_Store"];
    const ENDINGS: [&str; 4] = [".pyc", ".swp", ".swo", "~"];
    NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// What is below a folder.
#[derive(Debug, Default)]
pub struct Listed {
    /// Regular files, in path order.
    pub files: Vec<Found>,
    /// Paths of the empty folders.
    pub empty_folders: Vec<String>,
    /// Paths of symbolic links, each with its target as it is written.
    pub links: Vec<(String, String)>,
}

/// What is done with symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Refused,
    /// Listed and never followed.
    Listed,
}

/// Lists what is below `root`. Special files are errors.
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
            // Metadata of the entry itself, never of a link's target.
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

    /// Refuses one entry more than the bounds allow.
    fn count(&self, place: &Path) -> Result<(), WalkError> {
        let Listed { files, empty_folders, links } = &self.found;
        if files.len() + empty_folders.len() + links.len() == self.bounds.files {
            return Err(WalkError::new(place, Fault::TooManyFiles(self.bounds.files)));
        }
        Ok(())
    }
}
