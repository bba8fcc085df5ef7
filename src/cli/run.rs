//! `run`: the whole pipeline.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Instant;

use super::args::{AuthorArg, RunArgs, Selection};
use super::authors::{AuthorOptions, mode, model_author};
use super::config::{Config, Format, export_options, jobs, run_to_write, runtime, sweep};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::interrupt::Interrupts;
use super::progress::Progress;
use super::{card_command, estimate, exported, former, models, open, paths, say, summary};
use crate::domain::{Authors, Domains, Plan, Shard, plan_by};
use crate::harbor::Publication;
use crate::model::Seed;
use crate::pipeline::{
    Event, Fault, PipelineAssets, RunOptions, RunReport, UnitOptions, Upcoming, audit_store, publish_audit,
    run as run_pipeline,
};
use crate::store::Store;
use crate::verify::EngineOnDemand;

pub(super) fn run(config: &Config, args: &RunArgs) -> Outcome {
    let writes = args.author != AuthorArg::Recipe;
    let blind = args.blind.unwrap_or(u32::from(writes));
    models::check_called(&args.model, writes || blind > 0, "--author model or --blind K")?;
    let assets = config.pipeline_assets()?;
    let plan = planned(&assets, &args.selection, args.author.into())?;
    if args.estimate {
        return estimate::print(config, &assets, args, &plan, blind);
    }
    paths::check_output_folder(&args.out, "--out")?;
    let author = AuthorOptions {
        writes,
        blind,
        difficulty_attempts: if writes { args.difficulty_attempts } else { 0 },
        mode: mode(args.oneshot),
        counts: args.stages.counts.clone(),
        recordings: BTreeMap::new(),
    };
    run_plan(config, &assets, args, &plan, author)
}

/// Runs `plan` with the options of `args`. Selection and authors are the plan's, not those in
/// `args`.
pub(super) fn run_plan(
    config: &Config,
    assets: &PipelineAssets,
    args: &RunArgs,
    plan: &Plan,
    author: AuthorOptions,
) -> Outcome {
    let started = Instant::now();
    let shard = shard(args)?;
    let store = run_to_write(&args.out)?;
    former::note(&args.out, &store, Upcoming::Plan(&plan.shard(shard).collect::<Vec<_>>()))?;
    let mut options = RunOptions {
        shard,
        unit: UnitOptions {
            attempts: args.attempts,
            scaffolds: args.scaffolds.mix.clone(),
            model: None,
            rigor: args.rigor.into(),
            publication: Publication {
                image_prefix: args.image_prefix.clone(),
                verifier: args.verifier_mode.into(),
            },
        },
        slots: jobs(args.jobs),
        export: export_options(&args.data, &args.out)?,
    };
    // `import cast` plans its own tasks, so its count is 0.
    if args.selection.count > 0 {
        options.export.command = Some(card_command::of_run(args, &config.overrides));
    }
    let report = runtime()?.block_on(async {
        let interrupts = Interrupts::listen()?;
        options.unit.model = model_author(config, &args.model, author, &store, &interrupts.drain)?;
        let engine = EngineOnDemand::new(config.engine);
        drive(&engine, assets, &store, plan, &options, &interrupts).await
    })?;
    let audit = audit_store(assets, &store)?;
    publish_audit(&store, &audit)?;
    report.export.iter().for_each(exported::note);
    let status = status(&report);
    match config.format {
        Format::Json => say::json(&summary::json(&report, started.elapsed()))?,
        Format::Text => {
            let cost = summary::screening(&report);
            if !cost.kinds.is_empty() {
                say::note(format!("screening  {}", cost.lines().join("\n           ")));
            }
            let style = summary::Style { colour: std::io::stdout().is_terminal() };
            say::styled(&summary::text(&args.out, plan, &report, &audit, started.elapsed(), style))?;
        }
    }
    Ok(status)
}

