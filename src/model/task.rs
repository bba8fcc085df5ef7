//! A task, and its author's additional material.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Blueprint, CheckId, Clauses, ExpertScript, FileTree, Limits, Profile, TaskName, Variant};

/// Instruction, environment, solution, tests and metadata: what a Harbor task directory holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: TaskName,
    pub title: String,
    pub blueprint: Blueprint,
    /// Base image definition in `templates/bases/`.
    pub base: String,
    /// Version that the recipe's author gave it.
    pub recipe_version: u32,
    /// Unique text by which a leak of this task into a corpus can be found.
    pub canary: String,
    /// The text a solver reads, without the canary line.
    pub instruction: String,
    /// `Dockerfile` and its build context.
    pub environment: FileTree,
    /// `solve.sh` and the files that it uses.
    pub solution: FileTree,
    /// `test.sh`, `test_outputs.py` and the files that they use.
    pub tests: FileTree,
    /// Every check that a verdict must report, in file order.
    pub checks: Vec<CheckId>,
    /// Weights of checks in step scores; 1 by default.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub weights: BTreeMap<CheckId, f64>,
    pub limits: Limits,
    pub profile: Profile,
    pub subject: SubjectSpec,
}

/// Which part of a solver's container is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectSpec {
    /// Absolute folders that are copied to the verifier. The first one is the work directory.
    pub roots: Vec<String>,
    /// Whether the tests run programs that the solver left; then a subject container is started.
    pub programs: bool,
    /// Shell command that brings services up in the subject container before the tests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bring_up: Option<String>,
    /// Why other harnesses cannot judge it in a container of the tests' own: what its checks look
    /// at is lost between containers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shared_because: Option<String>,
}

impl SubjectSpec {
    /// Why its tests cannot run in a container of their own with the roots alone, in other
    /// harnesses.
    pub fn needs_shared(&self) -> Option<&str> {
        let services = self.bring_up.is_some().then_some("its services are started by termsmith");
        self.shared_because.as_deref().or(services)
    }

    /// The folder in which solvers start.
    pub fn workdir(&self) -> &str {
        self.roots.first().map_or("/app", String::as_str)
    }
}

/// An author's result, which screening tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    pub task: Task,
    /// An independent solution in another language or style (`solve.sh` and the files that it
    /// uses).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub second: Option<FileTree>,
    pub wrong: Vec<WrongSolution>,
    /// What the instruction demands, and solutions that violate it.
    #[serde(skip_serializing_if = "Clauses::is_empty", default)]
    pub clauses: Clauses,
    /// Legal variants of the correct state, which the tests must accept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub variants: Vec<Variant>,
    /// Variants that this task's instruction forbids, and the words that forbid them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub variants_excluded: BTreeMap<String, String>,
    pub expert: ExpertScript,
}

/// A plausible solution that misses one requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongSolution {
    pub name: String,
    /// The requirement it misses.
    pub why: String,
    /// `solve.sh` and the files that it uses.
    pub files: FileTree,
}
