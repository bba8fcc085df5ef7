//! The model judge. It reads a shortened trajectory, and answers in strict JSON with LiteCoder's
//! labels and their evidence.

use std::collections::BTreeMap;

use minijinja::context;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Label;
use super::record::{Evidence, Judgement, judge_id};
use super::render::{Rendering, render};
use crate::assets::Assets;
use crate::llm::{AskError, CallError, CallSite, ChatMessage, ChatRequest, ModelRole, Models, ask_checked};
use crate::model::{End, HandoffShown, Shown, TrajectoryRecord};
use crate::prompts::{PromptSet, PromptsError};
use crate::store::StoreError;

/// Folder of the judge's texts, below `templates/prompts/`.
const FOLDER: &str = "judge";
const SYSTEM: &str = "system.md";
const TRAJECTORY: &str = "trajectory.md.j2";
/// The stage of its calls.
const STAGE: &str = "judge";

/// Why there is no judgement. The labels of the detectors are valid all the same.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    #[error(transparent)]
    Prompts(#[from] PromptsError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CallError> for JudgeError {
    fn from(error: CallError) -> Self {
        Self::Ask(AskError::Call(error))
    }
}

/// A trajectory to judge.
#[derive(Clone, Copy, Debug)]
pub struct JudgedTrajectory<'a> {
    pub record: &'a TrajectoryRecord,
    /// The observations of each turn.
    pub shown: &'a [Vec<Shown>],
    /// The first messages after each handoff.
    pub handoffs: &'a [HandoffShown],
}

/// What the model replies.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Labelling {
    /// Every failure of conduct that the steps show.
    labels: Vec<Named>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    label: Label,
    /// Steps that show it, from 1.
    steps: Vec<u32>,
    /// One sentence.
    why: String,
}

/// Loads the texts of the judge.
pub fn judge_texts(assets: &Assets) -> Result<PromptSet, PromptsError> {
    PromptSet::load(assets, FOLDER, &[SYSTEM, TRAJECTORY])
}

/// Asks the model of the role `judge` for the labels of a trajectory. `unit` is the rollout's id.
///
/// A reply is sent back once if a label has no evidence, or names a step that the model was not
/// shown. Without turns there is nothing to judge, and no request is sent.
pub async fn judge(
    models: &Models,
    texts: &PromptSet,
    unit: &str,
    trajectory: JudgedTrajectory<'_>,
) -> Result<Judgement, JudgeError> {
    let record = trajectory.record;
    let judge = judge_id(models, texts)?;
    if record.turns.is_empty() {
        return Ok(Judgement { judge, labels: BTreeMap::new() });
    }
    let rendering = render(trajectory);
    let request = request(texts, &rendering, record.end)?;
    let site = CallSite {
        role: ModelRole::Judge,
        unit: unit.to_owned(),
        stage: STAGE.to_owned(),
        round: 0,
        step: 0,
        sample: 0,
    };
    let reply = ask_checked(models, &site, &request, |reply: &Labelling| check(reply, &rendering)).await?;
    Ok(Judgement { judge, labels: evidence(reply) })
}

fn request(texts: &PromptSet, rendering: &Rendering, end: End) -> Result<ChatRequest, PromptsError> {
    let left_out =
        rendering.left_out.as_ref().map(|left| context! { first => left.start(), last => left.end() });
    let trajectory = texts.render(
        TRAJECTORY,
        context! {
            task => &rendering.task,
            steps => &rendering.steps,
            count => rendering.count,
            end => how(end),
            left_out,
        },
    )?;
    Ok(ChatRequest::of(vec![ChatMessage::system(texts.text(SYSTEM)?), ChatMessage::user(trajectory)]))
}

fn how(end: End) -> &'static str {
    match end {
        End::Submitted => "it submitted its work",
        End::StepLimit => "it had made as many steps as it could",
        End::TimedOut => "its time was up",
        End::SandboxLost | End::ResumeDiverged => "its machine was lost",
        End::ShellEnded => "its shell ended",
        End::TokenLimit => "it had used as many tokens as it could",
        End::DollarLimit => "it had cost as much as it could",
        End::ContextFull => "the conversation had become too long",
        End::ContentFiltered => "its server withheld a reply",
        End::RequestRefused => "its server refused what it had said",
        End::Imported => "in a way that is not known",
    }
}

fn check(reply: &Labelling, rendering: &Rendering) -> Result<(), String> {
    for Named { label, steps, why } in &reply.labels {
        let label = label.as_str();
        if steps.is_empty() {
            return Err(format!("`{label}` names no step that shows it"));
        }
        if let Some(step) = steps.iter().find(|step| !rendering.shows(**step)) {
            let count = rendering.count;
            return Err(match &rendering.left_out {
                Some(left) if left.contains(step) => {
                    format!("`{label}` names step {step}, which you were not shown")
                }
                Some(_) | None => format!("`{label}` names step {step}, and the steps are 1 to {count}"),
            });
        }
        if why.trim().is_empty() {
            return Err(format!("`{label}` does not say why"));
        }
    }
    Ok(())
}

/// The evidence of each label. If the reply names a label twice, both are merged.
fn evidence(reply: Labelling) -> BTreeMap<Label, Evidence> {
    let mut labels: BTreeMap<Label, Evidence> = BTreeMap::new();
    for Named { label, steps, why } in reply.labels {
        let evidence = labels.entry(label).or_default();
        // Everywhere else turns are counted from 0.
        evidence.turns.extend(steps.iter().filter_map(|step| usize::try_from(*step).ok()?.checked_sub(1)));
        evidence.turns.sort_unstable();
        evidence.turns.dedup();
        if !evidence.why.is_empty() {
            evidence.why.push(' ');
        }
        evidence.why.push_str(why.trim());
    }
    labels
}