/// The part of the plan that this command makes.
pub(super) fn shard(args: &RunArgs) -> Result<Shard, Failure> {
    args.shard.as_deref().map_or(Ok(Shard::WHOLE), |text| text.parse().map_err(Failure::usage))
}

/// The plan of a selection.
pub(super) fn planned(
    assets: &PipelineAssets,
    selection: &Selection,
    authors: Authors,
) -> Result<Plan, Failure> {
    let domains = Domains::named(&assets.domains, &selection.only)
        .map_err(|error| Failure::new(Status::Usage, error))?;
    let recipes = assets.recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
    Ok(plan_by(&assets.domains, &recipes, Seed(selection.seed), selection.count, &domains, authors))
}

async fn drive(
    engine: &EngineOnDemand,
    assets: &PipelineAssets,
    store: &Store,
    plan: &Plan,
    options: &RunOptions,
    interrupts: &Interrupts,
) -> Result<RunReport, Failure> {
    let progress = Progress::new(plan.shard(options.shard).count(), "tasks");
    if let Some(model) = &options.unit.model {
        progress.meter(model.models.clone());
    }
    let show = |event: Event| progress.show(&event);
    // An earlier run may have been killed. If no engine answers, the first unit that needs one
    // reports it.
    show(Event::Swept { containers: sweep(engine).await });
    let report = tokio::select! {
        report = run_pipeline(assets, store, engine, plan, options, &interrupts.drain, &show) => Some(report),
        () = interrupts.kill.cancelled() => None,
    };
    drop(progress);
    if let Some(model) = &options.unit.model {
        models::report(&model.models);
    }
    if let Some(engine) = engine.connected() {
        engine.close().await;
    }
    match report {
        Some(report) => Ok(report?),
        None => Err(Failure::new(Status::Interrupted, Fault::Drained)),
    }
}

fn status(report: &RunReport) -> Status {
    let unreachable = report.faults.iter().any(|(_, fault)| open::is_unreachable(fault));
    // A spent budget interrupts the other units, so these get its status too.
    let is_stopped = report.faults.iter().any(|(_, fault)| fault.ends_everything());
    if report.engine_gone || (report.ended.is_empty() && unreachable) {
        Status::NoEngine
    } else if report.interrupted && !is_stopped {
        Status::Interrupted
    } else {
        let faults = report.faults.iter().map(|(_, fault)| open::unit_status(fault));
        let scripts = report.ended.iter().flat_map(|ended| &ended.script_faults);
        open::combined(faults.chain(scripts.map(|_| Status::BadInput)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentError;
    use crate::export::fixture::blueprint;
    use crate::llm::{BudgetExceeded, CallError, ModelRole};
    use crate::rollout::RolloutError;

    /// Whether other units were interrupted.
    #[derive(Clone, Copy)]
    enum Others {
        Ended,
        Interrupted,
    }

    #[test]
    fn the_cause_of_an_interruption_is_the_status() {
        let check = |call: Option<CallError>, others: Others, expect: Status| {
            let fault = call.map(|call| Fault::from(RolloutError::Agent(AgentError::Call(call))));
            let report = RunReport {
                planned: 2,
                ended: Vec::new(),
                unmade: Vec::new(),
                faults: fault.into_iter().map(|fault| (blueprint("games", 0), fault)).collect(),
                export: None,
                interrupted: matches!(others, Others::Interrupted),
                engine_gone: false,
            };
            assert_eq!(status(&report), expect, "{:?}", report.faults);
        };
        let budget =
            || Some(CallError::Budget(BudgetExceeded::Tokens { spent: 9, wanted: 2, cap: 10, usual: 2 }));
        let unset = || Some(CallError::NoRole { role: ModelRole::Solver });
        check(None, Others::Ended, Status::Ok);
        check(None, Others::Interrupted, Status::Interrupted);
        check(budget(), Others::Ended, Status::TryAgain);
        check(budget(), Others::Interrupted, Status::TryAgain);
        check(unset(), Others::Interrupted, Status::BadInput);
    }
}
