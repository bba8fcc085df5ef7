//! Rehearsal of one recipe for one seed: its certificate, and a run of every variation of its expert.

use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use serde::Serialize;

use super::assets::PipelineAssets;
use super::error::Fault;
use super::event::Event;
use super::redraw::{Redrawn, redraw};
use super::unit::{HashedDraft, Thoroughness, certify, hash_draft};
use crate::agent::{AgentError, Leak, ScriptedAgent, Variation, unseen_literals, write_block};
use crate::author::Recipe;
use crate::harbor::Publication;
use crate::lint::lint_draft;
use crate::model::{
    Act, Blueprint, Certificate, FailureMode, Rigor, RowKind, Screened, ShellOutcome, task_digest,
};
use crate::rollout::{FinishedEpisode, RolloutError, run_scripted_episode};
use crate::screen::{Extent, Only, Ours, screen_ours};
use crate::verify::{HashedTask, TrialRunner};

/// Result of a rehearsal.
#[derive(Debug)]
pub struct Rehearsal {
    pub certificate: Certificate,
    pub expert_runs: Vec<ExpertRun>,
    /// The correct solutions on other draws of the tests' random inputs.
    pub redrawn: Vec<Redrawn>,
    /// One sentence for each problem. Empty for a sound recipe.
    pub problems: Vec<String>,
}

/// One run of a variation of the expert.
#[derive(Debug, Serialize)]
pub struct ExpertRun {
    pub name: String,
    pub ok: bool,
    pub turns: Option<usize>,
    pub note: String,
}

impl ExpertRun {
    /// `7 turns`; empty if the script could not be executed.
    pub fn turns_text(&self) -> String {
        self.turns.map_or_else(String::new, |turns| format!("{turns} turns"))
    }
}

