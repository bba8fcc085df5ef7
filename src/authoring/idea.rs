//! A request, and whether it can become a task.

use minijinja::context;
use schemars::JsonSchema;
use serde::Deserialize;

use super::stage_conversation::StageConversation;
use super::working::Working;
use super::{History, StageContext, StageError};
use crate::llm::ask;
use crate::model::{AuthorStage, Difficulty, EngineeringKind};

/// Requests that are sampled before a blueprint is given up.
const MAX_REQUESTS: u32 = 3;

/// The judgement of a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Feasibility {
    feasible: bool,
    reason: String,
    difficulty: Difficulty,
    title: String,
}

/// The first feasible request; the last one if none is.
pub(super) async fn feasible(
    context: &StageContext<'_>,
    history: &mut History,
) -> Result<Result<Working, String>, StageError> {
    let mut last = String::new();
    for sample in 0..MAX_REQUESTS {
        let request = request(context, sample).await?;
        history.begun(AuthorStage::Idea);
        if request.is_empty() {
            history.refused(AuthorStage::Idea, vec!["it is empty".to_owned()]);
            continue;
        }
        let Feasibility { feasible, reason, difficulty, title } = judged(context, &request, sample).await?;
        history.begun(AuthorStage::Feasibility);
        if feasible {
            return Ok(Ok(Working::begun(request, title, difficulty)));
        }
        history.refused(AuthorStage::Feasibility, vec![reason]);
        last = request;
    }
    Ok(Err(last))
}

async fn request(context: &StageContext<'_>, sample: u32) -> Result<String, StageError> {
    let StageContext { spec, blueprint, .. } = context;
    let persona = spec.persona(&blueprint.persona).map_or("", |persona| persona.text.as_str());
    let fixture = spec.fixtures.iter().find(|fixture| fixture.id == blueprint.fixture);
    let skills: Vec<_> =
        blueprint.skills.iter().filter_map(|id| spec.skill(id)).map(|skill| skill.title.clone()).collect();
    let effort = match blueprint.difficulty {
        Difficulty::Easy => "ten minutes",
        Difficulty::Medium => "half an hour",
        Difficulty::Hard => "an hour or more",
    };
    let kind = match blueprint.kind {
        EngineeringKind::FromScratch => "something new: nothing of the result exists yet",
        EngineeringKind::FeatureAddition => "an addition to something that works and has to go on working",
        EngineeringKind::BugFix => "a fault: you know the symptom and not the cause",
        EngineeringKind::Refactor => "a reorganisation: what it does stays the same, how it is built changes",
    };
    let system = context! {
        domain => context! { title => &spec.title, description => spec.description.trim() },
        persona, effort, kind, skills,
        fixture => fixture.map_or("", |fixture| fixture.description.as_str()),
        language => &blueprint.language,
        tools => &spec.tools,
    };
    let conversation = StageConversation::open(
        context,
        AuthorStage::Idea,
        system,
        context! { taken => Vec::<String>::new() },
    )?;
    let (site, request) = conversation.request(context, sample);
    Ok(context.models.call(&site, &request).await?.message.content.trim().to_owned())
}

async fn judged(context: &StageContext<'_>, request: &str, sample: u32) -> Result<Feasibility, StageError> {
    let conversation =
        StageConversation::open(context, AuthorStage::Feasibility, context! {}, context! { request })?;
    let (site, request) = conversation.request(context, sample);
    Ok(ask(context.models, &site, &request).await?)
}
