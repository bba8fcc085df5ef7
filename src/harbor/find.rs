//! Finds task directories below a folder, and lists what it skips.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::WalkError;

/// Maximum number of nested folders that are searched. Tasks are often in folders of folders.
/// Deeper nesting is probably a home directory.
const DEPTH: usize = 6;

/// The tasks at and below a folder, and everything else there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundTasks {
    /// Task directories, in path order. A task has a `task.toml`, or an `expect.toml` that expects
    /// the task to be refused.
    pub tasks: Vec<PathBuf>,
    /// Folders and links that are no tasks, in path order. Hidden ones are left out.
    pub skipped: Vec<Skipped>,
    /// Files that are in no task, in path order. Hidden ones are left out.
    pub files: Vec<PathBuf>,
}

/// A folder or link that was skipped.
#[derive(Debug, PartialEq, Eq)]
pub struct Skipped {
    pub path: PathBuf,
    pub why: SkippedBecause,
}

/// Why it is no task.
#[derive(Debug, PartialEq, Eq)]
pub enum SkippedBecause {
    Empty,
    /// Neither the folder nor a folder in it has a `task.toml`.
    HasNoTask,
    TooDeep,
    LeadsNowhere,
    /// A link to a folder that is no task. The folder is not searched, because a link can lead
    /// anywhere.
    LeadsToNoTask,
    LeadsToTask(PathBuf),
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            SkippedBecause::Empty => write!(f, "`{path}` is an empty folder"),
            SkippedBecause::HasNoTask => write!(f, "`{path}` has no task.toml"),
            SkippedBecause::TooDeep => write!(f, "`{path}` lies more than {DEPTH} folders deep"),
            SkippedBecause::LeadsNowhere => write!(f, "`{path}` is a broken link"),
            SkippedBecause::LeadsToNoTask => write!(f, "`{path}` is a link to a folder without a task.toml"),
            SkippedBecause::LeadsToTask(task) => {
                write!(f, "`{path}` is a link to `{}`, which is in the list already", task.display())
            }
        }
    }
}

