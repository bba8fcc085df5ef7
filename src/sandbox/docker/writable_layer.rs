//! A container's writable layer on this host: its size, its deleted files, and how it is made
//! removable.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, ReadDir};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::open_files::OpenFiles;

/// Unit of `st_blocks`, independent of the file system's block size.
pub(super) const BLOCK: u64 = 512;
/// Maximum number of files that a container may add. It is more than any task needs. Many more
/// would exhaust the inodes of the host, or take minutes to remove.
pub(super) const MAX_FILES: u64 = 250_000;
/// Maximum nesting of folders. A walk or a removal needs one open descriptor for each level. The
/// engine fails to remove folders nested deeper than its limit of open files, after minutes each
/// time.
const MAX_DEPTH: usize = 256;
/// Nesting that remains after folders were moved up.
const LEVELLED_DEPTH: usize = 64;
/// Maximum bytes of a path that can still be opened on this host, with room for a name below it.
/// The kernel accepts 4096.
const MAX_PATH: usize = 3584;
/// Maximum bytes of the paths of all entries together. The engine lists them in memory, several
/// times over: 20,000 long ones took 1.4 GB. With paths of usual length, the allowed number of
/// files has half of this.
pub(super) const MAX_PATHS: u64 = 32 << 20;
/// Name prefix of folders that [`level`] has moved.
const MOVED: &str = ".termsmith-moved-";

/// The paths on this host where a container's writes arrive,
/// e.g. `/var/lib/docker/overlay2/ID/diff`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WritableLayer {
    /// Overlayfs's upper directory, if it can be read, and then the container's volumes.
    pub(super) folders: Vec<PathBuf>,
    /// Whether the first folder is the upper directory. Without it most writes are not counted.
    pub(super) has_layer: bool,
    /// Files that the engine mounts, e.g. over `/etc/hostname`. They lie outside the layer, and the
    /// container can write to them.
    pub(super) files: Vec<PathBuf>,
    /// Process number of the container's first process on this host. 0 if it does not run.
    pub(super) pid: i64,
}

/// The amount that a container has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Allocated bytes. A sparse file counts as nothing.
    pub(super) bytes: u64,
    /// Entries of all kinds.
    pub(super) files: u64,
    /// Bytes of their paths.
    pub(super) paths: u64,
    /// Folders are nested too deeply for a walk.
    pub(super) too_deep: bool,
    /// This process may not read some folder, so there may be more.
    pub(super) unread: bool,
    pub(super) open: OpenFiles,
}

/// The amount that a container may write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) bytes: u64,
    pub(super) files: u64,
    pub(super) paths: u64,
}

impl Most {
    /// Limits with these bytes. The limits of files and paths are the same for every container.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Self { bytes, files: MAX_FILES, paths: MAX_PATHS }
    }
}

impl Usage {
    /// Whether `self` exceeds the limits.
    fn exceeds(&self, most: &Most) -> bool {
        self.bytes > most.bytes || self.files > most.files || self.paths > most.paths || self.too_deep
    }
}

/// How much of a full disk a container holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// At most half of its own limit.
    Little,
    /// The container may have filled the disk itself.
    Much,
    /// The container may hold more than can be counted.
    Unknown,
}

impl WritableLayer {
    /// How much of a full disk the container holds. `max_bytes` is its own limit.
    pub(super) fn held(&self, max_bytes: u64) -> Held {
        let most = Most::of_bytes(max_bytes / 2);
        let used = self.usage(&most);
        if used.exceeds(&most) {
            Held::Much
        } else if !self.has_layer || used.unread || used.open.may_hide() {
            Held::Unknown
        } else {
            Held::Little
        }
    }

    /// Counts the files and bytes that were written, until one limit is exceeded.
    pub(super) fn usage(&self, most: &Most) -> Usage {
        let open = OpenFiles::of(self.pid, &self.folders);
        let mut used = Usage { bytes: open.unlinked, open, ..Usage::default() };
        let mut linked = BTreeSet::new();
        used.bytes += self
            .files
            .iter()
            .filter_map(|file| fs::symlink_metadata(file).ok())
            .map(|file| file.blocks() * BLOCK)
            .sum::<u64>();
        for folder in &self.folders {
            let mut walk = Walk::new(folder, MAX_DEPTH);
            while let Some(entry) = walk.next() {
                let metadata = match entry.metadata() {
                    Ok(metadata) => metadata,
                    Err(error) => {
                        // Files appear and disappear during the walk.
                        used.unread |= is_denied(&error);
                        continue;
                    }
                };
                used.files += 1;
                used.paths += (entry.path().as_os_str().len() - folder.as_os_str().len()) as u64;
                // A file with several names is on the disk once.
                let was_counted = metadata.nlink() > 1
                    && !metadata.is_dir()
                    && !linked.insert((metadata.dev(), metadata.ino()));
                if !was_counted {
                    used.bytes += metadata.blocks() * BLOCK;
                }
                used.too_deep |= metadata.is_dir() && !walk.enter(&entry);
                if used.exceeds(most) {
                    return used;
                }
            }
            used.unread |= walk.denied;
        }
        used
    }
}

