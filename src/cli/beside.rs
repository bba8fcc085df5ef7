//! Writes files outside of run folders.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::model::File;
use crate::store::{StoreError, parent_of, publish_file};

/// Folder for the half-written file. It lies beside the target, since a rename does not cross file
/// systems.
const SCRATCH: &str = ".new";

/// Writes `file` to `target` atomically: after a crash, `target` is complete or unchanged.
pub(super) fn write_beside(target: &Path, file: &File) -> Result<(), StoreError> {
    let scratch = parent_of(target).join(SCRATCH);
    let written = publish_file(&scratch, target, file);
    match fs::remove_dir(&scratch) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::debug!(path = %scratch.display(), %error, "failed to remove a scratch folder");
        }
        Ok(()) | Err(_) => {}
    }
    written.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_or_nothing_is() {
        let check = |there: &[&str], expect: Result<(), &str>| {
            let dir = tempfile::tempdir().unwrap();
            for folder in there {
                fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            let target = dir.path().join("task/file");
            match (write_beside(&target, &File::text("text")), expect) {
                (Ok(()), Ok(())) => assert_eq!(fs::read_to_string(&target).unwrap(), "text"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{there:?}: {found:?}"),
            }
            assert!(!dir.path().join("task").join(SCRATCH).exists());
        };
        check(&[], Ok(()));
        check(&["task"], Ok(()));
        // A folder is already at the target.
        check(&["task/file"], Err("task/file"));
    }
}
