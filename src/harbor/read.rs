//! Reads a directory as a task.

use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use super::ours::TermsmithTable;
use super::parse::{Finding, FindingKind, ManifestError, parse_manifest};
use super::write::canary_line;
use super::{NO_NETWORK, ORGANISATION};
use crate::folder::{Bounds, LARGEST_TEXT, WalkError, is_clutter, read_context, read_file, read_tree};
use crate::model::{
    Clauses, File, FileTree, Limits, PathError, RelPath, SubmissionSpec, Task, TaskDigest, TaskName,
    task_digest,
};

/// Limits of a task directory. A task is held in memory. The largest public tasks stay far below.
const BOUNDS: Bounds = Bounds { files: 10_000, depth: 32, bytes: 256 << 20 };

/// Files and folders that Harbor packages, files first (`publisher/packager.py`). It ignores
/// everything else.
const FILES: [&str; 4] = ["task.toml", "instruction.md", "README.md", "trajectory.json"];
const FOLDERS: [&str; 4] = [ENVIRONMENT, "tests", "solution", "steps"];
/// The folder of the build context.
const ENVIRONMENT: &str = "environment";

/// The clauses of an instruction. Harbor does not package this file.
pub const CLAUSES: &str = "clauses.toml";

/// Why a directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("`{}` contains no task.toml\nhint: a task directory has task.toml, instruction.md, environment/ and tests/", .0.display())]
    NotATask(PathBuf),
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error("`{}` is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("`{}` cannot be used: {source}", .path.display())]
    Manifest {
        path: PathBuf,
        #[source]
        source: ManifestError,
    },
    #[error("`{}` is not a valid clauses file: {message}\nhint: `termsmith schema clauses` prints its format", .path.display())]
    Clauses { path: PathBuf, message: String },
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Why a directory is not a task made by termsmith.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntoTaskError {
    #[error("task `{task}` was not made by termsmith: its task.toml has no [metadata.termsmith]")]
    Foreign { task: String },
    #[error(
        "task `{task}` has format {found}, but this build reads {}\nhint: use the termsmith that wrote it, or a newer one",
        TermsmithTable::FORMAT
    )]
    Format { task: String, found: i64 },
    #[error("task `{task}`: {message}")]
    Malformed { task: String, message: String },
}

/// A task directory in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HarborTask {
    /// The folder's name.
    pub name: String,
    pub manifest: Manifest,
    /// Everything that Harbor packages, builds from, or copies to the tests, by path below the
    /// directory.
    pub files: FileTree,
    /// Problems for the task's author.
    pub findings: Vec<Finding>,
}

/// Reads the task directory `dir`. It follows no links, and runs and downloads nothing.
pub fn read_task(dir: &Path) -> Result<HarborTask, ReadError> {
    let mut files = FileTree::default();
    for name in FILES {
        if let Some(bytes) = read_file(&dir.join(name), LARGEST_TEXT)? {
            files.insert(RelPath::new(name)?, File { bytes, executable: false });
        }
    }
    let manifest_path = dir.join("task.toml");
    if files.get("task.toml").is_none() {
        return Err(ReadError::NotATask(dir.to_owned()));
    }
    let text = files.text("task.toml").ok_or_else(|| ReadError::NotText(manifest_path.clone()))?;
    let (manifest, mut findings) =
        parse_manifest(text).map_err(|source| ReadError::Manifest { path: manifest_path, source })?;
    for folder in FOLDERS {
        let place = dir.join(folder);
        match place.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // A link in place of the folder itself is refused here. The functions below would
            // follow it.
            Ok(metadata) if metadata.is_symlink() => {
                return Err(WalkError { path: place, fault: crate::folder::Fault::Link }.into());
            }
            _ if folder == ENVIRONMENT => {
                files.graft(&RelPath::new(folder)?, &read_context(&place, &BOUNDS)?);
            }
            _ => files.graft(&RelPath::new(folder)?, &read_tree(&place, &BOUNDS)?),
        }
    }
    if written_here(&manifest) {
        // termsmith writes no such files. Programs that ran in the directory left them.
        files.files.retain(|path, _| is_packaged(path));
    }
    findings.extend(shape(dir, &files, &manifest));
    Ok(HarborTask { name: name_of(dir), manifest, files, findings })
}

/// The name of the folder `dir`, also if it is written as `.` or `..`.
fn name_of(dir: &Path) -> String {
    let name = |dir: &Path| Some(dir.file_name()?.to_string_lossy().into_owned());
    // A folder that cannot be resolved cannot be read either.
    name(dir).or_else(|| name(&dir.canonicalize().ok()?)).unwrap_or_else(|| dir.display().to_string())
}

/// Whether any version of termsmith wrote the directory.
fn written_here(manifest: &Manifest) -> bool {
    let table = manifest.metadata.as_ref().and_then(|metadata| metadata.get("termsmith"));
    table.is_some_and(|table| table.get("format").is_some())
}

