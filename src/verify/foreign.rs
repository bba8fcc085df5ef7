//! Harbor tasks of other makers, as trials need them.

mod builds;
pub(super) mod hints;
mod images;
mod keys;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::OnceCell;

use super::target::Images;
use crate::harbor::{Agent, Environment, HarborTask, StepEntry, Verifier};
use crate::model::{EnvironmentDigest, FileTree, Limits, Profile, RelPath, TaskDigest, environment_digest};
use crate::sandbox::Network;

/// Harbor's default time limit of a build.
const BUILD_TIMEOUT: f64 = 600.0;
/// Harbor's default time limit of a verifier.
const VERIFIER_TIMEOUT: f64 = 600.0;
/// Time limit of an agent if the task declares none. Harbor has no limit, but a reference solution
/// that takes an hour cannot be screened.
const AGENT_TIMEOUT: f64 = 3600.0;
/// Limits of a task that declares none. Harbor sets none. These protect the host, and no small task
/// reaches them.
const UNDECLARED: Limits = Limits {
    cpus: 2.0,
    memory_mb: 4096,
    storage_mb: 10_240,
    pids: 2048,
    build_timeout_sec: 600,
    agent_timeout_sec: 3600,
    verifier_timeout_sec: 600,
};

/// A task of any maker, judged as it declares.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub name: String,
    /// Harbor's digest of the directory.
    pub digest: TaskDigest,
    pub image: ImageSource,
    pub environment_digest: EnvironmentDigest,
    /// At least one step. An ordinary task has one, named "".
    pub steps: Vec<ForeignStep>,
    /// How the rewards of several steps are combined.
    pub strategy: Strategy,
    pub mode: Mode,
    pub limits: Limits,
    pub profile: Profile,
    pub network: Network,
    /// Work directory of solver and tests. `None` if it is the image's.
    pub workdir: Option<String>,
    pub solution_env: Vec<(String, String)>,
    pub environment_env: Vec<(String, String)>,
    /// They are built once, before the first trial.
    pub(super) images: OnceCell<Images>,
}

/// Where the solver's image comes from.
#[derive(Clone, Debug)]
pub enum ImageSource {
    Build(FileTree),
    Named(String),
}

/// Where the tests run. It is part of keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// In the solver's container, while its processes still run.
    Shared,
    /// In a container of the tests' own, with only the declared artifacts.
    Separate {
        /// Absolute paths that are copied to that container.
        artifacts: Vec<String>,
        /// The tests' own image, if `tests/` has a Dockerfile.
        own_image: bool,
    },
}

/// How the rewards of several steps are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Mean,
    Final,
}

/// One step with its files.
#[derive(Clone, Debug)]
pub struct ForeignStep {
    pub name: String,
    /// The instruction; empty if the task has none.
    pub instruction: String,
    pub solution: FileTree,
    pub tests: FileTree,
    /// Files that are put into the work directory before the step.
    pub workdir: FileTree,
    /// Minimum rewards, by name, without which the next step is not reached.
    pub min_reward: BTreeMap<String, f64>,
    pub verifier_env: Vec<(String, String)>,
    pub agent_timeout: Duration,
    pub verifier_timeout: Duration,
    pub verifier_user: Option<String>,
    pub agent_user: Option<String>,
}

pub(super) use builds::check_host;

/// Why a task is not supported here. The task has no defect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not supported by this engine: {0}")]
pub struct Unsupported(pub String);

impl Foreign {
    /// Reads a task directory.
    pub fn new(task: &HarborTask) -> Result<Self, Unsupported> {
        let unsupported = |what: &str| Err(Unsupported(what.to_owned()));
        let manifest = &task.manifest;
        let environment = manifest.environment.clone().unwrap_or_default();
        if environment.os.as_deref().is_some_and(|os| os != "linux") {
            return unsupported("it is for another operating system");
        }
        if environment.gpus.is_some_and(|gpus| gpus > 0) || environment.tpu.is_some() {
            return unsupported("it requires a GPU or a TPU");
        }
        for file in ["environment/docker-compose.yaml", "tests/docker-compose.yaml"] {
            if task.files.get(file).is_some() {
                return unsupported(&format!("`{file}` declares several containers, and a trial has one"));
            }
        }
        let limits = limits(&environment, manifest.agent.as_ref(), manifest.verifier.as_ref())?;
        let separate = keys::is_separate(manifest)?;
        let network = keys::network(manifest)?;
        keys::check(task, separate, &limits)?;
        let own = if separate { own_image(task) } else { None };
        let built = environment.docker_image.is_none().then_some("environment");
        builds::check(task, &built.into_iter().chain(own).collect::<Vec<_>>())?;
        let context = task.folder("environment");
        let image = match &environment.docker_image {
            Some(name) => ImageSource::Named(name.clone()),
            None => ImageSource::Build(context.clone()),
        };
        let shared = task.folder("tests");
        let steps: Vec<_> = match manifest.steps.as_deref().unwrap_or_default() {
            [] => vec![ForeignStep::single(task, shared)?],
            steps => {
                let steps = steps.iter().enumerate();
                steps
                    .map(|(index, step)| ForeignStep::of(task, index, step, &shared))
                    .collect::<Result<_, _>>()?
            }
        };
        Ok(Self {
            name: task.name.clone(),
            digest: task.digest(),
            environment_digest: match &image {
                ImageSource::Named(name) => {
                    environment_digest(&FileTree::default(), &format!("image:{name}"))
                }
                ImageSource::Build(context) => environment_digest(context, ""),
            },
            image,
            steps,
            strategy: match manifest.multi_step_reward_strategy.as_deref() {
                Some("final") => Strategy::Final,
                _ => Strategy::Mean,
            },
            mode: if separate { apart(task) } else { Mode::Shared },
            limits,
            profile: Profile::Stock,
            network,
            workdir: environment.workdir.clone(),
            solution_env: keys::expanded(
                "solution.env",
                manifest.solution.iter().flat_map(|solution| &solution.env).flatten(),
            )?,
            environment_env: keys::expanded("environment.env", environment.env.iter().flatten())?,
            images: OnceCell::new(),
        })
    }

