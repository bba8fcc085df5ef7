//! `run --estimate`: prints the expected calls, tokens and dollars of a model's run, and its
//! prompts. Nothing is asked or started.

use std::fmt::Write as _;

use serde_json::json;

use super::args::RunArgs;
use super::config::{Config, Format};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::{models, run, say};
use crate::authoring::{
    Estimate, PromptContext, StageEstimate, StageTexts, Usual, estimate, prompt_examples,
};
use crate::domain::Plan;
use crate::llm::ModelRole;
use crate::model::TaskAuthor;
use crate::pipeline::{Fault, PipelineAssets};

/// Prints the estimate for this run's part of `plan`. `blind` is the number of blind solvers of a
/// task.
pub(super) fn print(
    config: &Config,
    assets: &PipelineAssets,
    args: &RunArgs,
    plan: &Plan,
    blind: u32,
) -> Outcome {
    let own = config.assets()?;
    let counts = &args.stages.counts;
    let usual = Usual::load(&own, counts)?;
    let texts = StageTexts::load(&own)?;
    let shard = run::shard(args)?;
    let drafts: Vec<_> = plan.shard(shard).filter(|one| one.author == TaskAuthor::Model).collect();
    let Some(blueprint) = drafts.first() else {
        return Err(Failure::usage(
            "none of these tasks is written by a model\nhint: --author model, mixed or fill; and a --shard that has tasks",
        ));
    };
    // Without settings there are no prices, but there is still an estimate of tokens.
    let settings = models::settings(&args.model, None)?;
    let price = |role: ModelRole| {
        let settings = settings.as_ref()?;
        let model = settings.roles.get(&role)?;
        let endpoint = settings.endpoints.get(&model.endpoint)?;
        model.usd_per_1m_tokens(endpoint)
    };
    let solvers =
        [(ModelRole::Solver, blind + args.difficulty_attempts), (ModelRole::Weak, args.difficulty_attempts)];
    let expected = estimate(&usual, drafts.len(), &solvers, price);
    let spec = assets.domains.get(&blueprint.domain);
    let spec = spec.ok_or_else(|| Failure::usage(format!("no domain `{}`", blueprint.domain)))?;
    let context = PromptContext { texts: &texts, kit: &assets.kit, spec, blueprint, counts, recording: None };
    let prompts = prompt_examples(&context).map_err(Fault::from)?;
    if config.format == Format::Json {
        let stages = expected.stages.iter().map(stage_json).collect::<Vec<_>>();
        let prompts = prompts.iter().map(|one| json!({ "stage": one.stage, "prompt": one.text }));
        say::json(&json!({
            "version": 1, "drafts": drafts.len(), "stages": stages, "usd": expected.usd,
            "prompts": prompts.collect::<Vec<_>>(),
        }))?;
        return Ok(Status::Ok);
    }
    let mut text = table(&expected, drafts.len());
    if args.difficulty_attempts > 0 {
        text.push_str("\nA draft that is rewritten to be harder or easier (--difficulty-attempts) costs as much again, twice at most.\n");
    }
    for one in &prompts {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n===== {} =====\n\n{}", one.stage.as_str(), one.text);
    }
    say::text(&text)?;
    Ok(Status::Ok)
}

fn stage_json(stage: &StageEstimate) -> serde_json::Value {
    let StageEstimate { stage, role, replies, input_tokens, output_tokens, usd } = stage;
    json!({
        "stage": stage, "role": role, "replies": replies, "input_tokens": input_tokens,
        "output_tokens": output_tokens, "usd": usd,
    })
}

fn table(expected: &Estimate, drafts: usize) -> String {
    let dollars = |usd: Option<f64>| usd.map_or_else(|| "-".to_owned(), |usd| format!("{usd:.2}"));
    let mut text =
        format!("{drafts} drafts, at what a draft usually takes (templates/prompts/author-*/usual.toml)\n\n");
    let mut row = |cells: [&str; 6]| {
        let [stage, role, replies, input, output, usd] = cells;
        let _ = writeln!(text, "{stage:<14} {role:<10} {replies:>8} {input:>12} {output:>12} {usd:>10}");
    };
    row(["stage", "role", "replies", "tokens in", "tokens out", "dollars"]);
    let mut sum = [0.0; 3];
    for stage in &expected.stages {
        let StageEstimate { stage, role, replies, input_tokens, output_tokens, usd } = stage;
        let counts = [*replies, *input_tokens, *output_tokens];
        sum = std::array::from_fn(|at| sum[at] + counts[at]);
        let [replies, input, output] = counts.map(|count| format!("{count:.0}"));
        row([stage.as_str(), role.as_str(), &replies, &input, &output, &dollars(*usd)]);
    }
    let [replies, input, output] = sum.map(|count| format!("{count:.0}"));
    row(["all", "", &replies, &input, &output, &dollars(expected.usd)]);
    text.push_str("\nThese are replies with --oneshot. Without it, each command that a stage tries out is one more reply.\n");
    if expected.usd.is_none() {
        text.push_str("\nno dollars: a role has no price (usd_per_1m_input_tokens, usd_per_1m_output_tokens in the settings)\n");
    }
    text
}