/// Whether Harbor packages a file and includes it in the digest. Builds and tests also get the
/// other files.
fn is_packaged(path: &RelPath) -> bool {
    !path.as_str().split('/').any(is_clutter)
}

/// The `clauses.toml` of the task directory `dir`. No clauses if there is no such file.
pub fn read_clauses(dir: &Path) -> Result<Clauses, ReadError> {
    let path = dir.join(CLAUSES);
    let Some(bytes) = read_file(&path, LARGEST_TEXT)? else { return Ok(Clauses::default()) };
    let text = String::from_utf8(bytes).map_err(|_| ReadError::NotText(path.clone()))?;
    toml::from_str(&text).map_err(|error| ReadError::Clauses { path, message: error.to_string() })
}

/// Missing or questionable files of the directory.
fn shape(dir: &Path, files: &FileTree, manifest: &Manifest) -> Vec<Finding> {
    let finding = |file: &str, message: &str| Finding {
        kind: FindingKind::Directory,
        file: file.to_owned(),
        message: message.to_owned(),
    };
    let mut findings = Vec::new();
    let stepwise = manifest.steps.as_ref().is_some_and(|steps| !steps.is_empty());
    if !stepwise {
        match files.text("instruction.md") {
            None => findings.push(finding("instruction.md", "missing, or not UTF-8")),
            Some(text) if text.trim().is_empty() => findings.push(finding("instruction.md", "empty")),
            Some(_) => {}
        }
        if files.get("tests/test.sh").is_none() && files.get("tests/test.bat").is_none() {
            findings.push(finding("tests/test.sh", "missing, so solutions cannot be verified"));
        }
    }
    let image = manifest.environment.as_ref().and_then(|environment| environment.docker_image.as_ref());
    let built = ["environment/Dockerfile", "environment/docker-compose.yaml"];
    if image.is_none() && built.iter().all(|file| files.get(file).is_none()) {
        findings.push(finding(built[0], "missing, and `environment.docker_image` names no image"));
    }
    if files.get("trajectory.json").is_some() {
        findings.push(finding(
            "trajectory.json",
            "Harbor loads it as earlier context of the agent, and most agents then fail",
        ));
    }
    let mut unpackaged = files.iter().map(|(path, _)| path).filter(|path| !is_packaged(path));
    if let Some(path) = unpackaged.next() {
        let others = match unpackaged.count() {
            0 => String::new(),
            others => format!(" (and {others} more such files)"),
        };
        let message = format!(
            "has the name of a leftover file, so Harbor leaves it out of packages and digests{others}"
        );
        findings.push(finding(path.as_str(), &message));
    }
    for ignore in [".gitignore", "tests/.harborignore", "solution/.harborignore"] {
        if dir.join(ignore).symlink_metadata().is_ok() {
            findings.push(finding(
                ignore,
                "its patterns are not applied here, so the digest can differ from Harbor's",
            ));
        }
    }
    findings
}

impl HarborTask {
    /// Harbor's content digest (`sha256:…`).
    pub fn digest(&self) -> TaskDigest {
        if self.files.links.is_empty() && self.files.iter().all(|(path, _)| is_packaged(path)) {
            return task_digest(&self.files);
        }
        // For a link to a file, Harbor reads the file. It skips links to folders.
        let linked = self.files.links.iter().filter_map(|(path, target)| {
            let target = self.files.link_target(path, target)?;
            Some((path, self.files.get(target.as_str())?))
        });
        let packaged = self.files.iter().chain(linked).filter(|(path, _)| is_packaged(path));
        task_digest(&packaged.map(|(path, file)| (path.clone(), file.clone())).collect())
    }

    /// The text that a solver reads: `instruction.md` without the leading canary lines, and without
    /// blank lines after them. Harbor removes the same lines.
    pub fn instruction(&self) -> Option<&str> {
        self.instruction_at("instruction.md")
    }

    /// The text that a solver reads in a step of a multi-step task.
    pub fn step_instruction(&self, step: &str) -> Option<&str> {
        self.instruction_at(&format!("steps/{step}/instruction.md"))
    }

    fn instruction_at(&self, path: &str) -> Option<&str> {
        let mut rest = self.files.text(path)?;
        let lines = |text: &str| text.split_once('\n').map_or(text.len(), |(line, _)| line.len() + 1);
        while is_canary(rest.split('\n').next().unwrap_or_default()) {
            rest = &rest[lines(rest)..];
        }
        while !rest.is_empty() && rest.split('\n').next().is_some_and(|line| line.trim().is_empty()) {
            rest = &rest[lines(rest)..];
        }
        Some(rest)
    }

