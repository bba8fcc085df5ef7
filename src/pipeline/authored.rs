//! Drafts that a model writes, as records.

use std::sync::Arc;

use super::assets::PipelineAssets;
use super::error::Fault;
use super::stop::ends_everything;
use super::unit::{DRAFT, HashedDraft, UnitOptions};
use crate::authoring::{BlindSolvers, StageContext, StageError, StageTexts, author};
use crate::harbor::{task_name, write_task};
use crate::llm::{AskError, Models};
use crate::model::{AuthorStage, AuthoringOutcome, AuthoringRecord, Blueprint, Draft, environment_digest};
use crate::rollout::AgentConfig;
use crate::store::{Stage, key};
use crate::verify::TrialRunner;

/// How a model wrote a task, or failed to.
pub const AUTHORING: Stage = Stage { name: "authoring", version: 1 };

/// The models and prompts that write tasks.
#[derive(Clone, Debug)]
pub struct ModelAuthor {
    pub models: Arc<Models>,
    pub texts: StageTexts,
    /// Blind solvers, and how many try.
    pub blind: Option<(AgentConfig, u32)>,
}

/// A blueprint of which no draft came.
#[derive(Clone, Debug)]
pub struct Unmade {
    pub stage: AuthorStage,
    /// What was wrong with its last version.
    pub problems: Vec<String>,
}

/// Has a model write the task of `blueprint`.
pub(super) async fn authored(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    model: &ModelAuthor,
    blueprint: &Blueprint,
    options: &UnitOptions,
) -> Result<Result<HashedDraft, Unmade>, Fault> {
    let unknown = || crate::author::AuthorError::unknown(blueprint);
    let spec = assets.domains.get(&blueprint.domain).ok_or_else(unknown)?;
    let unit = task_name(blueprint).to_string();
    let blind = model.blind.as_ref().map(|(agent, attempts)| BlindSolvers {
        texts: &assets.texts,
        agent,
        attempts: *attempts,
    });
    let context = StageContext {
        runner,
        models: &model.models,
        texts: &model.texts,
        kit: &assets.kit,
        rules: &assets.rules,
        suite: &assets.suite,
        spec,
        blueprint,
        unit: &unit,
        rigor: options.rigor,
        blind: blind.as_ref(),
    };
    let authored = Box::pin(author(&context)).await;
    if let Err(StageError::Call(error) | StageError::Ask(AskError::Call(error))) = &authored
        && ends_everything(error)
    {
        runner.drain.cancel();
    }
    let authored = authored?;
    let store = runner.store;
    let (outcome, result) = match authored.draft {
        Err(stage) => {
            let problems = authored.log.problems.last().cloned().unwrap_or_default();
            (AuthoringOutcome::Rejected(stage), Err(Unmade { stage, problems }))
        }
        Ok(draft) => {
            let key = key(DRAFT, &*draft)?;
            if store.get::<Draft>(DRAFT, &key)?.is_none() {
                store.put(DRAFT, &key, &*draft)?;
            }
            let base = assets.kit.base(&draft.task.base).unwrap_or_default();
            let hashed = HashedDraft {
                environment_digest: environment_digest(&draft.task.environment, base),
                directory: write_task(&draft.task, &options.publication)?,
                key: key.clone(),
                draft: *draft,
            };
            (AuthoringOutcome::Draft(key), Ok(hashed))
        }
    };
    let record = AuthoringRecord {
        blueprint: blueprint.clone(),
        request: authored.request,
        versions: authored.versions,
        outcome,
    };
    let key = key(AUTHORING, &record)?;
    if store.get::<AuthoringRecord>(AUTHORING, &key)?.is_none() {
        store.observe(&key, &authored.log)?;
        store.put(AUTHORING, &key, &record)?;
    }
    Ok(result)
}
