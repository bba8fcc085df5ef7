//! Writes a task as the files of its directory.

use serde::Serialize;

use super::manifest::{Agent, Author, Environment, Package, Verifier};
use super::ours::TermsmithTable;
use super::{NO_NETWORK, ORGANISATION, SCHEMA_VERSION};
use crate::folder::is_clutter;
use crate::model::{Difficulty, DomainId, File, FileTree, PathError, RelPath, Task};

/// The error for a task that cannot be written as a directory.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(
        "the canary of task `{task}` does not fit on one comment line\nhint: it must be one line without `-->`, and contain the word `canary`"
    )]
    Canary { task: String },
    #[error(
        "task `{task}` has `{path}`, which Harbor treats as a leftover file and does not package\nhint: give the file another name"
    )]
    Clutter { task: String, path: RelPath },
    #[error("failed to write a TOML file of `{task}`: {source}")]
    Toml {
        task: String,
        #[source]
        source: toml::ser::Error,
    },
    #[error("task `{task}` has a file with an invalid path: {source}")]
    Path {
        task: String,
        #[source]
        source: PathError,
    },
}

/// How a task is written for other harnesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publication {
    /// Registry prefix of the published image, which is called `<prefix>/<task>`. Without a prefix
    /// the task names its Dockerfile, because nobody else has a local image.
    pub image_prefix: Option<String>,
    pub verifier: DeclaredVerifier,
}

/// Harbor's `verifier.environment_mode` of a written task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeclaredVerifier {
    /// The tests run in a container of their own that gets copies of the roots. A task with
    /// `shared_because` uses the shared mode all the same.
    #[default]
    Separate,
    /// The tests run in the solver's container. For harnesses that have no other mode.
    Shared,
}

/// The files of `task`'s directory: `task.toml`, `instruction.md`, `environment/`, `solution/` and
/// `tests/`.
pub fn write_task(task: &Task, publication: &Publication) -> Result<FileTree, WriteError> {
    let name = || task.name.to_string();
    let manifest = written(task, publication);
    let text = toml::to_string(&manifest).map_err(|source| WriteError::Toml { task: name(), source })?;
    let canary = canary_line(&task.canary).ok_or_else(|| WriteError::Canary { task: name() })?;
    let path = |path: &str| RelPath::new(path).map_err(|source| WriteError::Path { task: name(), source });
    let mut files = FileTree::default();
    files.insert(path("task.toml")?, File::text(text));
    files.insert(path("instruction.md")?, File::text(format!("{canary}\n\n{}", task.instruction)));
    files.graft(&path("environment")?, &task.environment);
    files.graft(&path("solution")?, &task.solution);
    files.graft(&path("tests")?, &task.tests);
    let clutter =
        files.iter().map(|(path, _)| path).find(|path| path.as_str().split('/').any(is_clutter)).cloned();
    match clutter {
        Some(path) => Err(WriteError::Clutter { task: name(), path }),
        None => Ok(files),
    }
}

/// The first line of `instruction.md`. Harbor removes leading comment lines with the word `canary`
/// before a solver reads the text.
pub(super) fn canary_line(canary: &str) -> Option<String> {
    let fits =
        !canary.contains(['\n', '\r']) && !canary.contains("-->") && canary.to_lowercase().contains("canary");
    fits.then(|| format!("<!-- {canary}: a text with this line in it was copied from this task -->"))
}

/// The part of a [`Manifest`](super::Manifest) that is written, in a good order for people.
#[derive(Serialize)]
struct Written<'a> {
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<&'a [String]>,
    task: Package,
    metadata: Metadata<'a>,
    agent: Agent,
    verifier: Verifier,
    environment: Environment,
}

/// `[metadata]`: keys that readers of Harbor tasks look for, and termsmith's table.
#[derive(Serialize)]
struct Metadata<'a> {
    difficulty: Difficulty,
    /// From 1.
    difficulty_level: u8,
    category: &'a DomainId,
    tags: &'a [String],
    termsmith: TermsmithTable,
}

fn written<'a>(task: &'a Task, publication: &Publication) -> Written<'a> {
    let separate =
        publication.verifier == DeclaredVerifier::Separate && task.submission.needs_shared().is_none();
    let image_prefix = publication.image_prefix.as_deref();
    let docker_image = image_prefix.map(|prefix| format!("{}/{}", prefix.trim_end_matches('/'), task.name));
    let blueprint = &task.blueprint;
    let limits = &task.limits;
    let kind = blueprint.kind.as_str().to_owned();
    Written {
        schema_version: SCHEMA_VERSION,
        artifacts: separate.then_some(task.submission.roots.as_slice()),
        task: Package {
            name: Some(format!("{ORGANISATION}/{}", task.name)),
            version: Some(task.recipe_version.to_string()),
            description: Some(task.title.clone()),
            authors: Some(vec![Author { name: ORGANISATION.to_owned(), email: None }]),
            keywords: Some(vec![blueprint.domain.to_string(), kind, blueprint.language.clone()]),
        },
        metadata: Metadata {
            difficulty: blueprint.difficulty,
            difficulty_level: match blueprint.difficulty {
                Difficulty::Easy => 1,
                Difficulty::Medium => 2,
                Difficulty::Hard => 3,
            },
            category: &blueprint.domain,
            tags: &blueprint.skills,
            termsmith: TermsmithTable::of(task),
        },
        agent: Agent { timeout_sec: Some(limits.agent_timeout_sec.into()), ..Agent::default() },
        verifier: Verifier {
            timeout_sec: Some(limits.verifier_timeout_sec.into()),
            environment_mode: Some(if separate { "separate" } else { "shared" }.to_owned()),
            ..Verifier::default()
        },
        environment: Environment {
            build_timeout_sec: Some(limits.build_timeout_sec.into()),
            docker_image,
            cpus: Some(limits.cpus),
            memory_mb: Some(limits.memory_mb.into()),
            storage_mb: Some(limits.storage_mb.into()),
            // Harbor's default is `public`. But the instructions of termsmith's tasks say that
            // there is no network.
            network_mode: Some(NO_NETWORK.to_owned()),
            ..Environment::default()
        },
    }
}