    /// The files below `folder` (e.g. `tests`), with paths relative to it.
    pub fn folder(&self, folder: &str) -> FileTree {
        self.files.below(folder)
    }

    /// The task in a directory that termsmith wrote.
    pub fn into_task(self) -> Result<Task, IntoTaskError> {
        let malformed = |message: String| IntoTaskError::Malformed { task: self.name.clone(), message };
        let table = self.manifest.metadata.as_ref().and_then(|metadata| metadata.get("termsmith"));
        let table = table.ok_or_else(|| IntoTaskError::Foreign { task: self.name.clone() })?;
        // The version is checked first, because the rest of a newer table may be unreadable.
        let format = table.get("format").and_then(toml::Value::as_integer);
        match format.ok_or_else(|| malformed("[metadata.termsmith] has no `format`".to_owned()))? {
            found if found == i64::from(TermsmithTable::FORMAT) => {}
            found => return Err(IntoTaskError::Format { task: self.name.clone(), found }),
        }
        let mut table = table.clone();
        // Lint settings are not part of the task.
        if let Some(table) = table.as_table_mut() {
            table.remove("lint");
        }
        let ours: TermsmithTable = table
            .try_into()
            .map_err(|error| malformed(format!("[metadata.termsmith]: {}", one_line(&error))))?;
        let network = self.manifest.environment.as_ref().and_then(|it| it.network_mode.as_deref());
        if network != Some(NO_NETWORK) {
            let found = network.unwrap_or("missing");
            return Err(malformed(format!(
                "`environment.network_mode` is {found}; tasks of termsmith have `{NO_NETWORK}`"
            )));
        }
        let package = self.manifest.task.clone().unwrap_or_default();
        let name =
            package.name.as_deref().and_then(|name| name.strip_prefix(ORGANISATION)?.strip_prefix('/'));
        let name =
            name.ok_or_else(|| malformed(format!("`task.name` does not begin with `{ORGANISATION}/`")))?;
        let text = self.files.text("instruction.md").unwrap_or_default();
        let instruction = canary_line(&ours.canary)
            .and_then(|line| text.strip_prefix(&line)?.strip_prefix("\n\n"))
            .ok_or_else(|| {
                malformed("`instruction.md` does not begin with the task's canary line".to_owned())
            })?;
        Ok(Task {
            name: TaskName::parse(name).map_err(|error| malformed(error.to_string()))?,
            title: package.description.unwrap_or_default(),
            base: ours.base.clone(),
            recipe_version: ours.recipe_version,
            canary: ours.canary.clone(),
            instruction: instruction.to_owned(),
            environment: self.folder("environment"),
            solution: self.folder("solution"),
            tests: self.folder("tests"),
            checks: ours.checks.clone(),
            weights: ours.weights.clone(),
            limits: self.limits(ours.pids).map_err(malformed)?,
            profile: ours.profile,
            submission: SubmissionSpec {
                roots: ours.roots.clone(),
                programs: ours.programs,
                bring_up: ours.bring_up.clone(),
                shared_because: ours.shared_because.clone(),
            },
            blueprint: ours.blueprint(),
        })
    }

    fn limits(&self, pids: u32) -> Result<Limits, String> {
        let environment = self.manifest.environment.clone().unwrap_or_default();
        let agent = self.manifest.agent.as_ref().and_then(|agent| agent.timeout_sec);
        let verifier = self.manifest.verifier.as_ref().and_then(|verifier| verifier.timeout_sec);
        let whole = |key: &str, value: Option<i64>| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .ok_or_else(|| format!("`{key}` is missing or out of range"))
        };
        let seconds = |key: &str, value: Option<f64>| {
            let value =
                value.filter(|value| value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(value));
            value
                .map(|value| value as u32)
                .ok_or_else(|| format!("`{key}` is missing, or not a whole number of seconds"))
        };
        let cpus = environment.cpus.filter(|cpus| cpus.is_finite() && *cpus > 0.0);
        Ok(Limits {
            cpus: cpus.ok_or("`environment.cpus` is missing or not positive")?,
            memory_mb: whole("environment.memory_mb", environment.memory_mb)?,
            storage_mb: whole("environment.storage_mb", environment.storage_mb)?,
            pids,
            build_timeout_sec: seconds("environment.build_timeout_sec", environment.build_timeout_sec)?,
            agent_timeout_sec: seconds("agent.timeout_sec", agent)?,
            verifier_timeout_sec: seconds("verifier.timeout_sec", verifier)?,
        })
    }
}

/// `models/task/task.py`: `^(<!--.*canary.*-->
/// #.*canary.*)$`, ignoring case.
fn is_canary(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    line.contains("canary") && (line.starts_with('#') || (line.starts_with("<!--") && line.ends_with("-->")))
}

fn one_line(error: &toml::de::Error) -> String {
    error.message().replace('\n', ", ")
}
