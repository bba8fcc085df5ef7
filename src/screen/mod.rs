//! Screening: the table of trials that a task must pass, cheapest rows first.
//!
//! Only trial records decide. A task is rejected at once if it does not build, passes without any
//! work, or fails its own reference. All other rows run even after a failure, so that a rejection
//! names every problem. The exception is an author who must mend the first problem ([`Ends`]).
//! Static findings explain failures. For a task of another maker, they reject only if they make a
//! trial impossible.

mod battery;
mod clauses;
mod damage;
mod forms;
mod gauntlet;
mod leak;
mod likely;
mod meter;
mod rates;
mod repair;
mod seen;
mod settle;
mod soundness;
mod table;
mod target;
mod unsteady;

use serde::Serialize;

use crate::lint::{Finding, Severity};
use crate::model::{Clauses, Draft, FileTree, Part, RowKind, TaskDigest, Variant, WrongSolution};
use crate::verify::{HashedTask, Target, TrialError, TrialRunner};

pub use gauntlet::{SCREEN, Screening};
pub(crate) use repair::repair;
pub use table::Unmet;
pub use target::{Ends, Exploit, Extent, Only, Watch, WatchPlace};

use meter::Meter;
use table::Table;
use target::ScreeningTarget;

/// The attacks and mutations of the templates. Every task meets them. They are in a screening's
/// key.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AttackSuite {
    pub attacks: Vec<Exploit>,
    pub watches: Vec<Watch>,
    pub variants: Vec<Variant>,
}

/// A task, with everything that its author and its directory say about it.
#[derive(Clone, Debug)]
pub struct Material<'a> {
    pub task: &'a dyn Target,
    /// Harbor's digest of the directory.
    pub digest: TaskDigest,
    pub instruction: &'a str,
    /// The clauses of the draft, or of `clauses.toml` in the directory.
    pub clauses: &'a Clauses,
    /// The draft of a task of our own, if it is available.
    pub draft: Option<&'a Draft>,
}

impl<'a> Material<'a> {
    /// A draft of our own. `directory` publishes it.
    pub fn of_draft(draft: &'a Draft, hashed: &'a HashedTask<'a>, directory: &FileTree) -> Self {
        Self {
            task: hashed,
            digest: crate::model::task_digest(directory),
            instruction: &draft.task.instruction,
            clauses: &draft.clauses,
            draft: Some(draft),
        }
    }
}

/// Screens a task as it is judged: in the clean room, or as it declares. `findings` are the static
/// findings in its directory.
pub async fn screen(
    runner: &TrialRunner<'_>,
    suite: &AttackSuite,
    material: &Material<'_>,
    findings: &[Finding],
    extent: Extent,
    only: &Only,
) -> Result<Screening, TrialError> {
    let Material { task, instruction, clauses, draft, .. } = *material;
    let mut table = Table::default();
    lint_rows(findings, only, &mut table);
    clauses::declared(clauses, instruction, task.solution(), &mut table);
    if !table.rejected() {
        build(runner, task, &mut table).await?;
    }
    let none: &[WrongSolution] = &[];
    let target = ScreeningTarget {
        task,
        digest: material.digest.clone(),
        second: draft.and_then(|draft| draft.second.as_ref()),
        wrong: draft.map_or(none, |draft| &draft.wrong),
        clauses,
        variants: draft.map_or_else(|| unconditional(suite), |draft| draft.variants.clone()),
        attacks: &suite.attacks,
        watches: &suite.watches,
        findings,
        meter: Meter::start(),
        instruction,
    };
    // One allocation for each task, since the future of all its rows takes tens of kilobytes.
    Box::pin(gauntlet::run(runner, &target, extent, only, table)).await
}

/// Adds the row of the build. From then on, the task's hint is added to a failed reference.
async fn build(runner: &TrialRunner<'_>, task: &dyn Target, table: &mut Table) -> Result<(), TrialError> {
    if let Err(log) = task.build(runner).await? {
        table.row(RowKind::Build, "1", false, &format!("the image does not build: {log}"));
        return Ok(());
    }
    let note = task.named_image().map(|name| {
        format!("the image is `{name}` (environment.docker_image); environment/Dockerfile is not built")
    });
    table.row(RowKind::Build, "1", true, &note.unwrap_or_default());
    table.hint = task.hint(runner).await?;
    Ok(())
}

fn lint_rows(findings: &[Finding], only: &Only, table: &mut Table) {
    let counted = || findings.iter().filter(|finding| finding.suppressed.is_none());
    if counted().next().is_none() {
        table.row(RowKind::Lint, "all rules", true, "");
    }
    for finding in counted() {
        let note = format!("{}: {} ({})", finding.location(), finding.message, finding.hint);
        let asked_for = matches!(only, Only::Rows(_))
            && only.wants_row(RowKind::Lint, &finding.rule)
            && only.wants(RowKind::Lint);
        let ok = finding.severity != Severity::Error && !asked_for;
        table.lint_row(&finding.rule, ok, &note, Part::of_file(&finding.file));
    }
}

fn unconditional(suite: &AttackSuite) -> Vec<Variant> {
    suite.variants.iter().filter(|variant| !variant.conditional).cloned().collect()
}