    /// One of the task's steps, counted from 0.
    pub(super) fn step(&self, number: usize) -> &ForeignStep {
        &self.steps[number]
    }
}

impl ForeignStep {
    fn single(task: &HarborTask, tests: FileTree) -> Result<Self, Unsupported> {
        let manifest = &task.manifest;
        let step = Self {
            name: String::new(),
            instruction: task.instruction().unwrap_or_default().to_owned(),
            solution: task.folder("solution"),
            tests,
            workdir: FileTree::default(),
            min_reward: BTreeMap::new(),
            verifier_env: keys::tests_env(manifest, None)?,
            ..Self::empty()
        };
        Ok(step.with(manifest.agent.as_ref(), manifest.verifier.as_ref()))
    }

    fn of(
        task: &HarborTask,
        index: usize,
        entry: &StepEntry,
        shared: &FileTree,
    ) -> Result<Self, Unsupported> {
        let manifest = &task.manifest;
        let folder = format!("steps/{}", entry.name);
        // A step's own tests replace those of the whole task.
        let mut tests = shared.clone();
        for (path, file) in task.folder(&format!("{folder}/tests")).iter() {
            tests.insert(path.clone(), file.clone());
        }
        let step = Self {
            name: entry.name.clone(),
            instruction: task.step_instruction(&entry.name).unwrap_or_default().to_owned(),
            solution: task.folder(&format!("{folder}/solution")),
            tests,
            workdir: task.folder(&format!("{folder}/workdir")),
            min_reward: entry.min_reward.as_ref().map(thresholds).unwrap_or_default(),
            verifier_env: keys::tests_env(manifest, Some((index, entry)))?,
            ..Self::empty()
        };
        let step = step.with(manifest.agent.as_ref(), manifest.verifier.as_ref());
        Ok(step.with(entry.agent.as_ref(), entry.verifier.as_ref()))
    }

    fn empty() -> Self {
        Self {
            name: String::new(),
            instruction: String::new(),
            solution: FileTree::default(),
            tests: FileTree::default(),
            workdir: FileTree::default(),
            min_reward: BTreeMap::new(),
            verifier_env: Vec::new(),
            agent_timeout: seconds(None, AGENT_TIMEOUT),
            verifier_timeout: seconds(None, VERIFIER_TIMEOUT),
            verifier_user: None,
            agent_user: None,
        }
    }

    /// Replaces values with those of these tables.
    fn with(mut self, agent: Option<&Agent>, verifier: Option<&Verifier>) -> Self {
        if let Some(agent) = agent {
            self.agent_timeout =
                agent.timeout_sec.map_or(self.agent_timeout, |limit| seconds(Some(limit), limit));
            self.agent_user = agent.user.as_ref().map(user).or(self.agent_user);
        }
        if let Some(verifier) = verifier {
            self.verifier_timeout =
                verifier.timeout_sec.map_or(self.verifier_timeout, |limit| seconds(Some(limit), limit));
            self.verifier_user = verifier.user.as_ref().map(user).or(self.verifier_user);
        }
        self
    }
}

/// The mode of a task whose tests have a container of their own.
fn apart(task: &HarborTask) -> Mode {
    let declared = task.manifest.artifacts.iter().flatten().filter_map(|artifact| match artifact {
        toml::Value::String(path) => Some(path.clone()),
        toml::Value::Table(table) => table.get("source").and_then(toml::Value::as_str).map(str::to_owned),
        _ => None,
    });
    let artifacts = ["/logs/artifacts".to_owned()].into_iter().chain(declared).collect();
    Mode::Separate { artifacts, own_image: own_image(task).is_some() }
}

