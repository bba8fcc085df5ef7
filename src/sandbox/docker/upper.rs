//! A container's writable layer on this host: its size, files without a name, and how it is made removable.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, ReadDir};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Unit of `st_blocks`, independent of the file system's block size.
const BLOCK: u64 = 512;
/// Maximum nesting of folders. Removing or walking a folder recursively costs one open descriptor per level, in the engine too: it fails to remove
/// folders nested deeper than its limit of open files, repeatedly and after minutes each time.
const MAX_DEPTH: usize = 256;
/// Nesting that remains where folders were too deep.
const LEVELLED_DEPTH: usize = 64;
/// Bytes of a path on this host that can still be opened, with a reserve for a name below it; the kernel accepts 4096.
const MAX_PATH: usize = 3584;
/// Bytes of the paths of all entries together. The engine lists them in memory, several times over: 20,000 long ones took 1.4 GB of it.
/// As many entries as are allowed have half of this with paths of usual length.
pub(super) const MAX_PATHS: u64 = 32 << 20;
/// Name prefix of folders that [`level`] has moved.
const MOVED: &str = ".termsmith-moved-";

/// The host paths that a container writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upper {
    /// Its writable layer and its volumes.
    pub(super) folders: Vec<PathBuf>,
    /// The files that the engine mounts over `/etc/hostname` and the like: they lie outside its layer, and it can write to them.
    pub(super) files: Vec<PathBuf>,
    /// Process number of its first process on this host; 0 when it does not run.
    pub(super) pid: i64,
}

/// What a container has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Allocated, not apparent size: a sparse file counts as nothing.
    pub(super) bytes: u64,
    /// Entries of all kinds.
    pub(super) files: u64,
    /// Bytes of their paths.
    pub(super) paths: u64,
    /// Folders are nested too deeply to be walked.
    pub(super) too_deep: bool,
}

impl Usage {
    /// Whether `self` exceeds the limits.
    pub(super) fn exceeds(&self, max_bytes: u64, max_files: u64) -> bool {
        self.bytes > max_bytes || self.files > max_files || self.paths > MAX_PATHS || self.too_deep
    }
}

impl Upper {
    /// Counts what was written until one limit is exceeded.
    pub(super) fn usage(&self, max_bytes: u64, max_files: u64) -> Usage {
        let mut used = Usage { bytes: self.unlinked_bytes(), ..Usage::default() };
        used.bytes += self
            .files
            .iter()
            .filter_map(|file| fs::symlink_metadata(file).ok())
            .map(|file| file.blocks() * BLOCK)
            .sum::<u64>();
        for folder in &self.folders {
            let mut walk = Walk::new(folder, MAX_DEPTH);
            while let Some(entry) = walk.next() {
                // Files appear and disappear during the walk.
                let Ok(metadata) = entry.metadata() else { continue };
                used.files += 1;
                used.paths += (entry.path().as_os_str().len() - folder.as_os_str().len()) as u64;
                used.bytes += metadata.blocks() * BLOCK;
                used.too_deep |= metadata.is_dir() && !walk.enter(&entry);
                if used.exceeds(max_bytes, max_files) {
                    return used;
                }
            }
        }
        used
    }

    /// Bytes of deleted files that are open or mapped: they occupy the disk until the last user closes them.
    fn unlinked_bytes(&self) -> u64 {
        let Ok(namespace) = fs::read_link(format!("/proc/{}/ns/pid", self.pid)) else { return 0 };
        // The container has ended, and its process number was reused by a process of the host.
        if fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own == namespace) {
            return 0;
        }
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        // A file in memory has no name either, but is counted as memory.
        let root = device(Path::new(&format!("/proc/{}/root", self.pid)));
        let devices: BTreeSet<u64> =
            self.folders.iter().filter_map(|folder| device(folder)).chain(root).collect();
        let mut seen = BTreeSet::new();
        let mut bytes = 0;
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let process = process.path();
            if fs::read_link(process.join("ns/pid")).ok().as_ref() != Some(&namespace) {
                continue;
            }
            for open in ["fd", "map_files"].map(|folder| fs::read_dir(process.join(folder))) {
                for link in open.into_iter().flatten().flatten() {
                    let Ok(file) = fs::metadata(link.path()) else { continue };
                    let is_hidden = file.is_file() && file.nlink() == 0 && devices.contains(&file.dev());
                    if is_hidden && seen.insert((file.dev(), file.ino())) {
                        bytes += file.blocks() * BLOCK;
                    }
                }
            }
        }
        bytes
    }
}

