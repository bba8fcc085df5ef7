//! Reads a directory for linting. Entries that cannot be read become findings.

use std::fs;
use std::path::Path;

use super::linted_task::{SpecialFile, SpecialFileKind};
use super::{Finding, Parts, Rules, lint_files};
use crate::folder::{WalkError, read_file};
use crate::model::{File, FileTree, RelPath};

/// Maximum number of files and bytes of a linted directory. If there are more, a finding says that
/// the rest was left out.
const MOST_FILES: usize = 10_000;
const MOST_BYTES: u64 = 256 << 20;
const DEPTH: usize = 32;

/// Everything that Harbor packages, builds from, or copies to the tests.
const ROOTS: [&str; 8] = [
    "task.toml",
    "instruction.md",
    "README.md",
    "trajectory.json",
    "environment",
    "tests",
    "solution",
    "steps",
];

/// Lints the task directory `dir`. Links, devices and unreadable names in it become findings.
pub fn lint_dir(rules: &Rules, dir: &Path) -> Result<Vec<Finding>, WalkError> {
    let mut reader = DirReader { files: FileTree::default(), special_files: Vec::new(), bytes: 0 };
    // Resolved, so that links inside the directory can be told from links that leave it.
    let root = fs::canonicalize(dir).map_err(|error| WalkError::io(dir, error))?;
    for name in ROOTS {
        reader.entry(&root, &root.join(name), name, 0)?;
    }
    reader.special_files.sort_by(|a, b| a.path.cmp(&b.path));
    let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
    Ok(lint_files(
        rules,
        &Parts { name: &name, files: &reader.files, special_files: &reader.special_files, draft: None },
    ))
}

struct DirReader {
    files: FileTree,
    special_files: Vec<SpecialFile>,
    bytes: u64,
}

impl DirReader {
    fn entry(&mut self, root: &Path, place: &Path, path: &str, depth: usize) -> Result<(), WalkError> {
        let metadata = match place.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata.map_err(|error| WalkError::io(place, error))?,
        };
        let special = |kind| SpecialFile { path: path.to_owned(), kind };
        if metadata.is_symlink() {
            let inside = fs::canonicalize(place).is_ok_and(|target| target.starts_with(root));
            self.special_files.push(special(if inside {
                SpecialFileKind::Link
            } else {
                SpecialFileKind::Escape
            }));
        } else if metadata.is_dir() {
            if depth == DEPTH {
                let why = format!("more than {DEPTH} folders deep");
                self.special_files.push(special(SpecialFileKind::Unreadable(why)));
                return Ok(());
            }
            let mut empty = depth > 0;
            for entry in fs::read_dir(place).map_err(|error| WalkError::io(place, error))? {
                empty = false;
                let entry = entry.map_err(|error| WalkError::io(place, error))?;
                match entry.file_name().to_str() {
                    Some(name) => {
                        self.entry(root, &entry.path(), &format!("{path}/{name}"), depth + 1)?;
                    }
                    None => {
                        let why = format!("the name {:?} is not UTF-8", entry.file_name());
                        self.special_files.push(special(SpecialFileKind::Unreadable(why)));
                    }
                }
            }
            if empty && let Ok(path) = RelPath::new(path) {
                self.files.empty_folders.insert(path);
            }
        } else if !metadata.is_file() {
            self.special_files
                .push(special(SpecialFileKind::Unreadable("neither a file nor a folder".to_owned())));
        } else if self.files.files.len() == MOST_FILES || metadata.len() > MOST_BYTES - self.bytes {
            let why = format!("after the first {MOST_FILES} files or {} MiB; not linted", MOST_BYTES >> 20);
            self.special_files.push(special(SpecialFileKind::Unreadable(why)));
        } else if let Some(bytes) = read_file(place, metadata.len())? {
            self.bytes += metadata.len();
            let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
            // A name from a listing is a plain relative path.
            if let Ok(path) = RelPath::new(path) {
                self.files.insert(path, File { bytes, executable });
            }
        }
        Ok(())
    }
}