/// The folder of the tests' own image, if they have one.
fn own_image(task: &HarborTask) -> Option<&'static str> {
    task.files.get("tests/Dockerfile").map(|_| "tests")
}

fn limits(
    environment: &Environment,
    agent: Option<&Agent>,
    verifier: Option<&Verifier>,
) -> Result<Limits, Unsupported> {
    let time =
        |value: Option<f64>, default: f64| seconds(value, default).as_secs().try_into().unwrap_or(u32::MAX);
    Ok(Limits {
        cpus: builds::cpus(environment.cpus, UNDECLARED.cpus)?,
        memory_mb: builds::whole("memory_mb", environment.memory_mb, UNDECLARED.memory_mb)?,
        storage_mb: builds::whole("storage_mb", environment.storage_mb, UNDECLARED.storage_mb)?,
        pids: UNDECLARED.pids,
        build_timeout_sec: time(environment.build_timeout_sec, BUILD_TIMEOUT),
        agent_timeout_sec: time(agent.and_then(|agent| agent.timeout_sec), AGENT_TIMEOUT),
        verifier_timeout_sec: time(verifier.and_then(|verifier| verifier.timeout_sec), VERIFIER_TIMEOUT),
    })
}

/// A number is the minimum of `reward`. A table has a minimum for each name.
fn thresholds(declared: &toml::Value) -> BTreeMap<String, f64> {
    // A text with a number in it is a number, as for Harbor's parser.
    let number = |value: &toml::Value| match value {
        toml::Value::String(text) => text.trim().parse().ok(),
        value => value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64)),
    };
    match declared.as_table() {
        Some(table) => {
            table.iter().filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect()
        }
        None => number(declared).map(|least| ("reward".to_owned(), least)).into_iter().collect(),
    }
}

fn seconds(value: Option<f64>, default: f64) -> Duration {
    let value = value.filter(|value| *value > 0.0).unwrap_or(default);
    Duration::try_from_secs_f64(value).unwrap_or(Duration::from_secs(UNDECLARED.agent_timeout_sec.into()))
}

fn user(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The test files that an attacker may read: all but pristine copies of inputs.
fn public_tests(tests: &FileTree) -> FileTree {
    let mut public = FileTree::default();
    for (path, file) in tests.iter().filter(|(path, _)| !path.as_str().starts_with("pristine/")) {
        public.insert(path.clone(), file.clone());
    }
    public
}

/// Everything that an attacker may read: the instruction, the absolute paths in it, and the public
/// part of the tests.
pub fn knowledge(instruction: &str, tests: &FileTree) -> FileTree {
    let mut knows = FileTree::default();
    let mut add = |name: &str, text: String| {
        if let Ok(path) = RelPath::new(name) {
            knows.insert(path, crate::model::File::text(text));
        }
    };
    add("instruction.md", instruction.to_owned());
    add("paths", absolute_paths(instruction).into_iter().map(|path| format!("{path}\n")).collect());
    if let Ok(folder) = RelPath::new("tests") {
        knows.graft(&folder, &public_tests(tests));
    }
    knows
}

/// The absolute paths in a text, in order and without duplicates. URLs and single slashes are no
/// paths.
pub fn absolute_paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let part_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    for (at, _) in text.match_indices('/') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| part_of_path(c) || c == ':' || c == '<' || c == '~') {
            continue;
        }
        let end = text[at..].find(|c: char| !part_of_path(c)).map_or(text.len(), |length| at + length);
        let path = text[at..end].trim_end_matches(['.', '/', '-']);
        if path.len() > 1 && !paths.iter().any(|have| have == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_rewards() {
        let check = |text: &str, expect: &[(&str, f64)]| {
            let table: toml::Table = format!("min_reward = {text}").parse().unwrap();
            let expect: BTreeMap<_, _> =
                expect.iter().map(|(name, least)| ((*name).to_owned(), *least)).collect();
            assert_eq!(thresholds(&table["min_reward"]), expect, "{text}");
        };
        check("0.5", &[("reward", 0.5)]);
        check("1", &[("reward", 1.0)]);
        check("{ speed = 0.25, reward = 1 }", &[("reward", 1.0), ("speed", 0.25)]);
        check("\"0.5\"", &[("reward", 0.5)]);
        check("\"much\"", &[]);
    }

    #[test]
    fn paths_of_an_instruction() {
        let check = |text: &str, expect: &[&str]| assert_eq!(absolute_paths(text), expect, "{text}");
        check("Write `/app/out.json` and /app/b.csv.", &["/app/out.json", "/app/b.csv"]);
        check("See https://example.org/a/b or a/b, and/or ~/x.", &[]);
        check("In /app/, read /app/in; then /app/in again.", &["/app", "/app/in"]);
        check("a / b", &[]);
    }
}
