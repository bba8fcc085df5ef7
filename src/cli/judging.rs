//! `judge`: has a model label existing rollouts.

use std::time::Instant;

use serde_json::json;

use super::args_rollout::JudgeArgs;
use super::config::{Config, Format, existing_run_locked, export_options, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::interrupt::Interrupts;
use super::{exported, models, open, say};
use crate::llm::ModelRole;
use crate::pipeline::{
    Fault, JudgingReport, Stop, export_store, gather_rollouts, judge_store, publish_report, publish_rollouts,
    report_store,
};
use crate::store::Store;

pub(super) fn judge(config: &Config, args: &JudgeArgs) -> Outcome {
    let started = Instant::now();
    let store = existing_run_locked(&args.out)?;
    let assets = config.pipeline_assets()?;
    let report = runtime()?.block_on(drive(&store, &assets.judge, args))?;
    for rollouts in gather_rollouts(&store)? {
        publish_rollouts(&store, &rollouts?).map_err(Fault::from)?;
    }
    publish_report(&store, &report_store(&store)?)?;
    let summary = export_store(&store, &export_options(&args.data, &args.out)?)?;
    exported::note(&summary);
    match config.format {
        Format::Json => say::json(&json!({
            "judged": report.judged,
            "known": report.known,
            "faults": report.faults.iter().map(|(rollout, fault)| json!({
                "rollout": rollout, "message": fault.to_string(),
            })).collect::<Vec<_>>(),
            "out_of_budget": report.stop == Some(Stop::OutOfBudget),
            "interrupted": report.stop == Some(Stop::Interrupted),
            "export": summary,
            "seconds": started.elapsed().as_secs_f64(),
        }))?,
        Format::Text => say::line(format!(
            "{} rollouts judged in {:.1} s, {} judged before, {} labelled by detectors alone",
            report.judged,
            started.elapsed().as_secs_f64(),
            report.known,
            report.faults.len()
        ))?,
    }
    for (rollout, fault) in &report.faults {
        say::note(format!("not judged: {rollout}: {fault}"));
    }
    Ok(status(&report))
}

fn status(report: &JudgingReport) -> Status {
    match report.stop {
        Some(stop) => open::stop_status(stop),
        None if report.faults.is_empty() => Status::Ok,
        None => Status::TryAgain,
    }
}

async fn drive(
    store: &Store,
    texts: &crate::prompts::PromptSet,
    args: &JudgeArgs,
) -> Result<JudgingReport, Failure> {
    let interrupts = Interrupts::listen()?;
    let models = models::models(&args.model, Some(ModelRole::Judge), store, &interrupts.drain)?;
    models.ready(ModelRole::Judge)?;
    let report = tokio::select! {
        report = judge_store(store, &models, texts, &interrupts.drain) => Some(report),
        () = interrupts.kill.cancelled() => None,
    };
    models::report(&models);
    match report {
        Some(report) => Ok(report?),
        None => Err(Failure::new(Status::Interrupted, Fault::Drained)),
    }
}
