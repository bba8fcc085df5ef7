//! `rollout`: runs agents on tasks of any origin.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Semaphore;

use super::args_rollout::{AdversaryArg, ArmArg, JudgeArg, RolloutArgs, ScaffoldArg};
use super::config::{Config, Format, cores, export_options, jobs, run_to_write, runtime, sweep};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::interrupt::Interrupts;
use super::progress::Progress;
use super::{models, open, paths, say};
use crate::agent::terminal::Wake;
use crate::agent::{Dollars, Logprobs, ScaffoldOptions, StepLimits};
use crate::assets::Assets;
use crate::llm::{EndpointSettings, ModelRole, Models, RoleSettings};
use crate::model::{Actor, AdversaryView, Arm, File, ModelActor};
use crate::pipeline::{
    CampaignContext, CampaignOptions, CampaignReport, Capacity, Event, Fault, Judging, PipelineAssets,
    REVOKED, Solver, Stop, campaign, export_harbor_job, export_store, gather_groups, publish_report,
    publish_rollouts, report_store,
};
use crate::rollout::{AgentConfig, Overflow, rollout_id};
use crate::store::{Store, publish_file};
use crate::verify::{EngineOnDemand, TrialRunner};

pub(super) fn rollout(config: &Config, args: &RolloutArgs) -> Outcome {
    let started = Instant::now();
    let dirs = if args.tasks.is_empty() { own_tasks(&args.out)? } else { paths::tasks(&args.tasks)? };
    if let Some(jobs) = &args.harbor_jobs {
        paths::check_output_folder(jobs, "--harbor-jobs")?;
    }
    paths::check_output_folder(&args.out, "--out")?;
    let assets = config.pipeline_assets()?;
    let store = run_to_write(&args.out)?;
    let report = runtime()?.block_on(drive(config, &assets, &store, &dirs, args))?;
    for group in gather_groups(&store)? {
        publish_rollouts(&store, &group?.rollouts).map_err(Fault::from)?;
    }
    revoke(&store, &report)?;
    let results = report_store(&store)?;
    publish_report(&store, &results)?;
    if let Some(jobs) = &args.harbor_jobs {
        let name = args.out.file_name().unwrap_or(args.out.as_os_str()).to_string_lossy();
        let job = export_harbor_job(&store, jobs, &name).map_err(|error| Failure::new(Status::Io, error))?;
        say::note(format!("{} trials written to `{}`", job.trials, job.path.display()));
    }
    let summary = export_store(&store, &export_options(&args.data, &args.out)?)?;
    let passed = report.members.iter().filter(|member| member.outcome == crate::model::Outcome::Pass).count();
    let left_open = report.faults.iter().filter(|(_, fault)| open::is_rollout_left_open(fault)).count();
    match config.format {
        Format::Json => say::json(&json!({
            "left_open": left_open,
            "rollouts": report.members.iter().map(|member| json!({
                "task": member.task, "id": rollout_id(&member.key), "outcome": member.outcome,
            })).collect::<Vec<_>>(),
            "faults": report.faults.iter().map(|(place, fault)| json!({
                "place": place, "message": fault.to_string(), "left_open": open::is_rollout_left_open(fault),
            })).collect::<Vec<_>>(),
            "out_of_budget": report.stop == Some(Stop::OutOfBudget),
            "interrupted": report.stop == Some(Stop::Interrupted),
            "export": summary,
            "seconds": started.elapsed().as_secs_f64(),
        }))?,
        Format::Text => {
            for member in &report.members {
                say::line(format!(
                    "{}  {:<12} {}",
                    rollout_id(&member.key),
                    outcome(member.outcome),
                    member.task
                ))?;
            }
            for (dir, key) in &report.revoked {
                let id = rollout_id(key);
                say::line(format!(
                    "revoked: rollout {id} passes `{}` without doing the work",
                    dir.display()
                ))?;
            }
            say::line(format!(
                "{} rollouts of {} tasks in {:.1} s: {passed} passed; {} without a result",
                report.members.len(),
                dirs.len(),
                started.elapsed().as_secs_f64(),
                report.faults.len() - left_open
            ))?;
            if left_open > 0 {
                say::line(open::summary(left_open))?;
            }
        }
    }
    for (place, fault) in &report.faults {
        let what = if open::is_rollout_left_open(fault) { "left open" } else { "no result" };
        say::note(format!("{what}: {place}: {fault}"));
    }
    Ok(status(&report))
}

