//! Screening: the table of trials that a task must pass, cheapest rows first.
//!
//! Admission is computed from trial records alone. A task is rejected at once if it does not build, passes without any work, or fails its
//! own reference. All other rows run even after a failure, so that a rejection names every problem, unless an author is to mend the first ([`Ends`]). Static findings explain and rank; for a
//! task of another maker they reject only if they make a trial impossible.

mod battery;
mod clauses;
mod damage;
mod evaluation;
mod forms;
mod gauntlet;
mod hints;
mod leak;
mod rates;
mod repair;
mod seen;
mod settle;
mod soundness;
mod table;
mod target;
mod unsteady;

use serde::Serialize;

use crate::harbor::HarborTask;
use crate::lint::{Finding, Severity};
use crate::model::{Clauses, Draft, FileTree, Part, RowKind, TaskDigest, Variant, WrongSolution};
use crate::verify::{Foreign, HashedTask, ImageSource, Images, TrialError, TrialRunner};

pub use gauntlet::{SCREEN, Screening};
pub(crate) use repair::repair;
pub use table::Unmet;
pub use target::{Ends, Exploit, Extent, Only, Watch, WatchPlace};

use evaluation::Evaluation;
use table::Table;
use target::ScreeningTarget;

/// The attacks and mutations of the templates, used on every task. A screening's key contains it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AttackSuite {
    pub attacks: Vec<Exploit>,
    pub watches: Vec<Watch>,
    pub variants: Vec<Variant>,
}

/// Screens a draft of ours in the clean room. `findings` are those of its directory.
pub async fn screen(
    runner: &TrialRunner<'_>,
    suite: &AttackSuite,
    draft: &Draft,
    hashed: &HashedTask<'_>,
    directory: &FileTree,
    findings: &[Finding],
    extent: Extent,
) -> Result<Screening, TrialError> {
    let ours = Ours {
        draft: Some(draft),
        clauses: &draft.clauses,
        hashed,
        digest: crate::model::task_digest(directory),
    };
    screen_ours(runner, suite, &ours, findings, extent, &Only::All).await
}

/// A task that termsmith wrote, with its draft if that is available.
#[derive(Clone, Debug)]
pub struct Ours<'a> {
    pub draft: Option<&'a Draft>,
    /// The draft's, or those of `clauses.toml` in the directory.
    pub clauses: &'a Clauses,
    pub hashed: &'a HashedTask<'a>,
    /// Harbor's digest of the directory.
    pub digest: TaskDigest,
}

/// Screens a task of ours in the clean room.
pub async fn screen_ours(
    runner: &TrialRunner<'_>,
    suite: &AttackSuite,
    ours: &Ours<'_>,
    findings: &[Finding],
    extent: Extent,
    only: &Only,
) -> Result<Screening, TrialError> {
    let task = ours.hashed.task;
    let mut table = Table::default();
    lint_rows(findings, only, &mut table);
    if !table.rejected() {
        match runner.build(ours.hashed).await? {
            Ok(()) => table.row(RowKind::Build, "1", true, ""),
            Err(log) => table.row(RowKind::Build, "1", false, &format!("the image does not build: {log}")),
        }
    }
    let none: &[WrongSolution] = &[];
    clauses::declared(ours.clauses, &task.instruction, Some(&task.solution), &mut table);
    let target = ScreeningTarget {
        name: task.name.to_string(),
        digest: ours.digest.clone(),
        environment_digest: ours.hashed.environment_digest.clone(),
        evaluation: Evaluation::CleanRoom(ours.hashed),
        solution: Some(&task.solution),
        second: ours.draft.and_then(|draft| draft.second.as_ref()),
        wrong: ours.draft.map_or(none, |draft| &draft.wrong),
        clauses: ours.clauses,
        variants: ours.draft.map_or_else(|| unconditional(suite), |draft| draft.variants.clone()),
        attacks: &suite.attacks,
        watches: &suite.watches,
        findings,
        instruction: &task.instruction,
        tests: &task.tests,
    };
    // One allocation per task: the future of all its rows is tens of kilobytes.
    Box::pin(gauntlet::run(runner, &target, extent, only, table)).await
}

/// A task of any maker.
#[derive(Clone, Copy, Debug)]
pub struct Theirs<'a> {
    pub directory: &'a HarborTask,
    pub task: &'a Foreign,
    /// Those of `clauses.toml` in the directory.
    pub clauses: &'a Clauses,
}

/// Screens a task of any maker as it declares to be judged.
pub async fn screen_in_place(
    runner: &TrialRunner<'_>,
    suite: &AttackSuite,
    theirs: Theirs<'_>,
    findings: &[Finding],
    extent: Extent,
    only: &Only,
) -> Result<Screening, TrialError> {
    let Theirs { directory, task, clauses } = theirs;
    let mut table = Table::default();
    lint_rows(findings, only, &mut table);
    clauses::declared(clauses, directory.instruction().unwrap_or_default(), task.solution(), &mut table);
    let tests = crate::verify::tests_of(task);
    let images =
        if table.rejected() { None } else { build_in_place(runner, task, &tests, &mut table).await? };
    if let Some(images) = &images {
        let config = runner.engine.get().await?.image_config(&images.solver).await?;
        table.hint = hints::hint(task, &config);
    }
    // Without an image no row uses it.
    let images =
        images.unwrap_or_else(|| Images { solver: crate::sandbox::Image::named(""), verifier: None });
    let target = ScreeningTarget {
        name: task.name.clone(),
        digest: task.digest.clone(),
        environment_digest: task.environment_digest.clone(),
        evaluation: Evaluation::InPlace { task, images: &images },
        solution: task.solution(),
        second: None,
        wrong: &[],
        clauses,
        variants: unconditional(suite),
        attacks: &suite.attacks,
        watches: &suite.watches,
        findings,
        instruction: directory.instruction().unwrap_or_default(),
        tests: &tests,
    };
    // One allocation per task: the future of all its rows is tens of kilobytes.
    Box::pin(gauntlet::run(runner, &target, extent, only, table)).await
}

async fn build_in_place(
    runner: &TrialRunner<'_>,
    task: &Foreign,
    tests: &FileTree,
    table: &mut Table,
) -> Result<Option<Images>, TrialError> {
    match runner.foreign_images(task, tests).await? {
        Ok(images) => {
            let note = match &task.image {
                ImageSource::Named(name) => {
                    format!(
                        "the image is `{name}` (environment.docker_image); environment/Dockerfile is not built"
                    )
                }
                ImageSource::Build(_) => String::new(),
            };
            table.row(RowKind::Build, "1", true, &note);
            Ok(Some(images))
        }
        Err(log) => {
            table.row(RowKind::Build, "1", false, &format!("the image does not build: {log}"));
            Ok(None)
        }
    }
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
