//! Writes files and folders atomically: whenever a process is killed, they are complete or missing.
//! All published files are written here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::StoreError;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::folder::read_file;
use crate::model::{File, FileTree};

/// Whether publishing changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    Written,
    Unchanged,
}

/// Writes `bytes` to `path` atomically. The steps are: write a file in `scratch`, fsync it, rename
/// it, fsync the folder. `scratch` must be on the same file system. A file that already has these
/// bytes and this mode is not touched.
pub fn publish_file(scratch: &Path, path: &Path, file: &File) -> Result<FileChange, StoreError> {
    if holds(path, file) {
        return Ok(FileChange::Unchanged);
    }
    let parent = parent_of(path);
    create_folder(parent)?;
    fs::create_dir_all(scratch).map_err(StoreError::io("create folder", scratch))?;
    let temporary = scratch_name(scratch);
    replace_file(&temporary, path, file).map_err(StoreError::io("write", path))?;
    sync_folder(parent)?;
    Ok(FileChange::Written)
}

/// Writes `file` to `path` by write, fsync and rename of `temporary`. No other thread or process
/// may use `temporary`. It must be on the same file system.
fn replace_file(temporary: &Path, path: &Path, file: &File) -> io::Result<()> {
    let written = write_synced(temporary, file).and_then(|()| fs::rename(temporary, path));
    // The disk may be full because of the half-written file.
    written.inspect_err(|_| discard(temporary))
}

/// Writes `file` to `path` by a rename, without fsync.
pub(super) fn note_file(scratch: &Path, path: &Path, file: &File) -> Result<(), StoreError> {
    let parent = parent_of(path);
    fs::create_dir_all(parent).map_err(StoreError::io("create folder", parent))?;
    fs::create_dir_all(scratch).map_err(StoreError::io("create folder", scratch))?;
    let temporary = scratch_name(scratch);
    let written = fs::write(&temporary, &file.bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        discard(&temporary);
        StoreError::io("write", path)(source)
    })
}

/// Atomically replaces the folder `dir` by the files of `tree`.
pub fn publish_tree(scratch: &Path, dir: &Path, tree: &FileTree) -> Result<FileChange, StoreError> {
    if holds_tree(dir, tree) {
        return Ok(FileChange::Unchanged);
    }
    let temporary = scratch_name(scratch);
    let mut folders = BTreeSet::from([temporary.clone()]);
    for (path, file) in tree.iter() {
        let place = temporary.join(path.as_str());
        let parent = place.parent().unwrap_or(&temporary);
        fs::create_dir_all(parent).map_err(StoreError::io("create folder", parent))?;
        folders
            .extend(parent.ancestors().take_while(|above| above.starts_with(&temporary)).map(Path::to_owned));
        write_synced(&place, file).map_err(StoreError::io("write", &dir.join(path.as_str())))?;
    }
    for path in &tree.empty_folders {
        let place = temporary.join(path.as_str());
        fs::create_dir_all(&place).map_err(StoreError::io("create folder", &place))?;
        folders
            .extend(place.ancestors().take_while(|above| above.starts_with(&temporary)).map(Path::to_owned));
    }
    fs::create_dir_all(&temporary).map_err(StoreError::io("create folder", &temporary))?;
    for folder in &folders {
        sync_folder(folder)?;
    }
    let parent = parent_of(dir);
    create_folder(parent)?;
    let aside = scratch_name(scratch);
    replace_folder(&temporary, dir, &aside)?;
    sync_folder(parent)?;
    // The former folder is at one of these paths.
    remove_published(&temporary)?;
    remove_published(&aside)?;
    Ok(FileChange::Written)
}

/// Replaces the folder `target` by `staged`. The former `target`, if there was one, is at `staged`
/// or `aside` afterwards.
pub(crate) fn replace_folder(staged: &Path, target: &Path, aside: &Path) -> Result<(), StoreError> {
    if target.symlink_metadata().is_err() {
        return fs::rename(staged, target).map_err(StoreError::io("rename into place", target));
    }
    match renameat_with(CWD, staged, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => replace_in_two_steps(staged, target, aside),
        Err(errno) => Err(StoreError::io("replace", target)(errno.into())),
    }
}

/// For file systems that cannot swap two folders, e.g. some network file systems. A crash between
/// the two steps leaves no `target`. The same command then writes it again.
pub(super) fn replace_in_two_steps(staged: &Path, target: &Path, aside: &Path) -> Result<(), StoreError> {
    fs::rename(target, aside).map_err(StoreError::io("replace", target))?;
    fs::rename(staged, target).map_err(|source| {
        if let Err(error) = fs::rename(aside, target) {
            tracing::warn!(folder = %target.display(), %error, "former folder not put back");
        }
        StoreError::io("replace", target)(source)
    })
}

/// Removes a published file or folder, if it exists.
pub fn remove_published(path: &Path) -> Result<(), StoreError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let removed = if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(StoreError::io("remove", path))
}

fn write_synced(path: &Path, file: &File) -> io::Result<()> {
    let mut out = fs::File::create(path)?;
    out.write_all(&file.bytes)?;
    out.set_permissions(fs::Permissions::from_mode(file.mode()))?;
    out.sync_all()
}

/// The folder that contains `path`. For a bare name it is the working directory.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates `dir` and its missing parents. Each new entry is synced, because otherwise a power
/// failure could remove a folder with synced files in it. Returns the folders that were synced.
pub(crate) fn create_folder(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let missing = dir.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
    let parents: Vec<PathBuf> = missing.map(|above| parent_of(above).to_owned()).collect();
    fs::create_dir_all(dir).map_err(StoreError::io("create folder", dir))?;
    for parent in &parents {
        sync_folder(parent)?;
    }
    Ok(parents)
}

fn discard(file: &Path) {
    if let Err(error) = fs::remove_file(file) {
        tracing::debug!(file = %file.display(), %error, "temporary file not removed");
    }
}

pub(crate) fn sync_folder(dir: &Path) -> Result<(), StoreError> {
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::io("sync folder", dir))
}

fn holds(path: &Path, file: &File) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let executable = found.permissions().mode() & 0o111 != 0;
    found.is_file()
        && executable == file.executable
        && found.len() == file.bytes.len() as u64
        && read_file(path, found.len()).is_ok_and(|bytes| bytes.as_ref() == Some(&file.bytes))
}

fn holds_tree(dir: &Path, tree: &FileTree) -> bool {
    let mut count = 0;
    let mut folders = vec![PathBuf::from(dir)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { return false };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => count += 1,
            }
        }
    }
    count == tree.files.len()
        && tree.iter().all(|(path, file)| holds(&dir.join(path.as_str()), file))
        && tree.empty_folders.iter().all(|path| dir.join(path.as_str()).is_dir())
}

/// A name that no other thread or process uses.
fn scratch_name(scratch: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    scratch.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}
