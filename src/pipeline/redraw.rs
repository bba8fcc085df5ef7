//! Runs the correct solutions on other draws of the tests' random inputs.
//!
//! A recipe's reference, its second solution and its tests compute the right results independently.
//! If two of them disagree on some draw, the recipe is wrong, even if they agree on the draws of
//! its certified tasks.

use futures_util::future::try_join_all;
use serde::Serialize;

use super::assets::PipelineAssets;
use super::error::Fault;
use super::unit::HashedDraft;
use crate::author::{AuthorError, redrawn_tests};
use crate::model::{FileTree, Task};
use crate::verify::{Act, Condition, HashedTask, TrialRunner};

/// The result of one solution on all draws.
#[derive(Debug, Serialize)]
pub struct Redrawn {
    /// `reference` or `second`.
    pub solution: &'static str,
    pub draws: u32,
    pub passed: u32,
    /// The failed checks, and why they failed, of the first draw on which the solution failed.
    pub failure: Option<String>,
}

/// Runs the reference and the second solution on `draws` further draws. Empty if the tests draw no
/// random numbers.
pub(super) async fn redraw(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    hashed_draft: &HashedDraft,
    draws: u32,
) -> Result<Vec<Redrawn>, Fault> {
    let draft = &hashed_draft.draft;
    let blueprint = &draft.task.blueprint;
    let recipe = blueprint.recipe().and_then(|id| assets.recipes.get(id));
    let recipe = recipe.ok_or_else(|| AuthorError::unknown(blueprint))?;
    let mut tasks = Vec::new();
    for draw in 1..=draws {
        if let Some(tests) = redrawn_tests(&assets.kit, recipe, draft, draw)? {
            tasks.push(Task { tests, ..draft.task.clone() });
        }
    }
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let environment = &hashed_draft.environment_digest;
    let hashed = tasks.iter().map(|task| HashedTask::new(task, environment.clone()));
    let hashed = hashed.collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    let second = draft.second.iter().map(|files| ("second", files));
    for (solution, files) in std::iter::once(("reference", &draft.task.solution)).chain(second) {
        all.push(on_all(runner, &hashed, solution, files).await?);
    }
    Ok(all)
}

async fn on_all(
    runner: &TrialRunner<'_>,
    tasks: &[HashedTask<'_>],
    solution: &'static str,
    files: &FileTree,
) -> Result<Redrawn, Fault> {
    let trials =
        tasks.iter().map(|task| Box::pin(runner.trial(task, Act::Solve(files), Condition::Ordinary, 0)));
    let ended = try_join_all(trials).await?;
    let mut redrawn = Redrawn { solution, draws: 0, passed: 0, failure: None };
    for (draw, (record, log)) in (1_u32..).zip(&ended) {
        redrawn.draws = draw;
        if record.verdict.passed() {
            redrawn.passed += 1;
        } else if redrawn.failure.is_none() {
            let failed = record.verdict.checks.iter().filter(|check| !check.passed);
            let failed: Vec<_> = failed.map(|check| check.id.as_str()).collect();
            let why = log.verifier.messages.values().next().map_or("", String::as_str);
            redrawn.failure =
                Some(format!("draw {draw}: {} {} {why}", record.verdict.cause, failed.join(", ")));
        }
    }
    Ok(redrawn)
}
