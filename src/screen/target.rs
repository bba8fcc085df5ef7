//! The target of a screening: a task, the attacks on it, and the screening's extent.

use std::time::Duration;

use serde::Serialize;

use super::meter::Meter;
use crate::lint::Finding;
use crate::lint::attack::Alone;
use crate::model::{Clauses, FileTree, Judging, Rigor, RowKind, TaskDigest, Variant, WrongSolution};
use crate::verify::{
    Act, Condition, RowName, Target, TrialError, TrialLog, TrialRecord, TrialRunner, TrialStep,
};

/// One task, with material from its author and from the templates.
#[derive(Debug)]
pub(super) struct ScreeningTarget<'a> {
    pub task: &'a dyn Target,
    /// Harbor's digest of the directory.
    pub digest: TaskDigest,
    pub second: Option<&'a FileTree>,
    pub wrong: &'a [WrongSolution],
    pub clauses: &'a Clauses,
    /// Other forms of a correct state. The checks must accept them.
    pub variants: Vec<Variant>,
    pub attacks: &'a [Exploit],
    pub watches: &'a [Watch],
    /// Static findings. Attack patterns are among them.
    pub findings: &'a [Finding],
    pub meter: Meter,
    pub instruction: &'a str,
}

impl ScreeningTarget<'_> {
    /// Runs a row's trial in fresh containers, or reads its record.
    pub(super) async fn trial(
        &self,
        runner: &TrialRunner<'_>,
        (kind, name): (RowKind, &str),
        act: Act<'_>,
        condition: Condition<'_>,
        repeat: u32,
    ) -> Result<(TrialRecord, TrialLog), TrialError> {
        let row = RowName { task: self.task.name(), kind, name };
        let runner = TrialRunner { watcher: runner.watcher.of(row), ..*runner };
        // The future of a trial is large, and many wait at once. So it is boxed.
        let ended = Box::pin(runner.trial(self.task, act, condition, repeat)).await?;
        self.meter.add(kind, &ended.1);
        Ok(ended)
    }

    /// Why a condition does not apply to this task. `None` if it applies.
    pub(super) fn inapplicable(&self, condition: Condition<'_>) -> Option<&'static str> {
        match condition {
            // An ordinary trial in the clean room is offline already.
            Condition::Offline if self.task.judging() == Judging::CleanRoom => {
                Some("every trial of this task is offline")
            }
            Condition::Rebuilt if self.task.named_image().is_some() => {
                Some("the task names a finished image")
            }
            Condition::Ordinary
            | Condition::Shuffled
            | Condition::Offline
            | Condition::HalfCpu
            | Condition::Clock
            | Condition::Rebuilt
            | Condition::FirstFailure { .. } => None,
        }
    }

    /// Tells the watcher how many trials will come.
    pub(super) fn expect(&self, runner: &TrialRunner<'_>, more: usize) {
        let row = RowName { task: self.task.name(), kind: RowKind::Build, name: "" };
        let trials = self.meter.cost().total().trials as usize + more;
        runner.watcher.of(row).tell(TrialStep::Expected { trials });
    }
}

/// An attack that is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exploit {
    /// Row of the attack table, e.g. `D-02`.
    pub id: String,
    /// A unique name that begins with the id.
    pub name: String,
    pub script: String,
    /// When the attack needs a trial of its own.
    pub alone: Alone,
    /// What the attack plants, and where.
    pub plants: String,
    /// The property of the clean room that stops the attack.
    pub stopped_by: String,
}

/// An attack without a trial. Its patterns are searched for instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Watch {
    /// The name of the lint rule that finds it in a task's files, if there is one.
    pub name: String,
    pub place: WatchPlace,
}

/// The place where an attack's patterns are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WatchPlace {
    /// The files of a task, which may invite the attack.
    Task,
    /// The commands of a solver.
    Trajectory,
}

/// The extent of a screening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub rigor: Rigor,
    /// Ordinary repetitions of the reference's trial.
    pub references: u32,
    /// Maximum number of cut references.
    pub cuts: usize,
    pub ablations: usize,
    /// Maximum number of violations of clauses.
    pub violations: usize,
    /// Number of mutants that should count for the kill rate.
    pub mutants: usize,
    /// No more mutants start after this time. `None`: all of them run, so that a task has the same
    /// rows on every machine.
    pub budget: Option<Duration>,
    pub ends: Ends,
}

/// When a screening ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// After all rows. A certificate has all of them.
    Complete,
    /// After the first group of rows that rejects the task. An author mends it, and then all rows
    /// are made again.
    Rejected,
}

impl Extent {
    /// The extent of a level. The two lower levels only have trials that are likely to find
    /// something.
    pub fn of(rigor: Rigor) -> Self {
        match rigor {
            Rigor::Quick => Self {
                rigor,
                references: 2,
                cuts: 4,
                ablations: 0,
                violations: 0,
                mutants: 0,
                budget: None,
                ends: Ends::Complete,
            },
            Rigor::Standard => Self {
                rigor,
                references: 2,
                cuts: 2,
                ablations: 1,
                violations: 6,
                mutants: 12,
                budget: None,
                ends: Ends::Complete,
            },
            Rigor::Full => Self {
                rigor,
                references: 3,
                cuts: 4,
                ablations: 12,
                violations: usize::MAX,
                mutants: 40,
                budget: None,
                ends: Ends::Complete,
            },
        }
    }
}

/// Which rows are made.
#[derive(Clone, Debug, Default)]
pub enum Only {
    #[default]
    All,
    /// Only these kinds or single rows, besides build, untouched and the first reference.
    Rows(Vec<(RowKind, Option<String>)>),
}

impl Only {
    /// Whether any rows of this kind are requested.
    pub(super) fn wants(&self, kind: RowKind) -> bool {
        match self {
            Self::All => true,
            Self::Rows(rows) => rows.iter().any(|(have, _)| *have == kind),
        }
    }

    /// Whether this row is requested.
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
