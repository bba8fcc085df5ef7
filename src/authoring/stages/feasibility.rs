//! The stage that judges whether a request can become a task.

use minijinja::context;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::authoring::stage::{Asks, AuthorStage, Prompt};
use crate::authoring::stage_conversation::StageConversation;
use crate::authoring::working::Working;
use crate::authoring::{PromptContext, StageContext, StageError};
use crate::llm::{ModelRole, ask};
use crate::model::{AuthoringPhase, Difficulty};

#[derive(Debug)]
pub(in crate::authoring) struct Feasibility;

impl AuthorStage for Feasibility {
    fn name(&self) -> &'static str {
        "feasibility"
    }

    fn asks(&self) -> Asks {
        Asks::Model(ModelRole::Judge)
    }

    fn phase(&self) -> AuthoringPhase {
        AuthoringPhase::Request
    }

    fn texts(&self) -> &'static [&'static str] {
        &["task.md.j2"]
    }

    fn prompt(&self, _: &PromptContext<'_>, working: &Working) -> Option<Prompt> {
        Some(prompt(&working.request))
    }
}

/// The judgement of a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(in crate::authoring) struct Judgement {
    pub(in crate::authoring) feasible: bool,
    pub(in crate::authoring) reason: String,
    pub(in crate::authoring) difficulty: Difficulty,
    pub(in crate::authoring) title: String,
}

/// Judges a request.
pub(in crate::authoring) async fn judged(
    context: &StageContext<'_>,
    request: &str,
    sample: u32,
) -> Result<Judgement, StageError> {
    let conversation = StageConversation::open(context.texts, &Feasibility, prompt(request))?;
    let (site, request) = conversation.request(&context.asking(), sample);
    Ok(ask(context.models, &site, &request).await?)
}

fn prompt(request: &str) -> Prompt {
    Prompt { system: context! {}, task: context! { request } }
}
