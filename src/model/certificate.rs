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
    /// Its name within its kind: `1`, the wrong solution's name, `cut 3 of 7`.
    pub name: String,
    /// Outcome of the trial; `None` for rows that run no trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Outcome>,
    /// Checks passed and reported, for rows that ran a trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passed_of: Option<(u32, u32)>,
    pub ok: bool,
    /// Whether it says anything: a condition that this host cannot make, a variant of files that
    /// there are none of, a mutant that leaves the reference's final state or no answer at all, do
    /// not.
    #[serde(skip_serializing_if = "is_true", default = "yes")]
    pub counts: bool,
    /// The problem, or why the row does not count.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
}

/// Beginning of the note of a surviving mutant that `clauses.toml` lists as equivalent; the reason
/// follows.
pub const SET_ASIDE: &str = "set aside as equivalent";

/// The rows, cheapest first.
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
    /// The reference with an edit that violates one sentence of the instruction; named
    /// `clause/violation`.
    Clause,
    /// The reference with one small error.
    Mutant,
    /// The reference's final state in another form that is as right.
    Variant,
    /// A no-work attack.
    Attack,
    /// Whether the reference leaves the given inputs as they were.
    Inputs,
    /// Whether the image or its layers hold the answer.
    Leak,
    /// A solver that saw only the instruction and the machine.
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
    /// Soundness and known wrong solutions only.
    Quick,
    /// These, and variants, a sample of mutants, and the attacks that can share a trial.
    #[default]
    Standard,
    /// All variants, mutants and attacks.
    Full,
}

/// How the trials were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judging {
    /// Tests in a pristine container that a solver cannot reach.
    #[default]
    CleanRoom,
    /// Tests in the solver's own container, as the task declares.
    Shared,
    /// Tests in a container of their own with the declared artifacts.
    Separate,
}

/// A share of trials that ended as they should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    pub good: u32,
    pub counted: u32,
}

impl Tally {
    /// The share, or `None` when nothing was counted.
    pub fn rate(self) -> Option<f64> {
        (self.counted > 0).then(|| f64::from(self.good) / f64::from(self.counted))
    }
}

/// Rates over the rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Well-formed wrong mutants that failed.
    pub killed: Tally,
    /// Violations of clauses, and known wrong solutions that violate one, that failed.
    #[serde(default)]
    pub clauses: Tally,
    /// Those of `killed` by operator.
    pub killed_by_operator: BTreeMap<String, Tally>,
    /// Legal variants of the right state that passed.
    pub accepted: Tally,
    /// Attacks that did not score.
    pub repelled: Tally,
    /// Ordinary repetitions of the reference that passed.
    pub steady: Tally,
    /// Upper end of the 95 % interval of the rate at which a verdict on the reference flips
    /// (Clopper-Pearson).
    pub flake_upper: f64,
}

/// What the violations of one clause of the instruction have shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClauseRecord {
    pub id: String,
    /// The words of the instruction.
    pub says: Vec<String>,
    /// Its violations that were executed, and those of them that failed.
    pub violations: Tally,
    /// The checks that failed for one of them. A trial ends at its first failed check, and begins
    /// with those that quote the clause.
    pub noticed_by: Vec<CheckId>,
    /// What of it no executed violation tests, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// `certificate.json`: the record of a draft's screening. It lies in the task directory and is left
/// out of `task_digest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Version of this format.
    pub version: u32,
    pub task: String,
    /// SHA-256 over the task's files, Harbor's way, without this file.
    pub task_digest: TaskDigest,
    /// BLAKE3 over Dockerfile, context and base definition.
    pub environment_digest: EnvironmentDigest,
    /// termsmith's version.
    pub tool: String,
    pub certified: bool,
    /// How thoroughly the verifier was tested.
    #[serde(default = "before_rigor")]
    pub rigor: Rigor,
    #[serde(default)]
    pub judging: Judging,
    /// Trials that a time budget left out; none in a certificate that ran everything that its rigor
    /// asks for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    pub rows: Vec<Row>,
    #[serde(default)]
    pub rates: Rates,
    /// The clauses of the instruction, where its author declared them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<ClauseRecord>,
    /// Sentences of the instruction that neither a clause nor the background quotes, if clauses
    /// were declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// Classes from the untouched trial; empty when it did not get that far.
    pub checks: Vec<Check>,
    /// Why it was rejected; empty for a certified task.
    pub reasons: Vec<RejectReason>,
}

/// A reason for a rejection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectReason {
    pub kind: RowKind,
    pub name: String,
    /// One sentence with the smallest evidence.
    pub message: String,
    /// The part of the task that its author should look at first.
    #[serde(default)]
    pub part: Part,
    /// The change to make, as a repair loop would request it from an author.
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

    /// The part that `file`, a path below the task directory, belongs to. Files that no part
    /// holds, e.g. `task.toml`, count as the tests', since their author also writes the metadata.
    pub fn of_file(file: &str) -> Self {
        let parts = [Self::Environment, Self::Solution, Self::Instruction];
        parts.into_iter().find(|part| file.starts_with(part.path())).unwrap_or(Self::Tests)
    }
}

/// Certified or rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screened {
    Certified,
    Rejected,
}

impl Certificate {
    /// The number of surviving mutants that are not counted because they are listed as equivalent.
    pub fn set_aside(&self) -> usize {
        let rows = self.rows.iter().filter(|row| row.kind == RowKind::Mutant && !row.counts);
        rows.filter(|row| row.note.starts_with(SET_ASIDE)).count()
    }

    /// The version that this build writes.
    pub const VERSION: u32 = 3;

    /// The verdict.
    pub fn screened(&self) -> Screened {
        if self.certified { Screened::Certified } else { Screened::Rejected }
    }

    /// One that certifies, for tests that need no trial.
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