/// The task directories at or below `root`. Folders inside a task are not searched. A link to a
/// task is followed. Each task is listed once.
pub fn find_tasks(root: &Path) -> Result<FoundTasks, WalkError> {
    let mut search = Search::default();
    if is_task(root) {
        search.found.tasks.push(root.to_owned());
    } else {
        search.folder(root, 0)?;
        search.links();
    }
    let Search { mut found, .. } = search;
    found.tasks.sort();
    found.files.sort();
    found.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn is_task(place: &Path) -> bool {
    ["task.toml", "expect.toml"].iter().any(|name| place.join(name).symlink_metadata().is_ok())
}

#[derive(Default)]
struct Search {
    found: FoundTasks,
    /// Links are followed last, so that a task has the name of its own folder.
    links: Vec<PathBuf>,
}

impl Search {
    fn folder(&mut self, place: &Path, depth: usize) -> Result<(), WalkError> {
        let io = |error| WalkError::io(place, error);
        let mut inside = Vec::new();
        for entry in fs::read_dir(place).map_err(io)? {
            let entry = entry.map_err(io)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().map_err(io)?;
            if kind.is_symlink() {
                self.links.push(entry.path());
            } else if kind.is_dir() {
                inside.push(entry.path());
            } else {
                self.found.files.push(entry.path());
            }
        }
        inside.sort();
        inside.into_iter().try_for_each(|inner| self.inner(inner, depth))
    }

    /// Searches a folder inside a searched folder.
    fn inner(&mut self, place: PathBuf, depth: usize) -> Result<(), WalkError> {
        if is_task(&place) {
            self.found.tasks.push(place);
            return Ok(());
        }
        if depth + 1 == DEPTH {
            self.found.skipped.push(Skipped { path: place, why: SkippedBecause::TooDeep });
            return Ok(());
        }
        let (tasks, links) = (self.found.tasks.len(), self.links.len());
        let (skipped, files) = (self.found.skipped.len(), self.found.files.len());
        self.folder(&place, depth + 1)?;
        if (tasks, links) == (self.found.tasks.len(), self.links.len()) {
            // One line for the whole folder.
            let empty = (skipped, files) == (self.found.skipped.len(), self.found.files.len());
            self.found.skipped.truncate(skipped);
            self.found.files.truncate(files);
            let why = if empty { SkippedBecause::Empty } else { SkippedBecause::HasNoTask };
            self.found.skipped.push(Skipped { path: place, why });
        }
        Ok(())
    }

    fn links(&mut self) {
        let mut links = std::mem::take(&mut self.links);
        links.sort();
        let own =
            self.found.tasks.iter().filter_map(|task| Some((fs::canonicalize(task).ok()?, task.clone())));
        let mut places: BTreeMap<PathBuf, PathBuf> = own.collect();
        for path in links {
            let why = match fs::canonicalize(&path) {
                Err(_) => SkippedBecause::LeadsNowhere,
                Ok(place) if place.is_file() => {
                    self.found.files.push(path);
                    continue;
                }
                Ok(place) if !is_task(&place) => SkippedBecause::LeadsToNoTask,
                Ok(place) => match places.get(&place) {
                    Some(task) => SkippedBecause::LeadsToTask(task.clone()),
                    None => {
                        places.insert(place, path.clone());
                        self.found.tasks.push(path);
                        continue;
                    }
                },
            };
            self.found.skipped.push(Skipped { path, why });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_found_and_the_rest_is_named() {
        // In `entries`, a path with a final `/` is a folder, and ` -> ` marks a link.
        let check = |entries: &[&str], tasks: &[&str], skipped: &[&str], files: usize| {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path();
            for entry in entries {
                let (path, target) = entry.split_once(" -> ").unwrap_or((entry, ""));
                let place = root.join(path);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                match (target, path.ends_with('/')) {
                    ("", true) => fs::create_dir_all(place).unwrap(),
                    ("", false) => fs::write(place, "").unwrap(),
                    (target, _) => std::os::unix::fs::symlink(target, place).unwrap(),
                }
            }
            let found = find_tasks(root).unwrap();
            let names: Vec<_> =
                found.tasks.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
            let lines: Vec<_> = found
                .skipped
                .iter()
                .map(|skipped| skipped.to_string().replace(&format!("{}/", root.display()), ""))
                .collect();
            assert_eq!(
                (names, lines, found.files.len()),
                (tasks.to_vec(), skipped.iter().map(|s| (*s).to_owned()).collect(), files)
            );
        };
        check(
            &["b/task.toml", "a/2/task.toml", "a/1/task.toml", "a/1/steps/x/task.toml", ".h/task.toml"],
            &["a/1", "a/2", "b"],
            &[],
            0,
        );
        check(
            &[
                "real/task.toml",
                "linked -> real",
                "away -> ../gone",
                "none/instruction.md",
                "empty/",
                "README.md",
            ],
            &["real"],
            &[
                "`away` is a broken link",
                "`empty` is an empty folder",
                "`linked` is a link to `real`, which is in the list already",
                "`none` has no task.toml",
            ],
            1,
        );
        // Of a deep folder without tasks, only the top is listed.
        check(&["t/task.toml", "src/a/b.rs", "src/c/"], &["t"], &["`src` has no task.toml"], 0);
        // A link to a task elsewhere is a task. A link to a folder of tasks is listed as skipped.
        check(
            &["all/one -> ../elsewhere/one", "all/two -> ../elsewhere", "elsewhere/one/x -> ../../none"],
            &[],
            &[
                "`all/one` is a link to a folder without a task.toml",
                "`all/two` is a link to a folder without a task.toml",
                "`elsewhere/one/x` is a broken link",
            ],
            0,
        );
        check(&["all/one -> ../.elsewhere/one", ".elsewhere/one/task.toml"], &["all/one"], &[], 0);
        check(
            &["loop/in -> ..", "t/task.toml"],
            &["t"],
            &["`loop/in` is a link to a folder without a task.toml"],
            0,
        );
        check(&["a/b/c/d/e/f/g/task.toml"], &[], &["`a` has no task.toml"], 0);
        check(&["wanted/expect.toml"], &["wanted"], &[], 0);
    }

    #[test]
    fn a_task_is_found_at_its_own_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("b/task.toml"), "").unwrap();
        assert_eq!(find_tasks(&dir.path().join("b")).unwrap().tasks, [dir.path().join("b")]);
        assert!(find_tasks(&dir.path().join("none")).is_err());
    }
}
