//! A run folder: its version, its lock, its paths.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic::note_file;
use super::lock::RunLock;
use super::{FileChange, StoreError, build_id, publish_file, publish_tree, remove_published};
use crate::folder::{Fault, WalkError, read_file};
use crate::model::{File, FileTree};

/// Version of the folder's layout. Older layouts are readable, newer ones are refused.
pub const RUN_FORMAT: u32 = 1;

/// Maximum bytes of `run.json`.
const LARGEST_INFO: u64 = 64 << 10;

/// Folders that a folder without `run.json` may contain: leftovers of a killed first start, and
/// records copied from other run folders. They are never removed or replaced as a whole.
const OWN_FOLDERS: [&str; 4] = [".scratch", "store", "observed", "started"];

/// The content of `run.json`, which marks a run folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    pub format: u32,
    /// Version of the termsmith that created the folder.
    pub tool: String,
    /// The builds that wrote to it, the last one at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<String>,
}

/// A run folder that is open for writing. While this value exists, no other termsmith writes there.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    _lock: RunLock,
}

impl RunDir {
    /// Opens `root` for writing, and creates it if it is missing. Checks its version, locks it, and
    /// removes temporary files of a killed writer. A folder that contains other folders is refused,
    /// because those could be replaced or removed later.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(StoreError::io("create folder", root))?;
        let info = read_info(root)?;
        if info.is_none() {
            check_unused(root)?;
        }
        let dir = Self::lock(root)?;
        let new =
            || RunInfo { format: RUN_FORMAT, tool: env!("CARGO_PKG_VERSION").to_owned(), builds: Vec::new() };
        dir.sign(info.unwrap_or_else(new))?;
        Ok(dir)
    }

    /// Notes that this build writes to the folder.
    fn sign(&self, mut info: RunInfo) -> Result<(), StoreError> {
        if info.builds.last().is_some_and(|last| last == build_id()) {
            return Ok(());
        }
        info.builds.retain(|build| build != build_id());
        info.builds.push(build_id().to_owned());
        let text = serde_json::to_string(&info).map_err(StoreError::Encode)?;
        self.publish_file("run.json", &File::text(text + "\n"))?;
        Ok(())
    }

    /// Like [`open`](Self::open), but the run folder must exist.
    pub fn open_existing(root: &Path) -> Result<Self, StoreError> {
        check_run(root)?;
        Self::lock(root)
    }

    fn lock(root: &Path) -> Result<Self, StoreError> {
        check_links(root, LINK_DEPTH)?;
        let lock = RunLock::acquire(&root.join(".lock"))?;
        let dir = Self { root: root.to_owned(), _lock: lock };
        remove_published(&dir.scratch())?;
        Ok(dir)
    }

    /// The path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for half-written files. It is on the same file system as the rest. It is emptied
    /// whenever the run folder is opened for writing.
    pub fn scratch(&self) -> PathBuf {
        self.root.join(".scratch")
    }

    /// Writes a derived file at a path relative to the folder.
    pub fn publish_file(&self, relative: &str, file: &File) -> Result<FileChange, StoreError> {
        publish_file(&self.scratch(), &self.root.join(relative), file)
    }

    /// Writes a file that need not survive a power failure, at a path relative to the folder.
    pub(super) fn note_file(&self, relative: &str, file: &File) -> Result<(), StoreError> {
        note_file(&self.scratch(), &self.root.join(relative), file)
    }

    /// Writes a derived folder at a path relative to the folder.
    pub fn publish_tree(&self, relative: &str, tree: &FileTree) -> Result<FileChange, StoreError> {
        publish_tree(&self.scratch(), &self.root.join(relative), tree)
    }

    /// Removes a derived file or folder, if it exists.
    pub fn remove(&self, relative: &str) -> Result<(), StoreError> {
        remove_published(&self.root.join(relative))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        match fs::remove_dir(self.scratch()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                // The next writer empties it.
                tracing::debug!(folder = %self.scratch().display(), %error, "scratch folder not removed");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Levels of a run folder at which files and folders are replaced, e.g. `data/sft`.
const LINK_DEPTH: u32 = 2;

/// Returns an error if a folder of the run is a link. A run folder may come from elsewhere, and
/// files behind its links would be replaced or removed.
fn check_links(folder: &Path, depth: u32) -> Result<(), StoreError> {
    let unreadable = || StoreError::io("read folder", folder);
    for entry in fs::read_dir(folder).map_err(unreadable())? {
        let entry = entry.map_err(unreadable())?;
        let kind = entry.file_type().map_err(unreadable())?;
        if kind.is_symlink() {
            return Err(StoreError::Entry(WalkError { path: entry.path(), fault: Fault::Link }));
        }
        if kind.is_dir() && depth > 1 {
            check_links(&entry.path(), depth - 1)?;
        }
    }
    Ok(())
}

/// Returns an error unless `root` is a run folder of a known format.
pub(super) fn check_run(root: &Path) -> Result<(), StoreError> {
    match read_info(root)? {
        Some(_) => Ok(()),
        None => Err(StoreError::NotARun { path: root.to_owned() }),
    }
}

/// The builds that wrote to a run folder, the last one at the end.
pub(super) fn builds_of(root: &Path) -> Result<Vec<String>, StoreError> {
    Ok(read_info(root)?.map_or_else(Vec::new, |info| info.builds))
}

/// Returns an error if `root`, which is no run folder, contains other people's folders: derived
/// folders would replace them. Plain files are fine, because they stay, e.g. a log that is being
/// written there.
fn check_unused(root: &Path) -> Result<(), StoreError> {
    let unreadable = || StoreError::io("read folder", root);
    for entry in fs::read_dir(root).map_err(unreadable())? {
        let entry = entry.map_err(unreadable())?;
        let is_file = entry.file_type().map_err(unreadable())?.is_file();
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_file && !OWN_FOLDERS.contains(&name.as_str()) {
            return Err(StoreError::Occupied { path: root.to_owned(), entry: name });
        }
    }
    Ok(())
}

fn read_info(root: &Path) -> Result<Option<RunInfo>, StoreError> {
    let path = root.join("run.json");
    let Some(text) = read_file(&path, LARGEST_INFO)? else { return Ok(None) };
    let info: RunInfo = serde_json::from_slice(&text)
        .map_err(|source| StoreError::Malformed { path: path.clone(), source })?;
    if info.format > RUN_FORMAT {
        return Err(StoreError::Newer {
            path: root.to_owned(),
            found: info.format,
            known: RUN_FORMAT,
            tool: info.tool,
        });
    }
    Ok(Some(info))
}
