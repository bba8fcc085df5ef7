//! Publishes finished folders atomically. A reader sees the old folder or the new one, never a
//! mixture.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::folder::open_file;
use crate::model;
use crate::store::{
    FileChange, StoreError, create_folder, publish_file, remove_published, replace_folder, sync_folder,
};

/// Folder inside the data folder where everything is written first. It is on the same file system,
/// so renames are atomic.
const STAGING: &str = ".tmp";

/// Bytes that are compared at a time.
const COMPARE_CHUNK: usize = 64 << 10;

/// A folder for unfinished files. It is removed at the end. After a crash, the next export removes
/// it.
#[derive(Debug)]
pub(super) struct Staging {
    data: PathBuf,
    root: PathBuf,
}

impl Staging {
    /// Creates `data` if it is missing, and an empty staging folder in it.
    pub(super) fn open(data: &Path) -> Result<Self, StoreError> {
        let root = data.join(STAGING);
        remove_published(&root)?;
        create_folder(&root)?;
        Ok(Self { data: data.to_owned(), root })
    }

    /// Creates the folder that will become `<data>/<name>`.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let folder = self.root.join(name);
        fs::create_dir(&folder).map_err(StoreError::io("create folder", &folder))?;
        Ok(folder)
    }

    /// Atomically replaces the folder `name` in the data folder by the staged one. The staged files
    /// must be synced already.
    pub(super) fn publish_folder(&self, name: &str) -> Result<FileChange, StoreError> {
        let (staged, target) = (self.root.join(name), self.data.join(name));
        sync_folder(&staged)?;
        if same_folder(&staged, &target)? {
            return Ok(FileChange::Unchanged);
        }
        replace_folder(&staged, &target, &self.root.join(format!("{name}.old")))?;
        sync_folder(&self.data)?;
        Ok(FileChange::Written)
    }

    /// Writes `<data>/<name>` atomically.
    pub(super) fn publish_file(&self, name: &str, content: &str) -> Result<FileChange, StoreError> {
        publish_file(&self.root, &self.data.join(name), &model::File::text(content))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove_published(&self.root) {
            // The next export removes it.
            tracing::debug!(%error, "staging folder not removed");
        }
    }
}

/// Whether both folders contain the same files with the same bytes. False if `target` is missing or
/// unreadable, or contains anything but files.
fn same_folder(staged: &Path, target: &Path) -> Result<bool, StoreError> {
    let names = |folder: &Path| -> io::Result<Vec<_>> {
        let mut names: Vec<_> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    };
    let new = names(staged).map_err(StoreError::io("read folder", staged))?;
    if names(target).ok().as_ref() != Some(&new) {
        return Ok(false);
    }
    Ok(new.iter().all(|name| same_file(&staged.join(name), &target.join(name)).unwrap_or(false)))
}

fn same_file(one: &Path, two: &Path) -> io::Result<bool> {
    let (Ok(Some(mut one)), Ok(Some(mut two))) = (open_file(one), open_file(two)) else { return Ok(false) };
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

    fn publish(data: &Path, wanted: &[(&str, &str)]) -> FileChange {
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
        let check = |wanted: &[(&str, &str)], expect: FileChange| {
            assert_eq!(publish(&data, wanted), expect, "{wanted:?}");
            let expect: BTreeMap<_, _> =
                wanted.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect();
            assert_eq!(files(&data.join("sft")), expect);
            assert!(!data.join(STAGING).exists());
        };
        check(&[("a", "1"), ("b", "2")], FileChange::Written);
        let inode = data.join("sft/a").metadata().unwrap().ino();
        check(&[("a", "1"), ("b", "2")], FileChange::Unchanged);
        assert_eq!(data.join("sft/a").metadata().unwrap().ino(), inode);
        check(&[("a", "1"), ("b", "3")], FileChange::Written);
        // One file fewer, then one file more.
        check(&[("a", "1")], FileChange::Written);
        check(&[("a", "1"), ("c", "")], FileChange::Written);
        check(&[], FileChange::Written);
        check(&[], FileChange::Unchanged);
    }

    #[test]
    fn other_files_are_kept_and_staging_folders_of_a_crash_are_removed() {
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
        let check = |content: &str, expect: FileChange| {
            let staging = Staging::open(dir.path()).unwrap();
            assert_eq!(staging.publish_file("README.md", content).unwrap(), expect);
            assert_eq!(fs::read_to_string(dir.path().join("README.md")).unwrap(), content);
        };
        check("one", FileChange::Written);
        check("one", FileChange::Unchanged);
        check("two", FileChange::Written);
    }

    #[test]
    fn a_data_folder_that_cannot_be_created_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("data"), "a file").unwrap();
        let error = Staging::open(&dir.path().join("data")).unwrap_err();
        assert!(matches!(&error, StoreError::Io { action: "create folder", .. }), "{error:?}");
    }
}
