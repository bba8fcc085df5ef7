//! What is screened, with what, and how far.

use std::time::Duration;

use crate::lint::Finding;
use crate::model::{EnvironmentDigest, FileTree, Rigor, RowKind, TaskDigest, Variant, WrongSolution};
use crate::mutate::Mutant;

use super::evaluation::Evaluation;

/// One task, with all that its author and the templates bring against it.
#[derive(Debug)]
pub(super) struct ScreeningTarget<'a> {
    pub name: String,
    /// Harbor's digest of the directory.
    pub digest: TaskDigest,
    pub environment_digest: EnvironmentDigest,
    pub evaluation: Evaluation<'a>,
    /// The reference; `None` if the task brings none, and then there is little to say about it.
    pub solution: Option<&'a FileTree>,
    pub second: Option<&'a FileTree>,
    pub wrong: &'a [WrongSolution],
    /// Other forms of a right state that must be accepted.
    pub variants: Vec<Variant>,
    pub attacks: &'a [Exploit],
    pub watches: &'a [Watch],
    /// What static rules found, the patterns of attacks among it.
    pub findings: &'a [Finding],
    pub instruction: &'a str,
    pub tests: &'a FileTree,
}

/// An attack that is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploit {
    /// Row of the attack table (`D-02`).
    pub id: String,
    /// Unique; begins with the id.
    pub name: String,
    pub script: String,
    /// It would disturb others in its trial.
    pub alone: bool,
    /// What it puts where.
    pub plants: String,
    /// Which property of the clean room stops it.
    pub stopped_by: String,
}

/// An attack that is no trial: patterns are looked for instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The rule that finds it, if it shows in a task's files.
    pub name: String,
    pub place: WatchPlace,
}

/// Where an attack's patterns show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchPlace {
    /// In the files of a task that invites it.
    Task,
    /// In the commands of who tries it.
    Trajectory,
}

/// How far a screening goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub rigor: Rigor,
    /// Ordinary repetitions of the reference.
    pub references: u32,
    /// Prefixes of the reference, at most.
    pub cuts: usize,
    pub ablations: usize,
    pub mutants: usize,
    /// No mutant is begun once a task has taken this long. `None`: all are made, so that the same task gets the same rows everywhere.
    pub budget: Option<Duration>,
}

impl Extent {
    /// What a level means. At the two lower ones, each trial is one that is likely to tell something new.
    pub fn of(rigor: Rigor) -> Self {
        match rigor {
            Rigor::Quick => Self { rigor, references: 2, cuts: 4, ablations: 0, mutants: 0, budget: None },
            Rigor::Standard => Self { rigor, references: 2, cuts: 2, ablations: 1, mutants: 3, budget: None },
            // 20 well-formed mutants are wanted, and about every second one leaves no answer or the right one.
            Rigor::Full => Self { rigor, references: 3, cuts: 4, ablations: 12, mutants: 48, budget: None },
        }
    }
}

/// Which rows are made.
#[derive(Clone, Debug, Default)]
pub enum Only {
    #[default]
    All,
    /// These kinds or single rows, beside build, untouched and the first reference.
    Rows(Vec<(RowKind, Option<String>)>),
}

impl Only {
    /// Whether rows of this kind are wanted at all.
    pub(super) fn wants(&self, kind: RowKind) -> bool {
        match self {
            Self::All => true,
            Self::Rows(rows) => rows.iter().any(|(have, _)| *have == kind),
        }
    }

    /// Whether this row is wanted.
    pub(super) fn wants_row(&self, kind: RowKind, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Rows(rows) => rows.iter().any(|(have, only)| {
                *have == kind
                    && only
                        .as_deref()
                        .is_none_or(|only| name == only || name.starts_with(&format!("{only}-")))
            }),
        }
    }
}

/// A mutant's name in the table.
pub(super) fn mutant_name(mutant: &Mutant) -> String {
    format!("{} {}: {}", mutant.operator.as_str(), mutant.place, mutant.what)
}
