//! `templates/agents/NAME/agent.toml`: how an agent is installed and started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::packages::{PackageDecl, PythonDecl};
use super::runtime::Runtime;
use crate::agent::installed::FewShot;
use crate::agent::program::{AgentFile, Dialect, Invocation, PLACEHOLDERS, ThreadHeaders, placeholders};
use crate::domain::{Problem, Source, at, suggest};

/// The word of a command line that stands for the runtime's own words, e.g. those that start
/// Python.
const RUNTIME: &str = "{runtime}";

/// A declared agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentManifest {
    /// Name of its folder, e.g. `claude-code`.
    pub name: String,
    pub declared: Declared,
    pub invocation: Invocation,
    /// What it runs on, if its own packages do not suffice.
    pub runtime: Option<Runtime>,
}

/// The keys of `agent.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The version that is installed unless another one is named.
    pub version: String,
    /// One line, e.g. its maker.
    pub title: String,
    pub license: String,
    pub dialect: Dialect,
    /// The C library that the task's image must have.
    pub libc: Libc,
    /// A memory limit, in MiB, with which the agent was seen to work.
    pub memory_mb: u32,
    #[serde(default)]
    pub few_shot: FewShot,
    /// A file of `templates/runtimes/`, without `.toml`.
    #[serde(default)]
    pub runtime: Option<String>,
    pub argv: Vec<String>,
    /// Prints the version.
    pub check: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub folders: Vec<String>,
    #[serde(default)]
    pub files: Vec<DeclaredFile>,
    #[serde(default)]
    pub threads: Option<ThreadHeaders>,
    #[serde(default)]
    pub packages: Vec<PackageDecl>,
    #[serde(default)]
    pub python: Option<PythonDecl>,
    /// Why it cannot be installed.
    #[serde(default)]
    pub unavailable: Option<String>,
    /// What a user should know, e.g. which of its files are in the task's container.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A file that is written before the agent starts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredFile {
    pub path: String,
    /// A file beside `agent.toml`.
    pub template: String,
}

/// The C library of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Libc {
    Glibc,
    Musl,
    /// The agent brings its own, or is linked statically.
    Any,
}

impl Libc {
    /// The id in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
            Self::Any => "any",
        }
    }
}

/// The files beside a manifest, by name.
pub(super) type Beside<'a> = BTreeMap<String, &'a str>;

impl AgentManifest {
    /// Parses the manifest `file`. `beside` has the other files of its folder.
    pub(super) fn parse(
        name: &str,
        file: &str,
        text: &str,
        beside: &Beside<'_>,
        runtimes: &BTreeMap<String, Runtime>,
    ) -> Result<Self, Vec<Problem>> {
        let one = |problem: Problem| vec![problem];
        let source = Source::parse(file, text).map_err(one)?;
        let declared: Declared = source.read().map_err(one)?;
        let runtime = match &declared.runtime {
            None => None,
            Some(name) => {
                let unknown = || {
                    let known = runtimes.keys().map(String::as_str);
                    let problem = source.problem(at!["runtime"], format!("there is no runtime `{name}`"));
                    vec![problem.hint(suggest(name, known))]
                };
                Some(runtimes.get(name).cloned().ok_or_else(unknown)?)
            }
        };
        let mut problems = Vec::new();
        let mut files = Vec::new();
        for (number, DeclaredFile { path, template }) in declared.files.iter().enumerate() {
            match beside.get(template.as_str()) {
                Some(text) => files.push(AgentFile { path: path.clone(), template: (*text).to_owned() }),
                None => problems.push(
                    source
                        .problem(at!["files", number, "template"], format!("`{template}` is missing"))
                        .hint(suggest(template, beside.keys().map(String::as_str))),
                ),
            }
        }
        problems.extend(unknown_words(&source, &declared));
        if declared.argv.is_empty() || declared.check.is_empty() {
            problems.push(source.problem(at!["argv"], "`argv` and `check` need a word each"));
        }
        if let (Some(_), None) = (&declared.python, runtime.as_ref().and_then(|found| found.python.as_ref()))
        {
            let problem = source.problem(at!["python"], "packages of Python need a runtime with Python");
            problems.push(problem.hint("set `runtime`, e.g. to \"python3.13\""));
        }
        for (number, package) in declared.packages.iter().enumerate() {
            if let Err(message) = package.check() {
                problems.push(source.problem(at!["packages", number], message));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let expanded = |words: &[String]| -> Vec<String> {
            let own = runtime.as_ref().map_or(&[][..], |runtime| &runtime.command);
            words
                .iter()
                .flat_map(|word| if word == RUNTIME { own } else { std::slice::from_ref(word) })
                .cloned()
                .collect()
        };
        let invocation = Invocation {
            argv: expanded(&declared.argv),
            env: declared.env.clone(),
            folders: declared.folders.clone(),
            files,
            check: expanded(&declared.check),
        };
        Ok(Self { name: name.to_owned(), declared, invocation, runtime })
    }

    /// Hash of everything that says how the agent is installed and started.
    pub fn digest(&self) -> String {
        // Serialising these types cannot fail.
        let text = serde_json::to_vec(&(&self.declared, &self.invocation, &self.runtime)).unwrap_or_default();
        blake3::hash(&text).to_hex().to_string()
    }
}

/// Placeholders that do not exist, in every text that may have some.
fn unknown_words(source: &Source<'_>, declared: &Declared) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut check = |text: &str, path: &[crate::domain::Step<'_>]| {
        for name in placeholders(text) {
            let known = PLACEHOLDERS.iter().map(|(known, _)| *known);
            if text != RUNTIME && !known.clone().any(|known| known == name) {
                let problem = source.problem(path, format!("there is no placeholder `{{{name}}}`"));
                problems.push(problem.hint(suggest(name, known)));
            }
        }
    };
    for (key, words) in [("argv", &declared.argv), ("check", &declared.check), ("folders", &declared.folders)]
    {
        for (number, word) in words.iter().enumerate() {
            check(word, at![key, number]);
        }
    }
    for (name, text) in &declared.env {
        check(text, at!["env", name]);
    }
    for (number, file) in declared.files.iter().enumerate() {
        check(&file.path, at!["files", number, "path"]);
    }
    problems
}
