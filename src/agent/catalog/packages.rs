//! Packages of registries: where they are, and which of their files become part of a layer.

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::model::{Stars, glob};

/// Where a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    Npm,
    Pypi,
    Debian,
}

impl Registry {
    /// The id in manifests and lock files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Debian => "debian",
        }
    }
}

/// A package of npm or Debian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageDecl {
    pub registry: Registry,
    pub name: String,
    /// `{version}` stands for the agent's version.
    pub version: String,
    /// Folder of the layer.
    pub into: String,
    /// Patterns of its files. Empty: all.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Patterns of files that are left out.
    #[serde(default)]
    pub drop: Vec<String>,
    /// Patterns of files that become executable, e.g. because the archive has them without the bit.
    #[serde(default)]
    pub executable: Vec<String>,
    /// Of Debian: the path below the mirror.
    #[serde(default)]
    pub path: Option<String>,
    /// Of Debian: its SHA-256.
    #[serde(default)]
    pub hash: Option<String>,
}

/// Packages of PyPI with everything that they need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonDecl {
    /// As for pip, e.g. `mini-swe-agent=={version}`.
    pub requirements: Vec<String>,
    /// Packages without a wheel.
    #[serde(default)]
    pub sdists: Vec<SdistDecl>,
    /// Patterns of files that are left out, below the folder of all packages.
    #[serde(default)]
    pub drop: Vec<String>,
}

/// A package of PyPI without a wheel. Only its Python files are taken: nothing is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdistDecl {
    pub name: String,
    pub version: String,
    /// Its folder of Python files, e.g. `func_timeout`.
    pub package: String,
    /// Path below the host of files.
    pub path: String,
    pub hash: String,
}

impl PackageDecl {
    /// Why the declaration cannot be used.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut patterns = self.keep.iter().chain(&self.drop).chain(&self.executable);
        if let Some(wrong) = patterns.find(|pattern| compiled(pattern).is_none()) {
            return Err(format!("the pattern `{wrong}` of `{}` is malformed", self.name));
        }
        match (self.registry, &self.path, &self.hash) {
            (Registry::Npm, None, None) | (Registry::Debian, Some(_), Some(_)) => Ok(()),
            (Registry::Npm, ..) => Err(format!("`path` and `hash` of `{}` are for Debian", self.name)),
            (Registry::Debian, ..) => Err(format!("`{}` needs `path` and `hash`", self.name)),
            (Registry::Pypi, ..) => {
                Err(format!("`{}` belongs to `requirements` of the table `python`", self.name))
            }
        }
    }

    /// Which of its files are taken.
    pub(super) fn choice(&self) -> Choice {
        Choice { executable: all(&self.executable), ..Choice::new(&self.keep, &self.drop) }
    }

    /// Its version, in an agent of this version.
    pub(super) fn version(&self, agent: &str) -> String {
        self.version.replace("{version}", agent)
    }
}

/// Which files of a package are taken.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    keep: Vec<Regex>,
    drop: Vec<Regex>,
    executable: Vec<Regex>,
}

impl Choice {
    pub(super) fn new(keep: &[String], drop: &[String]) -> Self {
        Self { keep: all(keep), drop: all(drop), executable: Vec::new() }
    }

    /// Whether the file at `path` is taken.
    pub(super) fn takes(&self, path: &str) -> bool {
        (self.keep.is_empty() || any(&self.keep, path)) && !any(&self.drop, path)
    }

    /// Whether the file at `path` is a program, although its archive does not say so.
    pub(super) fn is_program(&self, path: &str) -> bool {
        any(&self.executable, path)
    }
}

fn all(patterns: &[String]) -> Vec<Regex> {
    patterns.iter().filter_map(|pattern| compiled(pattern)).collect()
}

fn any(patterns: &[Regex], path: &str) -> bool {
    patterns.iter().any(|pattern| pattern.is_match(path))
}

fn compiled(pattern: &str) -> Option<Regex> {
    glob(pattern, Stars::CrossFolders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_files() {
        let check = |keep: &[&str], drop: &[&str], path: &str, expect: bool| {
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            assert_eq!(
                Choice::new(&owned(keep), &owned(drop)).takes(path),
                expect,
                "{keep:?} {drop:?} {path}"
            );
        };
        check(&[], &[], "bin/x", true);
        check(&["bin/node"], &[], "bin/node", true);
        check(&["bin/node"], &[], "include/node", false);
        check(&[], &["pandas/**"], "pandas/core/x.py", false);
        check(&[], &["**/tests/**"], "a/tests/b.py", false);
        check(&["bin/**"], &["bin/*.exe"], "bin/rg.exe", false);
    }
}
