//! Finds task directories below a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::WalkError;

/// Folders of folders of tasks are common; deeper nesting is probably a home directory.
const DEPTH: usize = 6;

/// The task directories at or below `root`, in path order: every folder with a `task.toml`. Links and hidden folders are
/// skipped, and folders inside a task are not searched.
pub fn find_tasks(root: &Path) -> Result<Vec<PathBuf>, WalkError> {
    let mut found = Vec::new();
    folder(root, 0, &mut found)?;
    Ok(found)
}

fn folder(place: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), WalkError> {
    let io = |error| WalkError::io(place, error);
    if place.join("task.toml").symlink_metadata().is_ok() {
        found.push(place.to_owned());
        return Ok(());
    }
    if depth == DEPTH {
        return Ok(());
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(place).map_err(io)? {
        let entry = entry.map_err(io)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.file_type().map_err(io)?.is_dir() {
            inside.push(entry.path());
        }
    }
    inside.sort();
    inside.iter().try_for_each(|place| folder(place, depth + 1, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_found_in_order_and_not_within_each_other() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["b/task.toml", "a/2/task.toml", "a/1/task.toml", "a/1/steps/x/task.toml", ".h/task.toml"]
        {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("b"), dir.path().join("c")).unwrap();
        let found = find_tasks(dir.path()).unwrap();
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a/1", "a/2", "b"]);
        assert_eq!(find_tasks(&dir.path().join("b")).unwrap(), [dir.path().join("b")]);
        assert!(find_tasks(&dir.path().join("none")).is_err());
    }
}
