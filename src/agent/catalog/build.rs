//! Builds the layer of an agent on this host.

use std::path::{Path, PathBuf};

use super::fetch::{FetchError, Fetcher};
use super::lock::{LayerSum, Lock, Part};
use super::manifest::AgentManifest;
use super::packages::{Choice, PackageDecl, Registry};
use super::python::{LayerPython, PythonError, compile, resolve};
use super::runtime::RuntimePython;
use super::tree::pack;
use super::unpack::{Form, UnpackError, unpack};
use crate::sandbox::{Layer, Spooled};

/// Why a layer cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the agent `{agent}` cannot be installed: {reason}")]
    Unavailable { agent: String, reason: String },
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error(transparent)]
    Python(#[from] PythonError),
    #[error(
        "the lock of `{agent}` does not name the package `{package}`, which its manifest has\nhint: \
         `termsmith agent add {agent} --relock FILE` makes another lock"
    )]
    NotLocked { agent: String, package: String },
    #[error(
        "the layer of `{agent}` is {found}, and its lock names {wanted}: it was built from other files \
         or by other rules\nhint: `termsmith agent add {agent} --relock FILE` makes another lock"
    )]
    OtherLayer { agent: String, wanted: String, found: String },
    #[error("failed to {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// A built layer, and the lock that leads to it.
#[derive(Debug)]
pub struct Built {
    pub layer: Layer,
    pub lock: Lock,
}

/// The archives that a layer is built from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    Locked(&'a Lock),
    /// The registries say which archives this version has.
    Resolved {
        version: &'a str,
    },
}

/// Builds the layer of an agent. What it becomes depends only on the archives and the manifest.
pub async fn build(
    manifest: &AgentManifest,
    source: Source<'_>,
    fetcher: &Fetcher,
) -> Result<Built, BuildError> {
    if let Some(reason) = &manifest.declared.unavailable {
        return Err(BuildError::Unavailable { agent: manifest.name.clone(), reason: reason.clone() });
    }
    let version = match source {
        Source::Locked(lock) => &lock.version,
        Source::Resolved { version } => version,
    };
    let temporary = std::env::temp_dir();
    let root = tempfile::tempdir().map_err(io("make a folder in", &temporary))?;
    let build = Build { manifest, version, fetcher, root: root.path() };
    let parts = build.fill(source).await?;
    let (sum, tar) = packed(root.path().to_owned()).await?;
    if let Source::Locked(lock) = source
        && lock.layer.id != sum.id
    {
        let (wanted, found) = (lock.layer.id.to_string(), sum.id.to_string());
        return Err(BuildError::OtherLayer { agent: manifest.name.clone(), wanted, found });
    }
    let title = format!("{} {version}", manifest.name);
    let layer = Layer { id: sum.id.clone(), title, tar };
    Ok(Built { layer, lock: Lock { version: version.to_owned(), layer: sum, parts } })
}

struct Build<'a> {
    manifest: &'a AgentManifest,
    version: &'a str,
    fetcher: &'a Fetcher,
    root: &'a Path,
}

impl Build<'_> {
    /// Unpacks everything into the layer's folder. Returns the agent's own archives.
    async fn fill(&self, source: Source<'_>) -> Result<Vec<Part>, BuildError> {
        let runtime = self.manifest.runtime.as_ref();
        for package in runtime.iter().flat_map(|runtime| &runtime.packages) {
            self.package(package, &debian_part(package)).await?;
        }
        let mut parts = Vec::new();
        for package in &self.manifest.declared.packages {
            let part = match (package.registry, source) {
                (Registry::Debian, _) => debian_part(package),
                (Registry::Npm | Registry::Pypi, Source::Locked(lock)) => {
                    let version = package.version(self.version);
                    let found = lock.parts.iter().find(|part| {
                        part.registry == package.registry
                            && part.name == package.name
                            && part.version == version
                    });
                    found.cloned().ok_or_else(|| BuildError::NotLocked {
                        agent: self.manifest.name.clone(),
                        package: format!("{} {version}", package.name),
                    })?
                }
                (Registry::Npm | Registry::Pypi, Source::Resolved { .. }) => {
                    self.fetcher.npm_release(&package.name, &package.version(self.version)).await?
                }
            };
            self.package(package, &part).await?;
            parts.push(part);
        }
        if let (Some(declared), Some(runtime)) = (&self.manifest.declared.python, runtime)
            && let Some(with) = &runtime.python
        {
            let python = LayerPython { root: self.root, command: &runtime.command };
            let of_python = match source {
                Source::Locked(lock) => {
                    lock.parts.iter().filter(|part| part.registry == Registry::Pypi).cloned().collect()
                }
                Source::Resolved { .. } => {
                    let pip = self.fetcher.archive(&pip_part(with)).await?;
                    resolve(python, &pip, declared, self.version, self.fetcher.registries()).await?
                }
            };
            let choice = Choice::new(&[], &declared.drop);
            for part in &of_python {
                let sdist = declared.sdists.iter().find(|sdist| sdist.path == part.path);
                let form = match sdist {
                    Some(sdist) => Form::Sdist { package: sdist.package.clone() },
                    None => Form::Wheel,
                };
                self.unpack(part, form, choice.clone(), &with.site).await?;
            }
            parts.extend(of_python);
            // The standard library too, which Debian compiles when it is installed.
            for folder in with.compiled.iter().chain([&with.site]) {
                compile(python, folder).await?;
            }
        }
        Ok(parts)
    }

    async fn package(&self, package: &PackageDecl, part: &Part) -> Result<(), BuildError> {
        let form = match package.registry {
            Registry::Debian => Form::Deb,
            Registry::Npm | Registry::Pypi => Form::Npm,
        };
        self.unpack(part, form, package.choice(), &package.into).await
    }

    async fn unpack(&self, part: &Part, form: Form, choice: Choice, into: &str) -> Result<(), BuildError> {
        let archive = self.fetcher.archive(part).await?;
        let into = self.root.join(into);
        std::fs::create_dir_all(&into).map_err(io("make the folder", &into))?;
        blocking(move || unpack(&archive, &form, &choice, &into)).await?.map_err(BuildError::from)
    }
}

fn debian_part(package: &PackageDecl) -> Part {
    Part {
        registry: Registry::Debian,
        name: package.name.clone(),
        version: package.version.clone(),
        path: package.path.clone().unwrap_or_default(),
        hash: package.hash.clone().unwrap_or_default(),
    }
}

fn pip_part(python: &RuntimePython) -> Part {
    let pip = &python.pip;
    Part {
        registry: Registry::Pypi,
        name: "pip".to_owned(),
        version: pip.version.clone(),
        path: pip.path.clone(),
        hash: pip.hash.clone(),
    }
}

async fn packed(root: PathBuf) -> Result<(LayerSum, Spooled), BuildError> {
    let path = root.clone();
    blocking(move || pack(&path)).await?.map_err(io("pack", &root))
}

/// Unpacking and packing take seconds of processor time.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, BuildError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| BuildError::Io {
        action: "finish the work in",
        path: std::env::temp_dir(),
        source: std::io::Error::other(error),
    })
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> BuildError + 'a {
    move |source| BuildError::Io { action, path: path.to_owned(), source }
}
