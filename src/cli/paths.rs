//! Checks the paths that the user names before any work begins. Errors say what was expected at a
//! path.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::exit::Status;
use super::failure::Failure;
use super::say;
use crate::harbor::{FoundTasks, find_tasks};

/// Number of folders and links that a note names one by one.
const MOST_NAMED: usize = 20;

/// Number of other files that a note names.
const MOST_FILES: usize = 5;

/// What a path of the command line has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    TaskDirectory,
    TaskDirectories,
    RunFolder,
    Rollouts,
    Solution,
    Settings,
    Recording,
    Domains,
    Templates,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Either,
}

impl Expected {
    fn kind(self) -> Kind {
        match self {
            Self::TaskDirectory
            | Self::TaskDirectories
            | Self::RunFolder
            | Self::Domains
            | Self::Templates => Kind::Folder,
            Self::Rollouts | Self::Solution => Kind::Either,
            Self::Settings | Self::Recording => Kind::File,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TaskDirectory => "a task directory",
            Self::TaskDirectories => "a task directory or a folder of them",
            Self::RunFolder => "a termsmith run folder",
            Self::Rollouts => "a Harbor job folder, a trial folder or an ATIF file",
            Self::Solution => "a solution script or folder",
            Self::Settings => "a settings file",
            Self::Recording => "a recording of model calls",
            Self::Domains => "a folder of domain specs",
            Self::Templates => "a folder of templates",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::TaskDirectory | Self::TaskDirectories => {
                "a task directory has task.toml, instruction.md, environment/ and tests/"
            }
            Self::RunFolder => "give the --out folder of a `termsmith run`, `rollout` or `import`",
            Self::Rollouts => {
                "Harbor writes `jobs/<job>/<trial>/agent/trajectory.json`; any of these can be given"
            }
            Self::Solution => {
                "give a bash script, or a folder with `solve.sh` and the files that it uses; without --solution the task's own \
                 `solution/` is used"
            }
            Self::Settings => {
                "`termsmith schema settings` describes the file; --base-url and --model do without one"
            }
            Self::Recording => "--record FILE makes one",
            Self::Domains => "without --domains the built-in specs are used",
            Self::Templates => "without --templates the built-in templates are used",
        }
    }

    /// The exit status if something else is there, or nothing.
    fn status(self) -> Status {
        match self {
            Self::RunFolder => Status::Io,
            Self::TaskDirectory
            | Self::TaskDirectories
            | Self::Rollouts
            | Self::Solution
            | Self::Settings
            | Self::Recording
            | Self::Domains
            | Self::Templates => Status::BadInput,
        }
    }

    pub(super) fn failure(self, path: &Path, problem: &str) -> Failure {
        let (name, hint) = (self.name(), self.hint());
        Failure::message(
            self.status(),
            format!("`{}` {problem}; {name} was expected\nhint: {hint}", path.display()),
        )
    }
}

/// Refuses a path that is missing, unreadable, or a folder in place of a file (or the reverse).
pub(super) fn check(path: &Path, expected: Expected) -> Result<(), Failure> {
    let metadata = fs::metadata(path).map_err(|error| expected.failure(path, &problem(&error)))?;
    match expected.kind() {
        Kind::File if metadata.is_dir() => Err(expected.failure(path, "is a folder")),
        Kind::Folder if !metadata.is_dir() => Err(expected.failure(path, "is a file")),
        Kind::File | Kind::Folder | Kind::Either => Ok(()),
    }
}

fn problem(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        // A parent in the path is a file.
        io::ErrorKind::NotADirectory => "does not exist (a part of the path is a file)".to_owned(),
        _ => format!("cannot be read ({error})"),
    }
}

