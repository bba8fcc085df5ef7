//! What a run by a model will ask and cost, before anything is asked: usual numbers by stage, and the prompts.

use std::collections::BTreeMap;

use minijinja::context;
use serde::Deserialize;

use super::anchor::Anchor;
use super::idea::system_values;
use super::stage_conversation::{StageConversation, role};
use super::working::{Working, rel};
use super::{PromptContext, StageError, write};
use crate::assets::Assets;
use crate::llm::ModelRole;
use crate::model::{AuthorStage, Difficulty, File, FileTree};

/// The file of usual numbers.
const USUAL: &str = "templates/prompts/usual.toml";

/// What a draft usually takes, by stage (`templates/prompts/usual.toml`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Usual {
    pub version: u32,
    #[serde(flatten)]
    pub stages: BTreeMap<AuthorStage, UsualStage>,
}

/// One stage of [`Usual`].
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsualStage {
    /// Replies per draft, repairs included.
    pub replies: f64,
    /// Tokens of one request.
    pub input_tokens: u64,
    /// Tokens of one reply.
    pub output_tokens: u64,
}

/// A file of usual numbers that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UsualError {
    #[error("`{USUAL}` is missing")]
    Missing,
    #[error("`{USUAL}`: {0}")]
    Unreadable(#[from] toml::de::Error),
}

impl Usual {
    /// Reads the numbers.
    pub fn load(assets: &Assets) -> Result<Self, UsualError> {
        let text = assets.text(USUAL).ok_or(UsualError::Missing)?;
        Ok(toml::from_str(text)?)
    }
}

/// What is expected of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    pub stages: Vec<StageEstimate>,
    /// US dollars; `None` where a role has no price.
    pub usd: Option<f64>,
}

/// What is expected of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageEstimate {
    pub stage: AuthorStage,
    pub role: ModelRole,
    pub replies: f64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    pub usd: Option<f64>,
}

/// Multiplies what is usual by `drafts`; each is tried by `solvers`, which are roles and numbers of attempts. `price` is in US dollars per
/// 1M input and output tokens.
pub fn estimate(
    usual: &Usual,
    drafts: usize,
    solvers: &[(ModelRole, u32)],
    price: impl Fn(ModelRole) -> Option<(f64, f64)>,
) -> Estimate {
    let times = |stage: AuthorStage| match stage {
        AuthorStage::Blind => solvers.iter().copied().filter(|(_, attempts)| *attempts > 0).collect(),
        _ => vec![(role(stage), 1)],
    };
    let stages: Vec<_> = usual
        .stages
        .iter()
        .flat_map(|(stage, usual)| times(*stage).into_iter().map(move |times| (stage, usual, times)))
        .map(|(stage, usual, (role, times))| {
            let times = f64::from(times);
            let replies = usual.replies * times * drafts as f64;
            let (input_tokens, output_tokens) =
                (replies * usual.input_tokens as f64, replies * usual.output_tokens as f64);
            let usd =
                price(role).map(|(input, output)| (input_tokens * input + output_tokens * output) / 1e6);
            StageEstimate { stage: *stage, role, replies, input_tokens, output_tokens, usd }
        })
        .collect();
    let usd = stages.iter().map(|stage| stage.usd).sum();
    Estimate { stages, usd }
}

/// The first request of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptExample {
    pub stage: AuthorStage,
    pub text: String,
}

/// The first request of each stage for a blueprint. Names in guillemets stand for what earlier stages will have written.
pub fn prompt_examples(context: &PromptContext<'_>) -> Result<Vec<PromptExample>, StageError> {
    let place = |words: &str| format!("«{words}»");
    let mut working = Working::begun(place("the request"), place("the title"), Difficulty::Medium);
    working.instruction = place("the instruction");
    working.checks = place("the checks");
    working.machine = FileTree::from_iter([(rel("app/«a file»")?, File::text(place("its content")))]);
    working.solution = FileTree::from_iter([(rel("solve.sh")?, File::text(place("the reference solution")))]);
    let mut examples = Vec::new();
    for stage in AuthorStage::ALL {
        let conversation = match stage {
            AuthorStage::Idea => {
                let system = system_values(context.spec, context.blueprint, &Anchor::default());
                let taken: [&str; 0] = [];
                StageConversation::open(context.texts, stage, system, context! { taken })?
            }
            AuthorStage::Feasibility => {
                let request = &working.request;
                StageConversation::open(context.texts, stage, context! {}, context! { request })?
            }
            AuthorStage::Screening | AuthorStage::Blind => continue,
            AuthorStage::Mistakes if context.mistakes == 0 => continue,
            AuthorStage::Environment
            | AuthorStage::Instruction
            | AuthorStage::Solution
            | AuthorStage::Checks
            | AuthorStage::Attacks
            | AuthorStage::Clauses
            | AuthorStage::Mistakes
            | AuthorStage::Configuration => write::open(context, stage, &working)?,
        };
        examples.push(PromptExample { stage, text: conversation.text() });
    }
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_products() {
        let usual = "version = 1\n[checks]\nreplies = 2.0\ninput_tokens = 1000\noutput_tokens = 500\n[blind]\nreplies = 10.0\ninput_tokens = 100\noutput_tokens = 10";
        let usual: Usual = toml::from_str(usual).unwrap();
        let check =
            |solvers: &[(ModelRole, u32)], price: Option<(f64, f64)>, replies: f64, usd: Option<f64>| {
                let estimate = estimate(&usual, 3, solvers, |_| price);
                assert_eq!(estimate.stages.iter().map(|stage| stage.replies).sum::<f64>(), replies);
                assert_eq!(estimate.usd, usd);
            };
        check(&[(ModelRole::Solver, 1)], None, 36.0, None);
        // 6 replies of 1,000 and 500 tokens, and 60 of 100 and 10.
        check(&[(ModelRole::Solver, 2)], Some((250.0, 500.0)), 66.0, Some(1.5 + 1.5 + 1.5 + 0.3));
        check(&[(ModelRole::Solver, 1), (ModelRole::Weak, 1)], Some((250.0, 500.0)), 66.0, Some(4.8));
        check(&[(ModelRole::Solver, 0), (ModelRole::Weak, 0)], Some((1000.0, 0.0)), 6.0, Some(6.0));
    }

    #[test]
    fn usual_numbers_are_known_for_every_stage_that_asks() {
        let usual = Usual::load(&Assets::embedded()).unwrap();
        let asking = AuthorStage::ALL.into_iter().filter(|stage| *stage != AuthorStage::Screening);
        assert_eq!(usual.stages.keys().copied().collect::<Vec<_>>(), asking.collect::<Vec<_>>());
    }
}