/// Moves folders that are nested too deeply up to `root`. Then a recursive removal with one
/// descriptor for each level succeeds. No process may run in the layer, since it could change links
/// meanwhile.
pub(super) fn level(root: &Path) {
    let mut left = vec![root.to_owned()];
    let mut moved = 0;
    while let Some(top) = left.pop() {
        let mut walk = Walk::new(&top, LEVELLED_DEPTH);
        while let Some(entry) = walk.next() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !walk.enter(&entry) {
                let place = root.join(format!("{MOVED}{moved}"));
                moved += 1;
                // A folder that cannot be moved stays. The engine then reports the failed removal.
                if fs::rename(entry.path(), &place).is_ok() {
                    left.push(place);
                }
            }
        }
    }
}

/// Entries below a folder, depth first. Links are not followed. Only [`Walk::enter`] enters a
/// folder.
struct Walk {
    open: Vec<ReadDir>,
    max_depth: usize,
    /// A folder could not be read for lack of permission.
    denied: bool,
}

impl Walk {
    fn new(root: &Path, max_depth: usize) -> Self {
        let mut walk = Self { open: Vec::new(), max_depth, denied: false };
        walk.read(root);
        walk
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

    /// Enters the folder `entry`. Returns false if it is nested too deeply.
    fn enter(&mut self, entry: &DirEntry) -> bool {
        let path = entry.path();
        if self.open.len() >= self.max_depth || path.as_os_str().len() > MAX_PATH {
            return false;
        }
        self.read(&path);
        true
    }

    fn read(&mut self, folder: &Path) {
        match fs::read_dir(folder) {
            Ok(entries) => self.open.push(entries),
            // A folder that has disappeared counts as empty.
            Err(error) => self.denied |= is_denied(&error),
        }
    }
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    /// Creates nested folders called `name` below `root`, and returns the deepest one. Its path is
    /// longer than paths may be.
    fn nest(root: &Path, name: &str, depth: usize) -> OwnedFd {
        let open = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut folder = openat(CWD, root, open, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&folder, name, Mode::RWXU).unwrap();
            folder = openat(&folder, name, open, Mode::empty()).unwrap();
        }
        folder
    }

    fn layer(folder: &Path) -> WritableLayer {
        WritableLayer { folders: vec![folder.to_owned()], has_layer: true, files: Vec::new(), pid: 0 }
    }

    #[test]
    fn too_deep_folders_are_reported_and_made_removable() {
        let check = |name: &str, depth: usize, too_deep: bool| {
            let folder = tempfile::tempdir().unwrap();
            let lowest = nest(folder.path(), name, depth);
            let layer = layer(folder.path());
            assert_eq!(layer.usage(&Most::of_bytes(u64::MAX)).too_deep, too_deep, "{} {depth}", name.len());
            level(folder.path());
            let levelled = layer.usage(&Most::of_bytes(u64::MAX));
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
        assert_eq!(layer(folder.path()).usage(&Most::of_bytes(u64::MAX)).files, 1);
    }

    /// Bytes on the disk of a file of a megabyte. They depend on the disk's layout.
    const FILE: std::ops::RangeInclusive<u64> = 1_000_000..=1_100_000;

    #[test]
    fn a_file_with_several_names_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), vec![1; 1_000_000]).unwrap();
        fs::create_dir(at("sub")).unwrap();
        for name in ["second", "sub/third"] {
            fs::hard_link(at("file"), at(name)).unwrap();
        }
        let layer = layer(folder.path());
        let used = layer.usage(&Most::of_bytes(u64::MAX));
        assert!(FILE.contains(&used.bytes), "{used:?}");
        assert_eq!(used.files, 4);
        fs::write(at("other"), vec![1; 1_000_000]).unwrap();
        let more = layer.usage(&Most::of_bytes(u64::MAX));
        assert!(FILE.contains(&(more.bytes - used.bytes)), "{used:?} {more:?}");
    }

    #[test]
    fn a_container_holds_little_of_a_disk_only_if_all_of_it_can_be_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), vec![1; 1_000_000]).unwrap();
        let all = layer(folder.path());
        let check = |layer: &WritableLayer, max_bytes: u64, expect: Held| {
            assert_eq!(layer.held(max_bytes), expect, "{max_bytes} {layer:?}");
        };
        check(&all, 3_000_000, Held::Little);
        check(&all, 1_500_000, Held::Much);
        // This process is not root, or the engine has another storage driver. Only the files that
        // the engine mounts can be read.
        let some = WritableLayer { has_layer: false, ..all.clone() };
        check(&some, 3_000_000, Held::Unknown);
        check(&some, 1_500_000, Held::Much);
        check(
            &WritableLayer { folders: Vec::new(), has_layer: false, ..all.clone() },
            3_000_000,
            Held::Unknown,
        );
        // The watchdog is about to kill the container.
        drop(nest(folder.path(), "d", MAX_DEPTH + 1));
        check(&all, 3_000_000, Held::Much);
    }
}