/// The task directories at or below `paths`, each once. Each path must have at least one. Prints a
/// note about skipped folders.
pub(super) fn tasks(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let (mut found, mut places) = (Vec::new(), BTreeSet::new());
    for path in paths {
        check(path, Expected::TaskDirectories)?;
        let below = find_tasks(path)?;
        note_skipped(path, &below);
        if below.tasks.is_empty() {
            return Err(Expected::TaskDirectories.failure(path, "has no task directory"));
        }
        for dir in below.tasks {
            let place = fs::canonicalize(&dir)
                .map_err(|error| Expected::TaskDirectories.failure(&dir, &problem(&error)))?;
            // The name of a task's folder is the task's name.
            let dir = named(&dir);
            if dir.file_name().is_none() {
                return Err(Expected::TaskDirectories.failure(path, "has no name"));
            }
            if places.insert(place) {
                found.push(dir);
            }
        }
    }
    Ok(found)
}

fn note_skipped(path: &Path, found: &FoundTasks) {
    for skipped in found.skipped.iter().take(MOST_NAMED) {
        say::note(format!("passed over: {skipped}"));
    }
    if let more @ 1.. = found.skipped.len().saturating_sub(MOST_NAMED) {
        say::note(format!("passed over: {more} more folders and links"));
    }
    let files = found.files.iter().map(|file| format!("`{}`", file.display()));
    match found.files.len() {
        0 => {}
        more @ ..=MOST_FILES => {
            let files = files.collect::<Vec<_>>().join(", ");
            say::note(format!("passed over: {more} file{} beside the tasks: {files}", plural(more)));
        }
        more => say::note(format!("passed over: {more} files beside the tasks of `{}`", path.display())),
    }
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// `path`. If it ends in `.` or `..`, the folder that it leads to, since that has a name.
pub(super) fn named(path: &Path) -> PathBuf {
    let leads_to = || fs::canonicalize(path).ok();
    path.file_name().is_none().then(leads_to).flatten().unwrap_or_else(|| path.to_owned())
}

/// Refuses an output folder if a file is at its path. `flag` is the option that named it.
pub(super) fn check_output_folder(path: &Path, flag: &str) -> Result<(), Failure> {
    // The innermost existing part of the path decides.
    let Some((existing, metadata)) =
        path.ancestors().find_map(|part| fs::metadata(part).ok().map(|metadata| (part, metadata)))
    else {
        return Ok(());
    };
    if metadata.is_dir() {
        return Ok(());
    }
    Err(Failure::message(
        Status::Io,
        format!(
            "`{}` cannot be written: `{}` is a file, and a folder is needed\nhint: choose another {flag} folder",
            path.display(),
            existing.display()
        ),
    ))
}

/// Refuses an output file if a folder is at its path, or if its own folder does not exist.
pub(super) fn check_output_file(path: &Path, flag: &str) -> Result<(), Failure> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let problem = if path.is_dir() {
        "it is a folder".to_owned()
    } else if !parent.is_dir() {
        format!("the folder `{}` does not exist", parent.display())
    } else {
        return Ok(());
    };
    let hint = format!("{flag} takes a file in a folder that exists");
    Err(Failure::message(
        Status::Io,
        format!("`{}` cannot be written: {problem}\nhint: {hint}", path.display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_directories_are_found_once_and_have_names() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["all/a/task.toml", "all/b/task.toml", "all/a/tests/test.sh", "one/task.toml"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("one"), dir.path().join("linked")).unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let check = |paths: &[&str], expect: &[&str]| {
            let paths: Vec<_> = paths.iter().map(|path| root.join(path)).collect();
            let found = tasks(&paths).map_err(|failure| failure.error).unwrap();
            let expect: Vec<_> = expect.iter().map(|path| root.join(path)).collect();
            assert_eq!(found, expect, "{paths:?}");
        };
        check(&["all", "one"], &["all/a", "all/b", "one"]);
        check(&["all", "all/b"], &["all/a", "all/b"]);
        check(&["all/b", "all"], &["all/b", "all/a"]);
        check(&["one", "linked", "one/", "all/../one"], &["one"]);
        // A link is known by its own name.
        check(&["linked"], &["linked"]);
        check(&["all/a/tests/.."], &["all/a"]);
        check(&["all/a/tests/..", "all"], &["all/a", "all/b"]);
    }
}
