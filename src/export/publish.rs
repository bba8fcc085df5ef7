//! Putting finished folders in their place, so that a reader sees the old ones or the new ones and nothing in between.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::{During, StorageError};

/// Folder inside the data folder where everything is written first: the same file system, so renames are atomic.
const STAGING: &str = ".tmp";

/// Bytes compared at a time.
const COMPARE_CHUNK: usize = 64 << 10;

/// What publishing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stood there already, byte for byte, and was not touched.
    Unchanged,
    Written,
}

/// A place to write in. Whatever is left in it is removed at the end, and by the next one after a crash.
#[derive(Debug)]
pub(super) struct Staging {
    data: PathBuf,
    root: PathBuf,
}

impl Staging {
    /// Creates `data` if it is missing, and an empty staging folder in it.
    pub(super) fn open(data: &Path) -> Result<Self, StorageError> {
        let root = data.join(STAGING);
        fs::create_dir_all(data).during("create", data)?;
        match fs::remove_dir_all(&root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other.during("remove", &root)?,
        }
        fs::create_dir(&root).during("create", &root)?;
        Ok(Self { data: data.to_owned(), root })
    }

    /// A new folder that will become `<data>/<name>`.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, StorageError> {
        let folder = self.root.join(name);
        fs::create_dir(&folder).during("create", &folder)?;
        Ok(folder)
    }

    /// Makes the staged folder `name` the one in the data folder, in one step; the former one goes. Files in it must be
    /// synced already.
    pub(super) fn publish_folder(&self, name: &str) -> Result<Change, StorageError> {
        let (staged, target) = (self.root.join(name), self.data.join(name));
        sync_folder(&staged)?;
        if same_folder(&staged, &target)? {
            return Ok(Change::Unchanged);
        }
        if target.symlink_metadata().is_ok() {
            exchange(&staged, &target, &self.root.join(format!("{name}.old")))?;
        } else {
            fs::rename(&staged, &target).during("create", &target)?;
        }
        sync_folder(&self.data)?;
        Ok(Change::Written)
    }

    /// Writes `<data>/<name>` in one step.
    pub(super) fn publish_file(&self, name: &str, content: &str) -> Result<Change, StorageError> {
        let (staged, target) = (self.root.join(name), self.data.join(name));
        if fs::read(&target).is_ok_and(|old| old == content.as_bytes()) {
            return Ok(Change::Unchanged);
        }
        let mut file = File::create(&staged).during("create", &staged)?;
        file.write_all(content.as_bytes()).during("write", &staged)?;
        file.sync_all().during("sync", &staged)?;
        fs::rename(&staged, &target).during("replace", &target)?;
        sync_folder(&self.data)?;
        Ok(Change::Written)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // If it stays behind, the next export removes it.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Swaps `staged` and `target`, which both exist. Afterwards the former `target` is at `staged` or `aside`.
fn exchange(staged: &Path, target: &Path, aside: &Path) -> Result<(), StorageError> {
    match renameat_with(CWD, staged, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => replace_by_way_of(aside, staged, target),
        Err(errno) => Err(StorageError::new("replace", target, errno.into())),
    }
}

/// For file systems that cannot swap (some network ones). A crash between the two steps leaves no `target`, and the next
/// export writes it again.
fn replace_by_way_of(aside: &Path, staged: &Path, target: &Path) -> Result<(), StorageError> {
    fs::rename(target, aside).during("replace", target)?;
    fs::rename(staged, target).during("replace", target).inspect_err(|_| {
        // Best effort: the error that is reported is the one that matters.
        let _ = fs::rename(aside, target);
    })
}

fn sync_folder(folder: &Path) -> Result<(), StorageError> {
    File::open(folder).and_then(|folder| folder.sync_all()).during("sync", folder)
}

/// Whether both folders hold the same files with the same bytes. A missing, unreadable or odd `target` is another folder.
fn same_folder(staged: &Path, target: &Path) -> Result<bool, StorageError> {
    let names = |folder: &Path| -> io::Result<Vec<_>> {
        let mut names: Vec<_> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    };
    let new = names(staged).during("read", staged)?;
    if names(target).ok().as_ref() != Some(&new) {
        return Ok(false);
    }
    Ok(new.iter().all(|name| same_file(&staged.join(name), &target.join(name)).unwrap_or(false)))
}

fn same_file(one: &Path, two: &Path) -> io::Result<bool> {
    let (mut one, mut two) = (File::open(one)?, File::open(two)?);
    if one.metadata()?.len() != two.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; COMPARE_CHUNK], vec![0; COMPARE_CHUNK]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        two.read_exact(&mut right[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn files(folder: &Path) -> BTreeMap<String, String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        });
        entries.collect()
    }

    fn publish(data: &Path, wanted: &[(&str, &str)]) -> Change {
        let staging = Staging::open(data).unwrap();
        let folder = staging.folder("sft").unwrap();
        for (name, content) in wanted {
            fs::write(folder.join(name), content).unwrap();
        }
        staging.publish_folder("sft").unwrap()
    }

    #[test]
    fn folders_are_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("run/data");
        let check = |wanted: &[(&str, &str)], expect: Change| {
            assert_eq!(publish(&data, wanted), expect, "{wanted:?}");
            let expect: BTreeMap<_, _> =
                wanted.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect();
            assert_eq!(files(&data.join("sft")), expect);
            assert!(!data.join(STAGING).exists());
        };
        check(&[("a", "1"), ("b", "2")], Change::Written);
        let inode = data.join("sft/a").metadata().unwrap().ino();
        check(&[("a", "1"), ("b", "2")], Change::Unchanged);
        assert_eq!(data.join("sft/a").metadata().unwrap().ino(), inode);
        check(&[("a", "1"), ("b", "3")], Change::Written);
        // A file fewer, a file more.
        check(&[("a", "1")], Change::Written);
        check(&[("a", "1"), ("c", "")], Change::Written);
        check(&[], Change::Written);
        check(&[], Change::Unchanged);
    }

    #[test]
    fn what_stands_beside_is_left_alone_and_what_a_crash_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".tmp/sft")).unwrap();
        fs::write(dir.path().join(".tmp/sft/train-00000.part"), "torn").unwrap();
        fs::write(dir.path().join("notes.txt"), "mine").unwrap();
        publish(dir.path(), &[("a", "1")]);
        assert_eq!(fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "mine");
        assert!(!dir.path().join(".tmp").exists());
    }

    #[test]
    fn dropping_leaves_the_former_state() {
        let dir = tempfile::tempdir().unwrap();
        publish(dir.path(), &[("a", "1")]);
        let staging = Staging::open(dir.path()).unwrap();
        fs::write(staging.folder("sft").unwrap().join("a"), "half").unwrap();
        drop(staging);
        assert_eq!(files(&dir.path().join("sft")), BTreeMap::from([("a".to_owned(), "1".to_owned())]));
        assert!(!dir.path().join(".tmp").exists());
    }

    #[test]
    fn single_files() {
        let dir = tempfile::tempdir().unwrap();
        let check = |content: &str, expect: Change| {
            let staging = Staging::open(dir.path()).unwrap();
            assert_eq!(staging.publish_file("README.md", content).unwrap(), expect);
            assert_eq!(fs::read_to_string(dir.path().join("README.md")).unwrap(), content);
        };
        check("one", Change::Written);
        check("one", Change::Unchanged);
        check("two", Change::Written);
    }

    #[test]
    fn where_folders_cannot_be_swapped() {
        let dir = tempfile::tempdir().unwrap();
        let [staged, target, aside] = ["staged", "target", "aside"].map(|name| dir.path().join(name));
        for (folder, content) in [(&staged, "new"), (&target, "old")] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("a"), content).unwrap();
        }
        replace_by_way_of(&aside, &staged, &target).unwrap();
        assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "new");
        assert_eq!(fs::read_to_string(aside.join("a")).unwrap(), "old");

        // Nothing is staged: the former folder is put back.
        fs::remove_dir_all(&aside).unwrap();
        assert!(replace_by_way_of(&aside, &staged, &target).is_err());
        assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "new");
    }

    #[test]
    fn a_data_folder_that_cannot_be() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("data"), "a file").unwrap();
        let error = Staging::open(&dir.path().join("data")).unwrap_err();
        assert!(matches!(&error, StorageError::Other { action: "create", .. }), "{error:?}");
    }
}
