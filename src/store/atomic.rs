//! Files that are there whole or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::StoreError;
use crate::model::{File, FileTree};

/// Whether publishing had anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    Written,
    Unchanged,
}

/// Writes `bytes` to `path` by way of a file in `scratch`, which must lie on the same file system: write, fsync, rename,
/// fsync the folder. A file that already has these bytes and this mode is left alone, mtime and all.
pub fn publish_file(scratch: &Path, path: &Path, file: &File) -> Result<FileChange, StoreError> {
    if holds(path, file) {
        return Ok(FileChange::Unchanged);
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    create_folder(parent)?;
    fs::create_dir_all(scratch).map_err(StoreError::io("create folder", scratch))?;
    let temporary = scratch_name(scratch);
    write_synced(&temporary, file).map_err(|source| {
        // The half-written file may be what filled the disk.
        discard(&temporary);
        StoreError::io("write", path)(source)
    })?;
    fs::rename(&temporary, path).map_err(StoreError::io("rename into place", path))?;
    sync_dir(parent)?;
    Ok(FileChange::Written)
}

/// Writes `file` to `path` in one rename, without waiting for the disk.
pub(super) fn note_file(scratch: &Path, path: &Path, file: &File) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(StoreError::io("create folder", parent))?;
    fs::create_dir_all(scratch).map_err(StoreError::io("create folder", scratch))?;
    let temporary = scratch_name(scratch);
    let written = fs::write(&temporary, &file.bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        discard(&temporary);
        StoreError::io("write", path)(source)
    })
}

/// Makes `dir` hold exactly `tree`. A new tree appears in one rename; one that differs from what is there replaces it.
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
    fs::create_dir_all(&temporary).map_err(StoreError::io("create folder", &temporary))?;
    for folder in &folders {
        sync_dir(folder)?;
    }
    let parent = dir.parent().unwrap_or(Path::new("."));
    create_folder(parent)?;
    remove_published(dir)?;
    fs::rename(&temporary, dir).map_err(StoreError::io("rename into place", dir))?;
    sync_dir(parent)?;
    Ok(FileChange::Written)
}

/// Removes a published file or tree, if it is there.
pub fn remove_published(path: &Path) -> Result<(), StoreError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let removed = if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(StoreError::io("remove", path))
}

fn write_synced(path: &Path, file: &File) -> io::Result<()> {
    let mut out = fs::File::create_new(path)?;
    out.write_all(&file.bytes)?;
    out.set_permissions(fs::Permissions::from_mode(file.mode()))?;
    out.sync_all()
}

/// Makes `dir` and the folders above it that are missing. Each new entry is synced: a synced file in a folder that a power failure
/// takes away is lost too. Returns the folders that were synced.
pub(super) fn create_folder(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let missing = dir.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
    let parents: Vec<PathBuf> = missing
        .map(|above| match above.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        })
        .collect();
    fs::create_dir_all(dir).map_err(StoreError::io("create folder", dir))?;
    for parent in &parents {
        sync_dir(parent)?;
    }
    Ok(parents)
}

fn discard(file: &Path) {
    if let Err(error) = fs::remove_file(file) {
        tracing::debug!(file = %file.display(), %error, "temporary file not removed");
    }
}

fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::io("sync folder", dir))
}

fn holds(path: &Path, file: &File) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let executable = found.permissions().mode() & 0o111 != 0;
    found.is_file()
        && executable == file.executable
        && found.len() == file.bytes.len() as u64
        && fs::read(path).is_ok_and(|bytes| bytes == file.bytes)
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
    count == tree.0.len() && tree.iter().all(|(path, file)| holds(&dir.join(path.as_str()), file))
}

/// A name that no other thread or process uses.
fn scratch_name(scratch: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    scratch.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}
