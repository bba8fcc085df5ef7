//! A directory as it is, for linting: what cannot be taken is told instead of ending the reading.

use std::fs;
use std::path::Path;

use super::subject::{Oddity, OddityKind};
use super::{Finding, Parts, Rules, lint_files};
use crate::folder::{WalkError, is_clutter, read_file};
use crate::model::{File, FileTree, RelPath};

/// What of a directory is looked at. Past it, the rest is not linted, and the finding says so.
const MOST_FILES: usize = 10_000;
const MOST_BYTES: u64 = 256 << 20;
const DEPTH: usize = 32;

/// Everything that Harbor packages.
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

/// What the rules find in the task directory `dir`, which may be as odd as it likes.
pub fn lint_dir(rules: &Rules, dir: &Path) -> Result<Vec<Finding>, WalkError> {
    let mut taken = CapacityPermit { files: FileTree::default(), oddities: Vec::new(), bytes: 0 };
    // Also what `..` and links on the way to it lead to: only with it can a link be seen to leave.
    let root = fs::canonicalize(dir).map_err(|error| WalkError::io(dir, error))?;
    for name in ROOTS {
        taken.entry(&root, &root.join(name), name, 0)?;
    }
    taken.oddities.sort_by(|a, b| a.path.cmp(&b.path));
    let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
    Ok(lint_files(rules, &Parts { name: &name, files: &taken.files, oddities: &taken.oddities, draft: None }))
}

struct CapacityPermit {
    files: FileTree,
    oddities: Vec<Oddity>,
    bytes: u64,
}

impl CapacityPermit {
    fn entry(&mut self, root: &Path, place: &Path, path: &str, depth: usize) -> Result<(), WalkError> {
        let metadata = match place.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata.map_err(|error| WalkError::io(place, error))?,
        };
        let odd = |kind| Oddity { path: path.to_owned(), kind };
        if metadata.is_symlink() {
            let inside = fs::canonicalize(place).is_ok_and(|target| target.starts_with(root));
            self.oddities.push(odd(if inside { OddityKind::Link } else { OddityKind::Escape }));
        } else if metadata.is_dir() {
            if depth == DEPTH {
                let why = format!("more than {DEPTH} folders deep");
                self.oddities.push(odd(OddityKind::Unreadable(why)));
                return Ok(());
            }
            for entry in fs::read_dir(place).map_err(|error| WalkError::io(place, error))? {
                let entry = entry.map_err(|error| WalkError::io(place, error))?;
                match entry.file_name().to_str() {
                    Some(name) if is_clutter(name) => {}
                    Some(name) => {
                        self.entry(root, &entry.path(), &format!("{path}/{name}"), depth + 1)?;
                    }
                    None => {
                        let why = format!("the name {:?} is not UTF-8", entry.file_name());
                        self.oddities.push(odd(OddityKind::Unreadable(why)));
                    }
                }
            }
        } else if !metadata.is_file() {
            self.oddities.push(odd(OddityKind::Unreadable("neither a file nor a folder".to_owned())));
        } else if self.files.0.len() == MOST_FILES || metadata.len() > MOST_BYTES - self.bytes {
            let why = format!("past {MOST_FILES} files or {} MiB; not linted", MOST_BYTES >> 20);
            self.oddities.push(odd(OddityKind::Unreadable(why)));
        } else if let Some(bytes) = read_file(place, metadata.len())? {
            self.bytes += metadata.len();
            let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
            // Names from a directory listing make plain relative paths.
            if let Ok(path) = RelPath::new(path) {
                self.files.insert(path, File { bytes, executable });
            }
        }
        Ok(())
    }
}
