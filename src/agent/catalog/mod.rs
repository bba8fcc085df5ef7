//! Agents that termsmith can install: manifests, lock files, and the layers that they become.
//!
//! A layer is built on the host from the archives of registries, kept in a volume of the engine,
//! and mounted read-only in the solver's container. The task's image needs neither Python nor Node.

mod build;
mod fetch;
mod lock;
mod manifest;
mod packages;
mod python;
mod runtime;
mod tree;
mod unpack;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

pub use build::{BuildError, Built, Source, build};
pub use fetch::{FetchError, Fetcher, Registries};
pub use lock::{LayerSum, Lock, Part};
pub use manifest::{AgentManifest, Libc};
pub use packages::{PackageDecl, Registry};
pub use runtime::Runtime;

use super::installed::InstalledAgent;
use super::program::{InstalledLayer, Program, Start};
use super::scaffold::Scaffold;
use crate::assets::Assets;
use crate::domain::{Problem, suggest};

/// Folder of the manifests, one folder for each agent.
const AGENTS: &str = "templates/agents";
/// Folder of the runtimes.
const RUNTIMES: &str = "templates/runtimes";
const MANIFEST: &str = "agent.toml";
const LOCK: &str = "lock.toml";

/// All agents that can be installed.
#[derive(Clone, Debug)]
pub struct Catalog {
    agents: BTreeMap<String, Entry>,
    /// Folder of locks of other versions than the manifests'.
    locks: PathBuf,
}

#[derive(Clone, Debug)]
struct Entry {
    manifest: AgentManifest,
    /// The lock beside the manifest.
    lock: Option<Lock>,
}

/// An agent on the command line: `NAME` or `NAME@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentName {
    pub name: String,
    pub version: Option<String>,
}

impl AgentName {
    /// The agent that was typed.
    pub fn of(typed: &str) -> Self {
        let (name, version) = match typed.split_once('@') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (typed, None),
        };
        Self { name: name.to_owned(), version }
    }
}

