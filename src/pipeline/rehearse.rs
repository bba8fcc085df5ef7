//! Rehearses one recipe with one seed: makes its certificate, and runs every branch of its expert.

use super::assets::PipelineAssets;
use super::error::Fault;
use super::event::Event;
use super::expert_runs::{Branches, ExpertRun, expert_runs};
use super::redraw::{Redrawn, redraw};
use super::unit::{HashedDraft, Thoroughness, certify, hash_draft, screening_cost};
use crate::harbor::Publication;
use crate::lint::lint_draft;
use crate::model::{Blueprint, Certificate, Rigor, RowKind, Screened, ScreeningCost};
use crate::screen::{Extent, Material, Only, screen};
use crate::verify::{HashedTask, TrialRunner};

/// Result of a rehearsal.
#[derive(Debug)]
pub struct Rehearsal {
    pub certificate: Certificate,
    /// What its trials cost.
    pub cost: ScreeningCost,
    pub expert_runs: Vec<ExpertRun>,
    /// The results of the correct solutions on other draws of the tests' random inputs.
    pub redrawn: Vec<Redrawn>,
    /// One sentence for each problem. Empty for a sound recipe.
    pub problems: Vec<String>,
}

/// Which parts of a rehearsal are done.
#[derive(Debug)]
pub enum Scope {
    /// Screening, further draws, and the expert.
    All,
    /// Only these rows of the screening.
    Rows(Only),
    /// Only the expert.
    Expert,
}

/// Rehearses the draft of `blueprint`, as far as `scope` says. It is screened, its correct
/// solutions run on `draws` further draws of the tests' random inputs, and every branch of its
/// expert runs.
pub async fn rehearse(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    blueprint: &Blueprint,
    rigor: Rigor,
    draws: u32,
    scope: &Scope,
) -> Result<Rehearsal, Fault> {
    let hashed_draft = hash_draft(assets, runner.store, blueprint, &Publication::default())?;
    let hashed = HashedTask::new(&hashed_draft.draft.task, hashed_draft.environment_digest.clone())?;
    let (certificate, cost) = match scope {
        Scope::All => {
            let (key, certificate) = certify(
                runner,
                assets,
                &hashed_draft,
                &hashed,
                Thoroughness { rigor, blind: None },
                &|_: Event| {},
            )
            .await?;
            (certificate, screening_cost(runner.store, &key)?)
        }
        Scope::Rows(only) => some_rows(runner, assets, &hashed_draft, &hashed, rigor, only).await?,
        Scope::Expert => {
            // The cheapest row that builds the image, which the expert needs.
            let only = Only::Rows(vec![(RowKind::Untouched, None)]);
            some_rows(runner, assets, &hashed_draft, &hashed, rigor, &only).await?
        }
    };
    // A draft whose image cannot be built has no reference row.
    let built = certificate.rows.iter().any(|row| row.kind == RowKind::Reference);
    let redrawn = redraw(runner, assets, &hashed_draft, if built { draws } else { 0 }).await?;
    let mut rehearsal = Rehearsal {
        problems: certificate.reasons.iter().map(|reason| reason.message.clone()).collect(),
        expert_runs: Vec::new(),
        redrawn,
        certificate,
        cost,
    };
    for redrawn in &rehearsal.redrawn {
        if let Some(failure) = &redrawn.failure {
            rehearsal.problems.push(format!("the {} solution fails on {failure}", redrawn.solution));
        }
    }
    let expert = match scope {
        Scope::All if rehearsal.certificate.screened() == Screened::Rejected => None,
        Scope::All if rigor == Rigor::Quick => Some(Branches::Repaired),
        Scope::All => Some(Branches::AllJudged),
        Scope::Expert => Some(Branches::Unrepaired),
        Scope::Rows(_) => None,
    };
    if let Some(which) = expert {
        rehearsal.expert_runs = expert_runs(runner, assets, &hashed_draft, &hashed, which).await?;
        let failed = rehearsal.expert_runs.iter().filter(|run| !run.ok);
        rehearsal.problems.extend(failed.map(|run| format!("expert, {}: {}", run.name, run.note)));
    }
    Ok(rehearsal)
}

async fn some_rows(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    hashed_draft: &HashedDraft,
    hashed: &HashedTask<'_>,
    rigor: Rigor,
    only: &Only,
) -> Result<(Certificate, ScreeningCost), Fault> {
    let draft = &hashed_draft.draft;
    let findings = lint_draft(&assets.rules, &hashed_draft.directory, draft);
    let material = Material::of_draft(draft, hashed, &hashed_draft.directory);
    let screening = screen(runner, &assets.suite, &material, &findings, Extent::of(rigor), only).await?;
    Ok((screening.certificate, screening.timings.cost))
}
