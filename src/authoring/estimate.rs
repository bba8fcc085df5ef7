//! Estimates what a model's run will cost before anything is asked: usual numbers by stage, and the
//! prompts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::stage::{Asks, StageCounts};
use super::stage_conversation::StageConversation;
use super::stages::STAGES;
use super::texts::folder_of;
use super::working::{Working, rel};
use super::{PromptContext, StageError};
use crate::assets::Assets;
use crate::llm::ModelRole;
use crate::model::{Difficulty, File, FileTree, StageName};

/// Usual numbers of one draft, by stage: `templates/prompts/author-NAME/usual.toml`. They were
/// measured on drafts of twelve blueprints of all domains, with a person in the model's place. Each
/// stage took one reply, plus repairs (`docs/evidence.md`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usual(BTreeMap<&'static str, UsualStage>);

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

/// Why the usual numbers cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UsualError {
    #[error("`{0}` is missing\nhint: an overriding templates folder must be complete")]
    Missing(String),
    #[error("`{path}`: {source}")]
    Unreadable {
        path: String,
        #[source]
        source: toml::de::Error,
    },
}

impl Usual {
    /// Reads the numbers of all stages that ask a model. A stage with a count of 0 in `counts` is
    /// left out.
    pub fn load(assets: &Assets, counts: &StageCounts) -> Result<Self, UsualError> {
        let asking = counts.stages().filter(|stage| stage.asks() != Asks::Nobody);
        let read = asking.map(|stage| {
            let path = format!("templates/prompts/{}/usual.toml", folder_of(stage.name()));
            let text = assets.text(&path).ok_or_else(|| UsualError::Missing(path.clone()))?;
            let usual = toml::from_str(text).map_err(|source| UsualError::Unreadable { path, source })?;
            Ok((stage.name(), usual))
        });
        Ok(Self(read.collect::<Result<_, UsualError>>()?))
    }

    /// The numbers of one stage.
    pub(super) fn of(&self, stage: &str) -> Option<UsualStage> {
        self.0.get(stage).copied()
    }
}

/// The estimate of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    pub stages: Vec<StageEstimate>,
    /// US dollars; `None` where a role has no price.
    pub usd: Option<f64>,
}

/// The estimate of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageEstimate {
    pub stage: StageName,
    pub role: ModelRole,
    pub replies: f64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    pub usd: Option<f64>,
}

/// Multiplies the usual numbers by `drafts`. `solvers` are the roles that try each draft, with
/// their attempts. `price` is in US dollars per 1M input and output tokens.
pub fn estimate(
    usual: &Usual,
    drafts: usize,
    solvers: &[(ModelRole, u32)],
    price: impl Fn(ModelRole) -> Option<(f64, f64)>,
) -> Estimate {
    let asked = |asks: Asks| match asks {
        Asks::Nobody => Vec::new(),
        Asks::Model(role) => vec![(role, 1)],
        Asks::Solvers => solvers.iter().copied().filter(|(_, attempts)| *attempts > 0).collect(),
    };
    let usual = STAGES.iter().filter_map(|stage| Some((stage, usual.of(stage.name())?)));
    let stages: Vec<_> = usual
        .flat_map(|(stage, usual)| asked(stage.asks()).into_iter().map(move |asked| (stage, usual, asked)))
        .map(|(stage, usual, (role, times))| {
            let times = f64::from(times);
            let replies = usual.replies * times * drafts as f64;
            let (input_tokens, output_tokens) =
                (replies * usual.input_tokens as f64, replies * usual.output_tokens as f64);
            let usd =
                price(role).map(|(input, output)| (input_tokens * input + output_tokens * output) / 1e6);
            let stage = StageName::of(stage.name());
            StageEstimate { stage, role, replies, input_tokens, output_tokens, usd }
        })
        .collect();
    let usd = stages.iter().map(|stage| stage.usd).sum();
    Estimate { stages, usd }
}

/// The first request of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptExample {
    pub stage: StageName,
    pub text: String,
}

/// The first request of each stage for a blueprint. A name in guillemets, e.g. «instruction»,
/// stands for the result of an earlier stage.
pub fn prompt_examples(context: &PromptContext<'_>) -> Result<Vec<PromptExample>, StageError> {
    let place = |words: &str| format!("«{words}»");
    let mut working = Working::new(place("the request"), place("the title"), Difficulty::Medium);
    working.instruction = place("the instruction");
    working.checks = place("the checks");
    working.machine = FileTree::from_iter([(rel("app/«a file»")?, File::text(place("its content")))]);
    working.solution = FileTree::from_iter([(rel("solve.sh")?, File::text(place("the reference solution")))]);
    let mut examples = Vec::new();
    for stage in context.counts.stages() {
        let Some(prompt) = stage.prompt(context, &working) else { continue };
        let conversation = StageConversation::open(context.texts, stage, prompt)?;
        examples.push(PromptExample { stage: StageName::of(stage.name()), text: conversation.text() });
    }
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_products() {
        let of = |replies, input_tokens, output_tokens| UsualStage { replies, input_tokens, output_tokens };
        let usual = Usual([("checks", of(2.0, 1000, 500)), ("blind", of(10.0, 100, 10))].into());
        let check =
            |solvers: &[(ModelRole, u32)], price: Option<(f64, f64)>, replies: f64, usd: Option<f64>| {
                let estimate = estimate(&usual, 3, solvers, |_| price);
                assert_eq!(estimate.stages.iter().map(|stage| stage.replies).sum::<f64>(), replies);
                assert_eq!(estimate.usd, usd);
            };
        check(&[(ModelRole::Solver, 1)], None, 36.0, None);
        // 6 replies with 1,000 tokens of input and 500 of output, and 60 replies with 100 and 10.
        check(&[(ModelRole::Solver, 2)], Some((250.0, 500.0)), 66.0, Some(1.5 + 1.5 + 1.5 + 0.3));
        check(&[(ModelRole::Solver, 1), (ModelRole::Weak, 1)], Some((250.0, 500.0)), 66.0, Some(4.8));
        check(&[(ModelRole::Solver, 0), (ModelRole::Weak, 0)], Some((1000.0, 0.0)), 6.0, Some(6.0));
    }
}