fn outcome(outcome: crate::model::Outcome) -> String {
    serde_json::to_value(outcome).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn status(report: &CampaignReport) -> Status {
    if let Some(stop) = report.stop {
        open::stop_status(stop)
    } else if !report.faults.is_empty() {
        open::combined(report.faults.iter().map(|(_, error)| open::rollout_status(error)))
    } else if report.revoked.is_empty() {
        Status::Ok
    } else {
        Status::Failed
    }
}

async fn drive(
    config: &Config,
    assets: &PipelineAssets,
    store: &Store,
    dirs: &[PathBuf],
    args: &RolloutArgs,
) -> Result<CampaignReport, Failure> {
    let interrupts = Interrupts::listen()?;
    let engine = EngineOnDemand::default();
    let slots = Semaphore::new(jobs(None) as usize);
    let runner = TrialRunner { engine: &engine, store, slots: &slots, drain: &interrupts.drain };
    let (models, solver) = solver(args, &config.assets()?, store, &runner)?;
    let trial = args.limits.trial_seconds.map(Duration::from_secs);
    let judging = match (args.judge, &models) {
        (JudgeArg::None, _) => Judging::Rules,
        (JudgeArg::Model, Some(models)) => Judging::Model(models.clone()),
        (JudgeArg::Model, None) => {
            return Err(Failure::usage(
                "--judge model needs a scaffold in which a model acts\nhint: `termsmith judge` labels other rollouts afterwards",
            ));
        }
    };
    let options = CampaignOptions { solver, attempts: args.attempts, fork_at: args.fork_at, trial, judging };
    let capacity = Capacity::new(jobs(args.jobs), crate::doctor::memory_mb(), cores());
    let containers = sweep(&engine).await;
    let rollouts = dirs.len() * args.attempts as usize;
    let progress = (config.format == Format::Text).then(|| Progress::new(rollouts, "rollouts"));
    let show = |event: Event| {
        if let Some(progress) = &progress {
            progress.show(&event);
        }
    };
    show(Event::Swept { containers });
    let context = CampaignContext { runner: &runner, assets, capacity: &capacity };
    let report = tokio::select! {
        report = campaign(context, dirs, &options, &show) => Some(report),
        () = interrupts.kill.cancelled() => None,
    };
    drop(progress);
    if let Some(models) = &models {
        models::report(models);
    }
    if let Some(engine) = engine.connected() {
        engine.close().await;
    }
    report.ok_or_else(|| Failure::new(Status::Interrupted, Fault::Drained))
}

/// The tasks of a run folder, for a command line that names none.
fn own_tasks(out: &Path) -> Result<Vec<PathBuf>, Failure> {
    let tasks = out.join("tasks");
    if tasks.is_dir() {
        return paths::tasks(&[tasks]);
    }
    Err(Failure::usage(format!(
        "no tasks are named, and the run folder `{}` has none\nhint: name task directories or a folder of them, as in \
         `termsmith rollout out/demo/tasks`, or give a folder of `termsmith run` as --out",
        out.display()
    )))
}

/// The solver that the arguments name, and its models.
fn solver(
    args: &RolloutArgs,
    assets: &Assets,
    store: &Store,
    runner: &TrialRunner<'_>,
) -> Result<(Option<Arc<Models>>, Solver), Failure> {
    let entry = match args.scaffold {
        ScaffoldArg::Scripted => return Ok((None, Solver::Scripted)),
        ScaffoldArg::Oracle => return Ok((None, Solver::Reference(Actor::Oracle))),
        ScaffoldArg::Nop => return Ok((None, Solver::Reference(Actor::Nop))),
        ScaffoldArg::Model(entry) => entry,
    };
    let wake = if args.early_wake { Wake::WhenDone } else { Wake::Never };
    let options = ScaffoldOptions { wake, command: args.agent_command.clone() };
    let scaffold = (entry.load)(assets, &options).map_err(Failure::usage)?;
    let models = models::models(&args.model, store, runner.drain)?;
    let role = if args.adversary.is_some() { ModelRole::Adversary } else { ModelRole::Expert };
    let arm = arm(args.arm);
    let mut roles = vec![role];
    if matches!(arm, Arm::Plan | Arm::PlanInteractive) {
        roles.push(ModelRole::Planner);
    }
    if matches!(arm, Arm::Interactive | Arm::PlanInteractive) {
        roles.push(ModelRole::Mentor);
    }
    if args.judge == JudgeArg::Model {
        roles.push(ModelRole::Judge);
    }
    // Checked before any work begins.
    for role in roles {
        models.ready(role)?;
    }
    let (settings, endpoint) = models.settings(role)?;
    let actor = ModelActor {
        model: settings.model.clone(),
        endpoint: settings.endpoint.clone(),
        arm,
        adversary: args.adversary.map(|sight| match sight {
            AdversaryArg::Blind => AdversaryView::Blind,
            AdversaryArg::Tests => AdversaryView::Tests,
        }),
    };
    let limits = StepLimits {
        turns: args.limits.max_steps,
        command: Duration::from_secs(args.limits.command_seconds),
        // Replaced by each task's own limit, unless --trial-seconds is given.
        total: Duration::ZERO,
        output_bytes: args.limits.output_bytes,
        reply_tokens: Some(settings.max_tokens),
        tokens: args.limits.trial_tokens,
        dollars: dollars(args, settings, endpoint)?,
        context: endpoint.max_context.map(|most| most.saturating_sub(settings.max_tokens.into())),
    };
    let agent_config = AgentConfig {
        scaffold,
        role,
        actor,
        limits,
        rounds: args.rounds,
        logprobs: if args.model.logprobs { Logprobs::Ask } else { Logprobs::No },
        overflow: if args.summarise { Overflow::Summarised } else { Overflow::Ends },
        fork: None,
    };
    let models = Arc::new(models);
    Ok((Some(models.clone()), Solver::Model { models, agent: Box::new(agent_config) }))
}

/// The bound in dollars of one rollout, with the prices that the settings name.
fn dollars(
    args: &RolloutArgs,
    role: &RoleSettings,
    endpoint: &EndpointSettings,
) -> Result<Option<Dollars>, Failure> {
    let Some(limit) = args.limits.trial_usd else { return Ok(None) };
    let read = role.usd_per_1m_input_tokens.or(endpoint.usd_per_1m_input_tokens);
    let written = role.usd_per_1m_output_tokens.or(endpoint.usd_per_1m_output_tokens);
    match (read, written) {
        (Some(usd_per_1m_input_tokens), Some(usd_per_1m_output_tokens)) => {
            Ok(Some(Dollars { limit, usd_per_1m_input_tokens, usd_per_1m_output_tokens }))
        }
        _ => Err(Failure::usage(format!(
            "the model has no price, so --trial-usd cannot be enforced\nhint: set usd_per_1m_input_tokens and usd_per_1m_output_tokens \
             of endpoint `{}`",
            role.endpoint
        ))),
    }
}

fn arm(arm: ArmArg) -> Arm {
    match arm {
        ArmArg::Base => Arm::Base,
        ArmArg::SelfCorrection => Arm::SelfCorrection,
        ArmArg::Plan => Arm::Plan,
        ArmArg::Interactive => Arm::Interactive,
        ArmArg::PlanInteractive => Arm::PlanInteractive,
        ArmArg::Fork => Arm::Fork,
    }
}

/// Marks the certificate of each task whose verifier was deceived as revoked.
fn revoke(store: &Store, report: &CampaignReport) -> Result<(), Failure> {
    for (dir, key) in &report.revoked {
        if !dir.join("certificate.json").exists() {
            continue;
        }
        let text = json!({ "version": 1, "rollout": rollout_id(key), "why": "an adversary passed" });
        let file = File::text(format!("{text:#}\n"));
        publish_file(&store.dir().scratch(), &dir.join(REVOKED), &file)?;
    }
    Ok(())
}

/// Why the certificate in `dir` is revoked, if it is.
pub(super) fn revocation(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join(REVOKED)).ok()?;
    let rollout = serde_json::from_str::<serde_json::Value>(&text).ok();
    let id = rollout.as_ref().and_then(|text| text.get("rollout")?.as_str()).unwrap_or("unknown");
    Some(format!("revoked: rollout {id} passes without doing the work"))
}