/// Screens the draft of `blueprint`, runs its correct solutions on `draws` further draws of the tests' random inputs, and every
/// variation of its expert. With rows in `only`, the expert is left out.
pub async fn rehearse(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    blueprint: &Blueprint,
    rigor: Rigor,
    draws: u32,
    only: &Only,
) -> Result<Rehearsal, Fault> {
    let hashed_draft = hash_draft(assets, runner.store, blueprint, &Publication::default())?;
    let hashed = HashedTask::new(&hashed_draft.draft.task, hashed_draft.environment_digest.clone())?;
    let certificate = match only {
        Only::All => {
            certify(
                runner,
                assets,
                &hashed_draft,
                &hashed,
                Thoroughness { rigor, blind: None },
                &|_: Event| {},
            )
            .await?
            .1
        }
        Only::Rows(_) => some_rows(runner, assets, &hashed_draft, &hashed, rigor, only).await?,
    };
    // A draft that does not build has no row of a reference.
    let built = certificate.rows.iter().any(|row| row.kind == RowKind::Reference);
    let redrawn = redraw(runner, assets, &hashed_draft, if built { draws } else { 0 }).await?;
    let mut rehearsal = Rehearsal {
        problems: certificate.reasons.iter().map(|reason| reason.message.clone()).collect(),
        expert_runs: Vec::new(),
        redrawn,
        certificate,
    };
    for redrawn in &rehearsal.redrawn {
        if let Some(failure) = &redrawn.failure {
            rehearsal.problems.push(format!("the {} solution fails on {failure}", redrawn.solution));
        }
    }
    if rehearsal.certificate.screened() == Screened::Certified && matches!(only, Only::All) {
        let script = &hashed_draft.draft.expert;
        let mut variations = vec![("no slip".to_owned(), Variation::Expert(None))];
        for slip in &script.slips {
            variations.push((format!("slip before {}", slip.before), Variation::Expert(Some(slip))));
        }
        for failure in &script.failures {
            let name = format!("{:?} at {}", failure.mode, failure.replaces);
            variations.push((name, Variation::Flawed(failure)));
        }
        if let Some(slip) = Variation::earliest_slip(script) {
            variations
                .push(("ignores the error".to_owned(), Variation::StopsAt(slip, FailureMode::IgnoredError)));
        }
        let runs = variations
            .into_iter()
            .map(|(name, variation)| run_variation(runner, assets, &hashed_draft, &hashed, name, variation));
        for run in futures_util::future::join_all(runs).await {
            let run = run?;
            if !run.ok {
                rehearsal.problems.push(format!("expert, {}: {}", run.name, run.note));
            }
            rehearsal.expert_runs.push(run);
        }
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
) -> Result<Certificate, Fault> {
    let draft = &hashed_draft.draft;
    let findings = lint_draft(&assets.rules, &hashed_draft.directory, draft);
    let digest = task_digest(&hashed_draft.directory);
    let ours = Ours { draft: Some(draft), clauses: &draft.clauses, hashed, digest };
    let screening = screen_ours(runner, &assets.suite, &ours, &findings, Extent::of(rigor), only).await?;
    Ok(screening.certificate)
}

async fn run_variation(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    hashed_draft: &HashedDraft,
    hashed: &HashedTask<'_>,
    name: String,
    variation: Variation<'_>,
) -> Result<ExpertRun, Fault> {
    let _slot = runner.slot().await?;
    let task = &hashed_draft.draft.task;
    // Wordings do not matter here, so any seed is valid.
    let mut rng = ChaCha20Rng::seed_from_u64(task.blueprint.seed.0);
    let agent =
        ScriptedAgent::with_variation(&hashed_draft.draft.expert, variation, &mut rng, &assets.prompts);
    let finished = match run_scripted_episode(runner, &assets.prompts, hashed, agent).await {
        Ok(finished) => finished,
        Err(RolloutError::Agent(AgentError::Script(error))) => {
            return Ok(ExpertRun { name, ok: false, turns: None, note: error.to_string() });
        }
        Err(other) => return Err(other.into()),
    };
    let conversation = &finished.conversation;
    let script =
        task.blueprint.recipe().and_then(|id| assets.recipes.get(id)).map(author_texts).unwrap_or_default();
    let tools = assets.domains.get(&task.blueprint.domain).map_or(&[][..], |domain| domain.tools.as_slice());
    let shown: Vec<_> = conversation.seen.iter().map(|seen| seen.shown.clone()).collect();
    let prompt = &conversation.opening.prompt;
    let leaks = unseen_literals(&task.environment, &script, tools, prompt, &conversation.turns, &shown);
    let note = complaint(variation, &finished, &leaks);
    Ok(ExpertRun { name, ok: note.is_empty(), turns: Some(conversation.turns.len()), note })
}

/// All texts of a recipe except its fixtures: an expert's script may use any of them.
fn author_texts(recipe: &Recipe) -> String {
    let texts = recipe.files.iter().filter(|(path, _)| !path.as_str().starts_with("environment/"));
    texts.filter_map(|(_, file)| file.as_text()).collect::<Vec<_>>().join("\n")
}

/// The problem of a run; empty if there is none.
fn complaint(variation: Variation<'_>, finished: &FinishedEpisode, leaks: &[Leak]) -> String {
    let verdict = &finished.evaluated.verdict;
    if let Some(leak) = leaks.first() {
        return format!("turn {} uses `{}`, which the expert has not observed", leak.turn + 1, leak.literal);
    }
    let slipped = match variation {
        Variation::Expert(slip) => slip,
        Variation::StopsAt(slip, _) => Some(slip),
        Variation::Flawed(_) => None,
    };
    for turn in &finished.conversation.turns {
        let [Act::Command { command, outcome }] = turn.acts.as_slice() else { continue };
        let failed = !matches!(outcome, None | Some(ShellOutcome::Exited(0)));
        let is_slip = slipped.is_some_and(|slip| turn.content == write_block(&slip.say, Some(command)));
        if is_slip && !failed {
            return format!("the slip's command succeeds: {command}");
        }
        if failed && !is_slip && matches!(variation, Variation::Expert(_)) {
            return format!("a step's command fails: {command}");
        }
    }
    let failed: Vec<_> =
        verdict.checks.iter().filter(|check| !check.passed).map(|check| check.id.as_str()).collect();
    match (variation, verdict.passed()) {
        (Variation::Expert(_), false) => {
            let why = finished.evaluated.log.messages.values().next().map_or("", String::as_str);
            format!("does not pass: {} {} {why}", verdict.cause, failed.join(", "))
        }
        (Variation::Flawed(_) | Variation::StopsAt(..), true) => "passes, but must fail".to_owned(),
        (Variation::Expert(_), true) | (Variation::Flawed(_) | Variation::StopsAt(..), false) => {
            String::new()
        }
    }
}
