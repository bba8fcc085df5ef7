//! Sets up the models that write tasks, from the arguments of `run`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::args_rollout::ModelArgs;
use super::args_tasks::ScreenArgs;
use super::config::Config;
use super::failure::Failure;
use super::models;
use crate::agent::{Logprobs, SCAFFOLDS, ScaffoldOptions, StepLimits};
use crate::assets::Assets;
use crate::authoring::{StageCounts, StageTexts};
use crate::llm::{ModelRole, Models};
use crate::model::{Arm, AuthoringMode, ModelActor};
use crate::pipeline::{DifficultySolvers, ModelAuthor};
use crate::recording::Recording;
use crate::rollout::{AgentConfig, Overflow, Preflight};
use crate::store::Store;
use tokio_util::sync::CancellationToken;

/// The scaffold of blind solvers. Its commands are in fenced blocks, which every model can write,
/// even one without tool calls.
const SCAFFOLD: &str = "bash-block";
/// Turns of a blind solver. Terminal-Bench's agents need 20 to 30 for tasks of this size
/// (LiteCoder: 27.4 on average).
const TURNS: u32 = 40;
/// Time limit of one command of a blind solver.
const COMMAND: Duration = Duration::from_secs(60);
/// Bytes of a command's output that a blind solver sees.
const OUTPUT_BYTES: usize = 8_000;
/// Time limit of the whole attempt, with the model's time. It is long, because a person may play
/// the model.
const TOTAL: Duration = Duration::from_secs(6 * 3600);

/// Which work models do in a run.
pub(super) struct AuthorOptions {
    /// Whether they write tasks.
    pub(super) writes: bool,
    /// Attempts of blind solvers at each task.
    pub(super) blind: u32,
    /// Attempts of a strong and of a weak solver, which measure the difficulty.
    pub(super) difficulty_attempts: u32,
    pub(super) mode: AuthoringMode,
    pub(super) counts: StageCounts,
    /// Recorded sessions that tasks are made from, by the blueprint's index.
    pub(super) recordings: BTreeMap<u32, Recording>,
}

/// How stages work with `--oneshot`, or without it.
pub(super) fn mode(oneshot: bool) -> AuthoringMode {
    if oneshot { AuthoringMode::OneShot } else { AuthoringMode::Shell }
}

/// The models. `None` if no model writes tasks and no blind solver tries them.
pub(super) fn model_author(
    config: &Config,
    args: &ModelArgs,
    options: AuthorOptions,
    store: &Store,
    drain: &CancellationToken,
) -> Result<Option<ModelAuthor>, Failure> {
    let AuthorOptions { writes, blind: attempts, difficulty_attempts, mode, counts, recordings } = options;
    if !writes && attempts == 0 {
        return Ok(None);
    }
    let assets = config.assets()?;
    let models = models::models(args, (!writes).then_some(ModelRole::Solver), store, drain)?;
    let roles = if writes { counts.roles() } else { Vec::new() };
    let solver = (attempts > 0 || difficulty_attempts > 0).then_some(ModelRole::Solver);
    let weak = (difficulty_attempts > 0).then_some(ModelRole::Weak);
    // Missing roles are reported before any work begins.
    for role in roles.into_iter().chain(solver).chain(weak) {
        models.ready(role)?;
    }
    let texts = StageTexts::load(&assets)?;
    let blind = blind_solvers(&models, &assets, attempts)?;
    let difficulty_solvers = difficulty_solvers(&models, &assets, difficulty_attempts)?;
    Ok(Some(ModelAuthor {
        models: Arc::new(models),
        texts,
        recordings,
        mode,
        counts,
        blind,
        difficulty_solvers,
    }))
}

/// The models of `screen`. `None` if no row needs one.
pub(super) fn screening_models(
    config: &Config,
    args: &ScreenArgs,
    store: &Store,
    drain: &CancellationToken,
) -> Result<Option<ModelAuthor>, Failure> {
    let role = match (args.clauses, args.blind) {
        (false, 0) => return Ok(None),
        (true, 0) => Some(ModelRole::Adversary),
        (false, _) => Some(ModelRole::Solver),
        (true, _) => None,
    };
    let assets = config.assets()?;
    let models = models::models(&args.model, role, store, drain)?;
    let writer = args.clauses.then_some(ModelRole::Adversary);
    let solver = (args.blind > 0).then_some(ModelRole::Solver);
    for role in writer.into_iter().chain(solver) {
        models.ready(role)?;
    }
    let texts = StageTexts::load(&assets)?;
    let blind = blind_solvers(&models, &assets, args.blind)?;
    let models = Arc::new(models);
    let (recordings, mode, counts) = (BTreeMap::new(), AuthoringMode::OneShot, StageCounts::default());
    Ok(Some(ModelAuthor { models, texts, recordings, mode, counts, blind, difficulty_solvers: None }))
}

/// The configuration of blind solvers, and their number of attempts.
fn blind_solvers(
    models: &Models,
    assets: &Assets,
    attempts: u32,
) -> Result<Option<(AgentConfig, u32)>, Failure> {
    let agent = (attempts > 0).then(|| solver_config(models, assets, ModelRole::Solver)).transpose()?;
    Ok(agent.map(|agent| (agent, attempts)))
}

/// The strong and the weak solver, which measure the difficulty.
fn difficulty_solvers(
    models: &Models,
    assets: &Assets,
    attempts: u32,
) -> Result<Option<DifficultySolvers>, Failure> {
    if attempts == 0 {
        return Ok(None);
    }
    let strong = solver_config(models, assets, ModelRole::Solver)?;
    let weak = solver_config(models, assets, ModelRole::Weak)?;
    Ok(Some(DifficultySolvers { strong, weak, attempts }))
}

/// The configuration of a solver in this role.
fn solver_config(models: &Models, assets: &Assets, role: ModelRole) -> Result<AgentConfig, Failure> {
    let entry = SCAFFOLDS.iter().find(|entry| entry.option == SCAFFOLD);
    let entry = entry.ok_or_else(|| Failure::usage(format!("no scaffold `{SCAFFOLD}`")))?;
    let scaffold = (entry.load)(assets, &ScaffoldOptions::default())?;
    let (settings, endpoint) = models.settings(role)?;
    let actor = ModelActor {
        model: settings.model.clone(),
        endpoint: settings.endpoint.clone(),
        arm: Arm::Base,
        adversary: None,
        program: None,
    };
    let limits = StepLimits {
        turns: TURNS,
        command: COMMAND,
        total: TOTAL,
        output_bytes: OUTPUT_BYTES,
        reply_tokens: Some(settings.max_tokens),
        tokens: None,
        dollars: None,
        context: endpoint.max_context.map(|most| most.saturating_sub(settings.max_tokens.into())),
    };
    Ok(AgentConfig {
        scaffold,
        role,
        actor,
        limits,
        rounds: 0,
        logprobs: Logprobs::No,
        overflow: Overflow::Ends,
        fork: None,
        preflight: Preflight::default(),
    })
}
