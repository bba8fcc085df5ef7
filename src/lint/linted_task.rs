//! The input of a rule.

use std::collections::BTreeSet;

use crate::harbor::{self, Environment, Manifest, Verifier};
use crate::model::{Draft, FileTree};

/// A task as rules see it. It is untrusted.
#[derive(Debug)]
pub(super) struct LintedTask<'a> {
    /// The name of the task's folder.
    pub(super) name: &'a str,
    pub(super) manifest: &'a Manifest,
    pub(super) files: &'a FileTree,
    /// Findings of the reader of `task.toml`.
    pub(super) read: &'a [harbor::Finding],
    /// Symbolic links, devices and other entries that are no regular files.
    pub(super) special_files: &'a [SpecialFile],
    /// Present if the task is a draft.
    pub(super) draft: Option<&'a Draft>,
    /// Ids of all rules.
    pub(super) known: &'a BTreeSet<&'a str>,
}

/// An entry of a task directory that is neither a regular file nor a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialFile {
    /// Path below the task directory.
    pub path: String,
    pub kind: SpecialFileKind,
}

/// The kind of a special file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecialFileKind {
    /// A symbolic link to another path in the task directory.
    Link,
    /// A symbolic link that leaves the task directory, or whose target does not exist.
    Escape,
    /// Any other unreadable entry, with the reason. E.g. a device, a socket, a pipe, a file that is
    /// too large, or a name that is not UTF-8.
    Unreadable(String),
}

impl<'a> LintedTask<'a> {
    pub(super) fn environment(&self) -> Option<&'a Environment> {
        self.manifest.environment.as_ref()
    }

    /// Whether a file is used in a build. A Dockerfile is not used if `task.toml` names an image.
    pub(super) fn builds(&self, path: &str) -> bool {
        let named =
            |environment: Option<&Environment>| environment.is_some_and(|it| it.docker_image.is_some());
        match path {
            "environment/Dockerfile" => !named(self.environment()),
            "tests/Dockerfile" => !named(self.verifier().and_then(|verifier| verifier.environment.as_ref())),
            _ => true,
        }
    }

    /// The container's folder for a file of `tests/` or `solution/`, e.g. `/tests/lib`.
    pub(super) fn folder_in_container(path: &str) -> String {
        let of_task = match path.strip_prefix("steps/").and_then(|rest| rest.split_once('/')) {
            Some((_, rest)) => rest,
            None => path,
        };
        format!("/{}", of_task.rsplit_once('/').map_or("", |(folder, _)| folder))
    }

    pub(super) fn verifier(&self) -> Option<&'a Verifier> {
        self.manifest.verifier.as_ref()
    }

    /// The verifiers of the task and of its steps.
    pub(super) fn verifiers(&self) -> impl Iterator<Item = &'a Verifier> {
        let steps = self.manifest.steps.iter().flatten().filter_map(|step| step.verifier.as_ref());
        self.verifier().into_iter().chain(steps)
    }

    pub(super) fn stepwise(&self) -> bool {
        self.manifest.steps.as_ref().is_some_and(|steps| !steps.is_empty())
    }

    /// Whether the tests run in a container of their own.
    pub(super) fn separate(&self) -> bool {
        self.verifier().is_some_and(|verifier| match verifier.environment_mode.as_deref() {
            Some(mode) => mode == "separate",
            None => verifier.environment.is_some(),
        })
    }

    /// The instructions of all steps, joined.
    pub(super) fn instructions(&self) -> String {
        self.texts(|path| path == "instruction.md" || path.ends_with("/instruction.md"))
            .map(|(_, text)| text)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Path and text of the files whose path satisfies `wanted`.
    pub(super) fn texts<F: Fn(&str) -> bool>(
        &self,
        wanted: F,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a, F> {
        let files: &'a FileTree = self.files;
        files
            .iter()
            .filter(move |(path, _)| wanted(path.as_str()))
            .filter_map(|(path, file)| Some((path.as_str(), file.as_text()?)))
    }

    /// Python files that contain pytest checks.
    pub(super) fn test_modules(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.texts(|path| {
            let name = path.rsplit('/').next().unwrap_or(path);
            in_tests(path)
                && name.ends_with(".py")
                && (name.starts_with("test_") || name.ends_with("_test.py"))
        })
    }

    /// The `test.sh` scripts of task and steps.
    pub(super) fn test_scripts(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.texts(|path| in_tests(path) && path.ends_with("/test.sh"))
    }

    /// Shell files of the reference.
    pub(super) fn solution_scripts(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.texts(|path| in_solution(path) && path.ends_with(".sh"))
    }
}

/// Whether `path` is below a folder `tests/` of the task or of a step.
pub(super) fn in_tests(path: &str) -> bool {
    within(path, "tests/")
}

/// Whether `path` is below a folder `solution/` of the task or of a step.
pub(super) fn in_solution(path: &str) -> bool {
    within(path, "solution/")
}

fn within(path: &str, folder: &str) -> bool {
    let of_step = || path.strip_prefix("steps/")?.split_once('/').map(|(_, rest)| rest.starts_with(folder));
    path.starts_with(folder) || of_step().unwrap_or(false)
}