impl FromStr for AgentName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::of(text))
    }
}

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Malformed(Vec<Problem>),
    #[error("there is no agent `{name}`\nhint: {hint}")]
    Unknown { name: String, hint: String },
    #[error(
        "version {version} of the agent `{name}` has no lock on this host\nhint: `termsmith agent add \
         {name}@{version}` installs it"
    )]
    NotLocked { name: String, version: String },
    #[error("the lock `{file}` is malformed: {message}")]
    Lock { file: String, message: String },
    #[error("failed to {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Catalog {
    /// Reads all manifests. `data` is the user's folder for locks.
    pub fn load(assets: &Assets, data: &Path) -> Result<Self, CatalogError> {
        let mut problems = Vec::new();
        let mut runtimes = BTreeMap::new();
        for (path, bytes, _) in assets.files_under(RUNTIMES) {
            let file = assets.display_path(&format!("{RUNTIMES}/{path}"));
            let Some(name) = path.as_str().strip_suffix(".toml") else { continue };
            match Runtime::parse(&file, &String::from_utf8_lossy(bytes)) {
                Ok(runtime) => drop(runtimes.insert(name.to_owned(), runtime)),
                Err(found) => problems.extend(found),
            }
        }
        let mut folders: BTreeMap<String, BTreeMap<String, &str>> = BTreeMap::new();
        for (path, bytes, _) in assets.files_under(AGENTS) {
            if let (Some((folder, file)), Ok(text)) =
                (path.as_str().split_once('/'), std::str::from_utf8(bytes))
            {
                folders.entry(folder.to_owned()).or_default().insert(file.to_owned(), text);
            }
        }
        let mut agents = BTreeMap::new();
        for (name, files) in folders {
            let file = |name_of: &str| assets.display_path(&format!("{AGENTS}/{name}/{name_of}"));
            let Some(text) = files.get(MANIFEST) else { continue };
            match AgentManifest::parse(&name, &file(MANIFEST), text, &files, &runtimes) {
                Ok(manifest) => {
                    let lock = files.get(LOCK).map(|text| parse_lock(&file(LOCK), text)).transpose()?;
                    agents.insert(name, Entry { manifest, lock });
                }
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(CatalogError::Malformed(problems));
        }
        Ok(Self { agents, locks: data.join("locks") })
    }

    /// All manifests, by name.
    pub fn manifests(&self) -> impl Iterator<Item = &AgentManifest> {
        self.agents.values().map(|entry| &entry.manifest)
    }

    /// The manifest of an agent.
    pub fn manifest(&self, name: &str) -> Result<&AgentManifest, CatalogError> {
        Ok(&self.entry(name)?.manifest)
    }

    /// The lock of an agent's version, the manifest's own if `agent` names none. `None` if that
    /// version was never installed on this host, and its manifest has no lock.
    pub fn lock(&self, agent: &AgentName) -> Result<Option<Lock>, CatalogError> {
        let entry = self.entry(&agent.name)?;
        let version = agent.version.as_ref().unwrap_or(&entry.manifest.declared.version);
        if let Some(lock) = entry.lock.as_ref().filter(|lock| lock.version == *version) {
            return Ok(Some(lock.clone()));
        }
        let path = self.lock_path(&agent.name, version);
        match fs::read_to_string(&path) {
            Ok(text) => parse_lock(&path.display().to_string(), &text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(CatalogError::Io { action: "read the lock", path, source }),
        }
    }

    /// Keeps the lock of a version in the user's folder.
    pub fn keep_lock(&self, name: &str, lock: &Lock) -> Result<PathBuf, CatalogError> {
        let path = self.lock_path(name, &lock.version);
        write_lock(&path, lock)?;
        Ok(path)
    }

    /// The scaffold of an installed agent.
    pub fn scaffold(&self, agent: &AgentName) -> Result<Arc<dyn Scaffold>, CatalogError> {
        let entry = self.entry(&agent.name)?;
        let lock = self.lock(agent)?.ok_or_else(|| CatalogError::NotLocked {
            name: agent.name.clone(),
            version: agent.version.clone().unwrap_or_else(|| entry.manifest.declared.version.clone()),
        })?;
        Ok(Arc::new(InstalledAgent::new(entry.manifest.program(&lock))))
    }

    fn entry(&self, name: &str) -> Result<&Entry, CatalogError> {
        self.agents.get(name).ok_or_else(|| CatalogError::Unknown {
            name: name.to_owned(),
            hint: suggest(name, self.agents.keys().map(String::as_str)),
        })
    }

    fn lock_path(&self, name: &str, version: &str) -> PathBuf {
        // A version is part of a path only here.
        let version = version.replace(['/', '.'], "_");
        self.locks.join(format!("{name}-{version}.toml"))
    }
}

impl AgentManifest {
    /// The program that the lock's version is.
    pub fn program(&self, lock: &Lock) -> Program {
        Program {
            name: self.name.clone(),
            start: Start::Manifest(self.invocation.clone()),
            installed: Some(InstalledLayer { version: lock.version.clone(), layer: lock.layer.id.clone() }),
            dialect: self.declared.dialect,
            threads: self.declared.threads.clone(),
            few_shot: self.declared.few_shot,
        }
    }
}

/// Writes a lock, with its folder.
pub fn write_lock(path: &Path, lock: &Lock) -> Result<(), CatalogError> {
    let failed = |source| CatalogError::Io { action: "write the lock", path: path.to_owned(), source };
    let text = toml::to_string(lock).map_err(|error| failed(std::io::Error::other(error)))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

fn parse_lock(file: &str, text: &str) -> Result<Lock, CatalogError> {
    let malformed =
        |error: toml::de::Error| CatalogError::Lock { file: file.to_owned(), message: error.to_string() };
    toml::from_str(text).map_err(malformed)
}

#[cfg(test)]
mod tests;
