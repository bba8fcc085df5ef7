//! A task, and the material that its author adds for screening.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Blueprint, CheckId, Clauses, ExpertScript, FileTree, Limits, Profile, TaskName, Variant};

/// The contents of a Harbor task directory: instruction, environment, solution, tests and metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: TaskName,
    pub title: String,
    pub blueprint: Blueprint,
    /// Name of the base image definition in `templates/bases/`.
    pub base: String,
    /// The `version` in the recipe's `recipe.toml`.
    pub recipe_version: u32,
    /// A unique text. Its occurrence in a corpus shows that the task leaked.
    pub canary: String,
    /// The text that a solver reads, without the canary line.
    pub instruction: String,
    /// `Dockerfile` and its build context.
    pub environment: FileTree,
    /// `solve.sh` and the files that it uses.
    pub solution: FileTree,
    /// `test.sh`, `test_outputs.py` and the files that they use.
    pub tests: FileTree,
    /// Every check that a verdict must report, in the order of the test file.
    pub checks: Vec<CheckId>,
    /// Weights of checks in step scores. The default is 1.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub weights: BTreeMap<CheckId, f64>,
    pub limits: Limits,
    pub profile: Profile,
    pub submission: SubmissionSpec,
}

/// Which part of a solver's container is judged, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmissionSpec {
    /// Absolute paths of folders that are copied to the verifier. The first is the work directory.
    pub roots: Vec<String>,
    /// Whether the tests run programs that the solver left. A second container is started for them.
    pub programs: bool,
    /// Shell command that starts services in that container before the tests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bring_up: Option<String>,
    /// Why other harnesses cannot run the tests in a container of their own: the checks look at
    /// something that a copy loses, e.g. owners of files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shared_because: Option<String>,
}

impl SubmissionSpec {
    /// Why other harnesses must run the tests in the solver's container. `None` if a container with
    /// copies of the roots is enough.
    pub fn needs_shared(&self) -> Option<&str> {
        let services = self.bring_up.is_some().then_some("its services are started by termsmith");
        self.shared_because.as_deref().or(services)
    }

    /// The folder in which solvers start, e.g. `/app`.
    pub fn workdir(&self) -> &str {
        self.roots.first().map_or("/app", String::as_str)
    }
}

/// An author's result: the task, and the material with which screening tests it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    pub task: Task,
    /// An independent solution in another language or style: `solve.sh` and the files that it uses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub second: Option<FileTree>,
    pub wrong: Vec<WrongSolution>,
    /// The demands of the instruction, and solutions that violate them.
    #[serde(skip_serializing_if = "Clauses::is_empty", default)]
    pub clauses: Clauses,
    /// Other legal forms of the correct state. The tests must accept them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub variants: Vec<Variant>,
    /// Names of variants that the instruction forbids, and the words that forbid them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub variants_excluded: BTreeMap<String, String>,
    pub expert: ExpertScript,
}

/// A plausible solution that misses one requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongSolution {
    pub name: String,
    /// The requirement that it misses.
    pub why: String,
    /// `solve.sh` and the files that it uses.
    pub files: FileTree,
}
