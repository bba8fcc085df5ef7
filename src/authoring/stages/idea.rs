//! The stage that samples a user's request.

use minijinja::context;
use minijinja::value::{Serde, Value};

use crate::authoring::anchor::Anchor;
use crate::authoring::stage::{Asks, AuthorStage, Prompt};
use crate::authoring::stage_conversation::{StageConversation, site_stage};
use crate::authoring::working::Working;
use crate::authoring::{PromptContext, StageContext, StageError};
use crate::domain::DomainSpec;
use crate::llm::{CallSite, ChatMessage, ChatRequest, ModelRole, SYSTEM_PLACE, Sampling};
use crate::model::{AuthoringPhase, Blueprint, Difficulty, EngineeringKind};
use crate::recording::Recording;

/// The system prompt for a model that continues a text as the user. It says whom the model assists,
/// and does not ask it for a request.
const PREFIX: &str = "prefix.md.j2";

#[derive(Debug)]
pub(in crate::authoring) struct Idea;

impl AuthorStage for Idea {
    fn name(&self) -> &'static str {
        "idea"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Sampler)
    }

    fn phase(&self) -> AuthoringPhase {
        AuthoringPhase::Request
    }

    // An overriding folder must have all files, whichever endpoint is used.
    fn texts(&self) -> &'static [&'static str] {
        &["task.md.j2", PREFIX]
    }

    /// The first request of a run, for an estimate. It has no anchor, since an estimate starts no
    /// container.
    fn prompt(&self, context: &PromptContext<'_>, _: &Working) -> Option<Prompt> {
        let system = system_values(context.spec, context.blueprint, &Anchor::default());
        let taken: [&str; 0] = [];
        Some(Prompt { system, task: context! { taken } })
    }
}

/// Samples a request. The sampler is shown the titles of earlier requests.
pub(in crate::authoring) async fn sampled(
    context: &StageContext<'_>,
    anchor: &Anchor,
    taken: &[String],
    sample: u32,
) -> Result<String, StageError> {
    let system = system_values(context.spec, context.blueprint, anchor);
    let taken = context! { taken => taken.to_vec() };
    let prompt = Prompt { system: system.clone(), task: taken.clone() };
    let conversation = StageConversation::open(context.texts, &Idea, prompt)?;
    let (site, mut request) = conversation.request(&context.asking(), sample);
    let (settings, _) = context.models.settings(ModelRole::Sampler)?;
    let begin = match &settings.sampling {
        Sampling::Chat => "",
        Sampling::Prefill { begin } => {
            request.messages.push(ChatMessage::assistant(begin.clone()));
            begin.as_str()
        }
        Sampling::Prefix { template, stop } => {
            let system = context.texts.of(&Idea)?.render(PREFIX, context! { ..system, ..taken })?;
            request = ChatRequest::continuation(template.replace(SYSTEM_PLACE, &system), stop.clone());
            ""
        }
    };
    let reply = context.models.call(&site, &request).await?.message.content;
    // Some servers repeat the beginning that they were given.
    let reply = if reply.starts_with(begin) { reply } else { format!("{begin}{reply}") };
    Ok(reply.trim().to_owned())
}

/// The request that a recording shows.
pub(in crate::authoring) async fn shown(
    context: &StageContext<'_>,
    recording: &Recording,
    sample: u32,
) -> Result<String, StageError> {
    let texts = &context.texts.recording;
    let Recording { title, commands, .. } = recording;
    let task = context! { title, commands, transcript => recording.excerpt() };
    let request = ChatRequest::of(vec![
        ChatMessage::system(texts.text("system.md")?),
        ChatMessage::user(texts.render("task.md.j2", task)?),
    ]);
    let site = CallSite {
        role: ModelRole::Sampler,
        unit: context.unit.to_owned(),
        stage: site_stage(&Idea),
        round: 0,
        step: 0,
        sample,
    };
    Ok(context.models.call(&site, &request).await?.message.content.trim().to_owned())
}

/// The values for the sampler's system prompt.
fn system_values(spec: &DomainSpec, blueprint: &Blueprint, anchor: &Anchor) -> Value {
    let persona = spec.persona(&blueprint.persona).map_or("", |persona| persona.text.as_str());
    let fixture = spec.fixtures.iter().find(|fixture| fixture.id == blueprint.fixture);
    let skills: Vec<_> =
        blueprint.skills.iter().filter_map(|id| spec.skill(id)).map(|skill| skill.title.clone()).collect();
    let effort = match blueprint.difficulty {
        Difficulty::Easy => "ten minutes",
        Difficulty::Medium => "half an hour",
        Difficulty::Hard => "an hour",
    };
    let kind = match blueprint.kind {
        EngineeringKind::FromScratch => "something new: nothing of the result exists yet",
        EngineeringKind::FeatureAddition => "an addition to something that works and has to go on working",
        EngineeringKind::BugFix => "a fault: you know the symptom and not the cause",
        EngineeringKind::Refactor => "a reorganisation: what it does stays the same, how it is built changes",
    };
    context! {
        domain => context! { title => &spec.title, description => spec.description.trim() },
        persona, effort, kind, skills,
        fixture => fixture.map_or("", |fixture| fixture.description.as_str()),
        language => &blueprint.language,
        tools => &spec.tools,
        anchor => Value::from(Serde(anchor)),
    }
}
