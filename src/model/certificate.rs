//! Certificates: the results of screening.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, CheckId, EnvironmentDigest, Outcome, TaskDigest};

/// One row of the screening table: a trial or a static rule, and whether it ended as it must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub kind: RowKind,
    /// Name of the row within its kind, e.g. `1`, `cut 3 of 7`, or the wrong solution's name.
    pub name: String,
    /// Outcome of the trial. `None` for rows without a trial, e.g. lint.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Outcome>,
    /// Numbers of passed and of reported checks, for rows with a trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passed_of: Option<(u32, u32)>,
    pub ok: bool,
    /// Whether the row enters the rates. E.g. false for a condition that this host cannot make, a
    /// variant that finds no file to change, or a mutant that leaves the reference's final state.
    #[serde(skip_serializing_if = "is_true", default = "yes")]
    pub counts: bool,
    /// A surviving mutant that `clauses.toml` lists as equivalent. It does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub equivalent: bool,
    /// The problem, or why the row does not count. Empty if neither applies.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
}

/// Kinds of rows, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    Lint,
    Build,
    Untouched,
    Reference,
    SecondSolution,
    WrongSolution,
    TruncatedSolution,
    /// The reference without one of its state-changing statements.
    AblatedSolution,
    /// The reference with an edit that violates one sentence of the instruction. The row is named
    /// `clause/violation`.
    Clause,
    /// The reference with one small error.
    Mutant,
    /// The reference's final state in another form that is right too, e.g. JSON with other blanks.
    Variant,
    /// A script that does no work and tries to pass.
    Attack,
    /// Whether the reference leaves the given input files unchanged.
    Inputs,
    /// Whether the image or one of its layers contains the answer.
    Leak,
    /// A solver that sees only the instruction and the machine.
    Blind,
}

impl RowKind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Lint,
        Self::Build,
        Self::Untouched,
        Self::Reference,
        Self::SecondSolution,
        Self::WrongSolution,
        Self::TruncatedSolution,
        Self::AblatedSolution,
        Self::Clause,
        Self::Mutant,
        Self::Variant,
        Self::Attack,
        Self::Inputs,
        Self::Leak,
        Self::Blind,
    ];

    /// The id used in certificates and in `expect.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lint => "lint",
            Self::Build => "build",
            Self::Untouched => "untouched",
            Self::Reference => "reference",
            Self::SecondSolution => "second_solution",
            Self::WrongSolution => "wrong_solution",
            Self::TruncatedSolution => "truncated_solution",
            Self::AblatedSolution => "ablated_solution",
            Self::Clause => "clause",
            Self::Mutant => "mutant",
            Self::Variant => "variant",
            Self::Attack => "attack",
            Self::Inputs => "inputs",
            Self::Leak => "leak",
            Self::Blind => "blind",
        }
    }
}

/// How thoroughly a verifier is tested.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Rigor {
    /// Lint, build, the correct solutions, and known wrong solutions.
    Quick,
    /// In addition to `Quick`: variants, a sample of mutants, and the attacks that can share a
    /// trial.
    #[default]
    Standard,
    /// All variants, mutants and attacks.
    Full,
}

/// Where the tests of the trials ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judging {
    /// In a pristine container that a solver cannot reach.
    #[default]
    CleanRoom,
    /// In the solver's own container, as the task declares.
    Shared,
    /// In a container of their own that gets the declared artifacts.
    Separate,
}

/// Trials, and how many of them ended as they should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    pub good: u32,
    pub counted: u32,
}

impl Tally {
    /// `good / counted`, or `None` if nothing was counted.
    pub fn rate(self) -> Option<f64> {
        (self.counted > 0).then(|| f64::from(self.good) / f64::from(self.counted))
    }
}

/// Rates over the rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Mutants that failed, of those that count.
    pub killed: Tally,
    /// Violations of clauses, and known wrong solutions that violate a clause, that failed.
    #[serde(default)]
    pub clauses: Tally,
    /// `killed`, by mutation operator.
    pub killed_by_operator: BTreeMap<String, Tally>,
    /// Legal variants of the correct state that passed.
    pub accepted: Tally,
    /// Attacks that did not pass.
    pub repelled: Tally,
    /// Plain repetitions of the reference that passed.
    pub steady: Tally,
    /// Upper end of the 95 % interval (Clopper-Pearson) of the probability that a trial of the
    /// reference fails.
    pub flake_upper: f64,
}

