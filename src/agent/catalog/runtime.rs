//! `templates/runtimes/NAME.toml`: what agents run on where the task's image has it not, e.g.
//! Python.

use serde::{Deserialize, Serialize};

use super::packages::{PackageDecl, Registry};
use crate::domain::{Problem, Source, at};

/// An interpreter with its libraries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// One line.
    pub title: String,
    pub license: String,
    /// The words that start it, e.g. the loader, its options, and the interpreter.
    pub command: Vec<String>,
    pub packages: Vec<PackageDecl>,
    #[serde(default)]
    pub python: Option<RuntimePython>,
}

/// What a runtime with Python needs for packages of PyPI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimePython {
    /// Folder of the layer for packages.
    pub site: String,
    /// Folders of the layer with other modules that are compiled, e.g. the standard library.
    pub compiled: Vec<String>,
    /// A wheel of pip: path below the host of files, and SHA-256. It resolves requirements, and is
    /// no part of a layer.
    pub pip: PipWheel,
}

/// A wheel of pip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipWheel {
    pub version: String,
    pub path: String,
    pub hash: String,
}

impl Runtime {
    /// Parses the runtime `file`.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let source = Source::parse(file, text).map_err(|problem| vec![problem])?;
        let runtime: Self = source.read().map_err(|problem| vec![problem])?;
        let mut problems = Vec::new();
        for (number, package) in runtime.packages.iter().enumerate() {
            if let Err(message) = package.check() {
                problems.push(source.problem(at!["packages", number], message));
            } else if package.registry != Registry::Debian {
                // Only these have their hashes in the manifest itself.
                let message = format!("`{}`: a runtime consists of Debian's packages", package.name);
                problems.push(source.problem(at!["packages", number, "registry"], message));
            }
        }
        if problems.is_empty() { Ok(runtime) } else { Err(problems) }
    }
}
