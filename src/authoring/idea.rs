//! A request, and whether it can become a task.

use minijinja::context;
use minijinja::value::{Serde, Value};
use schemars::JsonSchema;
use serde::Deserialize;

use super::anchor::{Anchor, anchor};
use super::near_duplicate::Words;
use super::stage_conversation::StageConversation;
use super::working::Working;
use super::{History, StageContext, StageError};
use crate::domain::DomainSpec;
use crate::llm::{AskError, CallSite, ChatMessage, ChatRequest, ModelRole, SYSTEM_PLACE, Sampling, ask};
use crate::model::{AuthorStage, Blueprint, Difficulty, EngineeringKind};
use crate::recording::Recording;

/// Requests that are sampled before a blueprint is given up.
const MAX_REQUESTS: u32 = 3;

/// The system prompt for a model that writes the user's turn itself: it is told whom it assists, not to ask.
const PREFIX: &str = "prefix.md.j2";

/// Accepted titles that a sampler is shown. More would make the prompt longer than what it asks for.
const SHOWN_TITLES: usize = 40;

/// The judgement of a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Feasibility {
    feasible: bool,
    reason: String,
    difficulty: Difficulty,
    title: String,
}

/// Requests that were accepted before in the same cell of the plan, in order.
#[derive(Debug, Default)]
pub struct Accepted {
    titles: Vec<String>,
    words: Vec<Words>,
}

impl Accepted {
    fn near(&self, words: &Words) -> Option<&str> {
        let found = self.words.iter().position(|accepted| accepted.is_near(words))?;
        self.titles.get(found).map(String::as_str)
    }

    fn push(&mut self, title: &str, words: Words) {
        self.titles.push(title.to_owned());
        self.words.push(words);
    }

    /// The last titles, for a prompt.
    fn shown(&self) -> &[String] {
        &self.titles[self.titles.len().saturating_sub(SHOWN_TITLES)..]
    }
}

/// The request of one blueprint.
#[derive(Debug)]
pub struct Requested {
    pub(super) history: History,
    /// The last request, if none is feasible and new.
    pub(super) working: Result<Box<Working>, String>,
}

/// The first request that is feasible and not nearly one of `accepted`, to which it is added.
pub async fn requested(context: &StageContext<'_>, accepted: &mut Accepted) -> Result<Requested, StageError> {
    let mut history = History::default();
    let anchor = match context.recording {
        Some(_) => Anchor::default(),
        None => anchor(context).await?,
    };
    let mut last = String::new();
    for sample in 0..MAX_REQUESTS {
        let request = match context.recording {
            Some(recording) => shown(context, recording, sample).await?,
            None => request(context, &anchor, accepted, sample).await?,
        };
        history.begun(AuthorStage::Idea);
        let words = Words::of(&request);
        if request.is_empty() {
            history.refused(AuthorStage::Idea, vec!["it is empty".to_owned()]);
            continue;
        }
        if let Some(title) = accepted.near(&words) {
            // Before its feasibility is paid for.
            history.refused(AuthorStage::Idea, vec![format!("it is nearly the request “{title}”")]);
            last = request;
            continue;
        }
        history.begun(AuthorStage::Feasibility);
        let Feasibility { feasible, reason, difficulty, title } =
            match judged(context, &request, sample).await {
                Ok(judged) => judged,
                Err(StageError::Ask(error @ AskError::Unusable { .. })) => {
                    history.refused(AuthorStage::Feasibility, vec![error.to_string()]);
                    last = request;
                    continue;
                }
                Err(error) => return Err(error),
            };
        if feasible {
            accepted.push(&title, words);
            let working = Working::begun(request, title, difficulty);
            return Ok(Requested { history, working: Ok(Box::new(working)) });
        }
        history.refused(AuthorStage::Feasibility, vec![reason]);
        last = request;
    }
    Ok(Requested { history, working: Err(last) })
}

/// What the sampler's prompt says of a blueprint.
pub(super) fn system_values(spec: &DomainSpec, blueprint: &Blueprint, anchor: &Anchor) -> Value {
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

async fn request(
    context: &StageContext<'_>,
    anchor: &Anchor,
    accepted: &Accepted,
    sample: u32,
) -> Result<String, StageError> {
    let system = system_values(context.spec, context.blueprint, anchor);
    let taken = context! { taken => accepted.shown().to_vec() };
    let asking = context.asking();
    let conversation =
        StageConversation::open(context.texts, AuthorStage::Idea, system.clone(), taken.clone())?;
    let (site, mut request) = conversation.request(&asking, sample);
    let (settings, _) = context.models.settings(ModelRole::Sampler)?;
    let begin = match &settings.sampling {
        Sampling::Chat => "",
        Sampling::Prefill { begin } => {
            request.messages.push(ChatMessage::assistant(begin.clone()));
            begin.as_str()
        }
        Sampling::Prefix { template, stop } => {
            let texts = context.texts.of(AuthorStage::Idea)?;
            let system = texts.render(PREFIX, context! { ..system, ..taken })?;
            request = ChatRequest::continuation(template.replace(SYSTEM_PLACE, &system), stop.clone());
            ""
        }
    };
    let reply = context.models.call(&site, &request).await?.message.content;
    // Some servers return the words that were given, too.
    let reply = if reply.starts_with(begin) { reply } else { format!("{begin}{reply}") };
    Ok(reply.trim().to_owned())
}

/// The request that a recording shows.
async fn shown(context: &StageContext<'_>, recording: &Recording, sample: u32) -> Result<String, StageError> {
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
        stage: format!("author-{}", AuthorStage::Idea.as_str()),
        round: 0,
        step: 0,
        sample,
    };
    Ok(context.models.call(&site, &request).await?.message.content.trim().to_owned())
}

/// The beginning of a task, if its request is feasible. `Err` inside: why it is not.
pub(super) async fn feasible(
    context: &StageContext<'_>,
    request: String,
) -> Result<Result<Working, String>, StageError> {
    match judged(context, &request, 0).await {
        Ok(Feasibility { feasible: true, difficulty, title, .. }) => {
            Ok(Ok(Working::begun(request, title, difficulty)))
        }
        Ok(Feasibility { reason, .. }) => Ok(Err(reason)),
        Err(StageError::Ask(error @ AskError::Unusable { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

async fn judged(context: &StageContext<'_>, request: &str, sample: u32) -> Result<Feasibility, StageError> {
    let conversation =
        StageConversation::open(context.texts, AuthorStage::Feasibility, context! {}, context! { request })?;
    let (site, request) = conversation.request(&context.asking(), sample);
    Ok(ask(context.models, &site, &request).await?)
}