/// Results of the violations of one clause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClauseRecord {
    pub id: String,
    /// The words of the instruction that state the clause.
    pub says: Vec<String>,
    /// Violations that were executed, and how many of them failed.
    pub violations: Tally,
    /// The checks that failed for one of them. A trial ends at its first failed check. The checks
    /// that quote the clause run first.
    pub noticed_by: Vec<CheckId>,
    /// The part of the clause that no executed violation tests, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// `certificate.json`: the record of a draft's screening. It is stored in the task directory, and
/// is not part of `task_digest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Version of this format.
    pub version: u32,
    pub task: String,
    /// SHA-256 over the task's files as Harbor computes it, without this file.
    pub task_digest: TaskDigest,
    /// BLAKE3 over Dockerfile, build context and base definition.
    pub environment_digest: EnvironmentDigest,
    /// The version of termsmith.
    pub tool: String,
    pub certified: bool,
    /// How thoroughly the verifier was tested.
    #[serde(default = "before_rigor")]
    pub rigor: Rigor,
    #[serde(default)]
    pub judging: Judging,
    /// Trials that were skipped because a time budget ran out. 0 if everything that the rigor asks
    /// for ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    pub rows: Vec<Row>,
    #[serde(default)]
    pub rates: Rates,
    /// The clauses of the instruction, if its author declared any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<ClauseRecord>,
    /// Sentences of the instruction that neither a clause nor the background quotes. Empty if no
    /// clauses were declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// Checks with their classes from the untouched trial. Empty if screening ended before it.
    pub checks: Vec<Check>,
    /// Reasons for the rejection. Empty for a certified task.
    pub reasons: Vec<RejectReason>,
}

/// A reason for a rejection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectReason {
    pub kind: RowKind,
    pub name: String,
    /// One sentence, with the shortest evidence.
    pub message: String,
    /// The part of the task that its author should look at first.
    #[serde(default)]
    pub part: Part,
    /// The requested change, e.g. as feedback to an author that is a model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ask: String,
}

/// A part of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Environment,
    Solution,
    #[default]
    Tests,
    /// The instruction and the tests contradict each other.
    Instruction,
}

impl Part {
    /// Its folder or file in the task directory.
    pub fn path(self) -> &'static str {
        match self {
            Self::Environment => "environment/",
            Self::Solution => "solution/",
            Self::Tests => "tests/",
            Self::Instruction => "instruction.md",
        }
    }

    /// The part that contains `file`, a path below the task directory. Files outside of all parts,
    /// e.g. `task.toml`, count as tests: the tests' author also writes the metadata.
    pub fn of_file(file: &str) -> Self {
        let parts = [Self::Environment, Self::Solution, Self::Instruction];
        parts.into_iter().find(|part| file.starts_with(part.path())).unwrap_or(Self::Tests)
    }
}

/// The result of a screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screened {
    Certified,
    Rejected,
}

impl Certificate {
    /// Number of surviving mutants that do not count, because they are listed as equivalent.
    pub fn set_aside(&self) -> usize {
        self.rows.iter().filter(|row| row.equivalent).count()
    }

    /// The version that this build writes.
    pub const VERSION: u32 = 4;

    /// The verdict.
    pub fn screened(&self) -> Screened {
        if self.certified { Screened::Certified } else { Screened::Rejected }
    }

    /// A certificate that certifies, for tests that need no trial.
    #[cfg(test)]
    pub(crate) fn without_rows(
        task: &str,
        task_digest: TaskDigest,
        environment_digest: EnvironmentDigest,
    ) -> Self {
        Self {
            version: Self::VERSION,
            task: task.to_owned(),
            task_digest,
            environment_digest,
            tool: String::new(),
            certified: true,
            rigor: Rigor::Quick,
            judging: Judging::default(),
            left_out: 0,
            clauses: Vec::new(),
            uncovered: Vec::new(),
            rates: Rates::default(),
            rows: Vec::new(),
            checks: Vec::new(),
            reasons: Vec::new(),
        }
    }
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_true(value: &bool) -> bool {
    *value
}

fn yes() -> bool {
    true
}

fn before_rigor() -> Rigor {
    Rigor::Quick
}