/// Moves folders that are nested too deeply up to `root`, so that a recursive removal with one descriptor per level
/// succeeds. Only for a layer without running processes, which could change links concurrently.
pub(super) fn level(root: &Path) {
    let mut left = vec![root.to_owned()];
    let mut moved = 0;
    while let Some(top) = left.pop() {
        let mut walk = Walk::new(&top, LEVELLED_DEPTH);
        while let Some(entry) = walk.next() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !walk.enter(&entry) {
                let place = root.join(format!("{MOVED}{moved}"));
                moved += 1;
                // A folder that cannot be moved is left as it is; the engine then reports the failed removal.
                if fs::rename(entry.path(), &place).is_ok() {
                    left.push(place);
                }
            }
        }
    }
}

/// Entries below a folder, depth first. Links are not followed; a folder is only entered by [`Walk::enter`].
struct Walk {
    open: Vec<ReadDir>,
    max_depth: usize,
}

impl Walk {
    fn new(root: &Path, max_depth: usize) -> Self {
        Self { open: fs::read_dir(root).into_iter().collect(), max_depth }
    }

    fn next(&mut self) -> Option<DirEntry> {
        loop {
            match self.open.last_mut()?.next() {
                Some(Ok(entry)) => return Some(entry),
                Some(Err(_)) => {}
                None => drop(self.open.pop()),
            }
        }
    }

    /// Enters the folder `entry`; `false` if it is nested too deeply.
    fn enter(&mut self, entry: &DirEntry) -> bool {
        let path = entry.path();
        if self.open.len() >= self.max_depth || path.as_os_str().len() > MAX_PATH {
            return false;
        }
        // A folder that has disappeared counts as empty.
        self.open.extend(fs::read_dir(path));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    /// Creates nested folders called `name` below `root`; the path of the deepest one exceeds the maximum length. Returns that folder.
    fn nest(root: &Path, name: &str, depth: usize) -> OwnedFd {
        let open = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut folder = openat(CWD, root, open, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&folder, name, Mode::RWXU).unwrap();
            folder = openat(&folder, name, open, Mode::empty()).unwrap();
        }
        folder
    }

    #[test]
    fn too_deep_folders_are_reported_and_made_removable() {
        let check = |name: &str, depth: usize, too_deep: bool| {
            let folder = tempfile::tempdir().unwrap();
            let lowest = nest(folder.path(), name, depth);
            let upper = Upper { folders: vec![folder.path().to_owned()], files: Vec::new(), pid: 0 };
            assert_eq!(upper.usage(u64::MAX, u64::MAX).too_deep, too_deep, "{} {depth}", name.len());
            level(folder.path());
            let levelled = upper.usage(u64::MAX, u64::MAX);
            assert_eq!((levelled.files, levelled.too_deep), (depth as u64, false), "{} {depth}", name.len());
            drop(lowest);
        };
        check("d", 10, false);
        check("d", 255, false);
        check("d", 300, true);
        check("d", 3000, true);
        check(&"d".repeat(255), 10, false);
        check(&"d".repeat(255), 40, true);
        check(&"d".repeat(255), 1000, true);
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let upper = Upper { folders: vec![folder.path().to_owned()], files: Vec::new(), pid: 0 };
        assert_eq!(upper.usage(u64::MAX, u64::MAX).files, 1);
    }
}
