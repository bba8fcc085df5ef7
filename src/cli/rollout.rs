//! `rollout`: runs agents on tasks of any origin.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::args_agent::Shares;
use super::args_rollout::{AdversaryArg, ArmArg, JudgeArg, RolloutArgs, ScaffoldArg};
use super::beside::write_beside;
use super::config::{Config, Format, cores, export_options, jobs, run_to_write, runtime, sweep};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::interrupt::Interrupts;
use super::progress::Progress;
use super::{agent, exported, former, models, open, paths, say};
use crate::agent::catalog::AgentName;
use crate::agent::terminal::Wake;
use crate::agent::{Dollars, Driver, Logprobs, SCAFFOLDS, Scaffold, ScaffoldOptions, StepLimits};
use crate::folder::read_file;
use crate::llm::{EndpointSettings, ModelRole, Models, RoleSettings};
use crate::model::{Actor, AdversaryView, Arm, File, Key, ModelActor, ProgramVersion, Scores};
use crate::pipeline::{
    Agents, CampaignContext, CampaignOptions, CampaignReport, Capacity, Event, Fault, Judging,
    PipelineAssets, REVOKED, Solver, Stop, Upcoming, campaign, export_harbor_job, export_store,
    gather_groups, publish_report, publish_rollouts, report_store,
};
use crate::rollout::{AgentConfig, Overflow, Preflight, rollout_id};
use crate::store::{Store, StoreError};
use crate::verify::{EngineOnDemand, Slots, TrialRunner, Watcher};

/// Maximum bytes of a revocation. It names one rollout.
const LARGEST_REVOCATION: u64 = 64 << 10;

pub(super) fn rollout(config: &Config, args: &RolloutArgs) -> Outcome {
    let started = Instant::now();
    check_options(args)?;
    let dirs = if args.tasks.is_empty() { own_tasks(&args.out)? } else { paths::tasks(&args.tasks)? };
    if let Some(jobs) = &args.harbor_jobs {
        paths::check_output_folder(jobs, "--harbor-jobs")?;
    }
    paths::check_output_folder(&args.out, "--out")?;
    let assets = config.pipeline_assets()?;
    let store = run_to_write(&args.out)?;
    let names = dirs.iter().filter_map(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
    former::note(&args.out, &store, Upcoming::Rollouts(&names.collect()))?;
    let report = runtime()?.block_on(drive(config, &assets, &store, &dirs, args))?;
    for group in gather_groups(&store)? {
        publish_rollouts(&store, &group?.rollouts).map_err(Fault::from)?;
    }
    let unmarked = revoke(&report.revoked);
    let results = report_store(&store)?;
    publish_report(&store, &results)?;
    if let Some(jobs) = &args.harbor_jobs {
        let out = paths::named(&args.out);
        let name = out.file_name().unwrap_or(out.as_os_str()).to_string_lossy();
        let job = export_harbor_job(&store, jobs, &name).map_err(|error| Failure::new(Status::Io, error))?;
        say::note(format!("{} trials written to `{}`", job.trials, job.path.display()));
    }
    let summary = export_store(&store, &export_options(&args.data, &args.out)?)?;
    exported::note(&summary);
    let mut scores: Scores = report.members.iter().map(|member| Scores::of(member.failure)).sum();
    scores += Scores::unscored(report.faults.len());
    let left_open = report.faults.iter().filter(|(_, fault)| open::is_rollout_left_open(fault)).count();
    match config.format {
        Format::Json => say::json(&json!({
            "left_open": left_open,
            "scores": scores,
            "coverage": scores.coverage(),
            "pass_rate": scores.pass_rate(),
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
                "{} rollouts of {} tasks in {:.1} s; {} without a result",
                report.members.len(),
                dirs.len(),
                started.elapsed().as_secs_f64(),
                report.faults.len() - left_open
            ))?;
            say::line(scores.to_string())?;
            if left_open > 0 {
                say::line(open::summary(left_open))?;
            }
        }
    }
    for (place, fault) in &report.faults {
        let what = if open::is_rollout_left_open(fault) { "left open" } else { "no result" };
        say::note(format!("{what}: {place}: {fault}"));
    }
    for why in &unmarked {
        say::note(format!(
            "not marked as revoked: {why}\nhint: the same command tries it again, without a request"
        ));
    }
    Ok(status(&report, !unmarked.is_empty()))
}

fn outcome(outcome: crate::model::Outcome) -> String {
    serde_json::to_value(outcome).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The exit status. `unmarked` says whether a revocation could not be written.
fn status(report: &CampaignReport, unmarked: bool) -> Status {
    if let Some(stop) = report.stop {
        return open::stop_status(stop);
    }
    let faults = report.faults.iter().map(|(_, error)| open::rollout_status(error));
    let revoked = (!report.revoked.is_empty()).then_some(Status::Failed);
    open::combined(faults.chain(revoked).chain(unmarked.then_some(Status::Io)))
}

async fn drive(
    config: &Config,
    assets: &PipelineAssets,
    store: &Store,
    dirs: &[PathBuf],
    args: &RolloutArgs,
) -> Result<CampaignReport, Failure> {
    let interrupts = Interrupts::listen()?;
    let engine = EngineOnDemand::new(config.engine);
    let slots = Slots::new(jobs(None) as usize);
    let runner = TrialRunner {
        engine: &engine,
        store,
        slots: &slots,
        priority: 0,
        drain: &interrupts.drain,
        watcher: Watcher::default(),
    };
    let (models, solver) = solver(config, args, store, &runner)?;
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

/// Refuses options of models if no model acts. They would change nothing.
fn check_options(args: &RolloutArgs) -> Result<(), Failure> {
    let solver = match args.scaffold {
        _ if args.agent.is_some() || args.agents.is_some() => return Ok(()),
        ScaffoldArg::Model(_) => return Ok(()),
        ScaffoldArg::Scripted => "scripted",
        ScaffoldArg::Oracle => "oracle",
        ScaffoldArg::Nop => "nop",
    };
    let options = [
        ("--adversary", args.adversary.is_some()),
        ("--arm", args.arm != ArmArg::Base),
        ("--summarise", args.summarise),
        ("--logprobs", args.logprobs),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is for a model, and with --scaffold {solver} none acts\nhint: leave it out, or name a scaffold in which a model \
             acts, as in --scaffold {}",
            SCAFFOLDS[0].option
        ))),
    }
}

/// The tasks of a run folder, if the command line names none.
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
    config: &Config,
    args: &RolloutArgs,
    store: &Store,
    runner: &TrialRunner<'_>,
) -> Result<(Option<Arc<Models>>, Solver), Failure> {
    let Some(scaffolds) = scaffolds(config, args)? else {
        let solver = match args.scaffold {
            ScaffoldArg::Oracle => Solver::Reference(Actor::Oracle),
            ScaffoldArg::Nop => Solver::Reference(Actor::Nop),
            ScaffoldArg::Scripted | ScaffoldArg::Model(_) => Solver::Scripted,
        };
        return Ok((None, solver));
    };
    let role = if args.adversary.is_some() { ModelRole::Adversary } else { ModelRole::Expert };
    let models = models::models(&args.model, Some(role), store, runner.drain)?;
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
    // Missing roles are reported before any work begins.
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
        program: None,
    };
    let limits = StepLimits {
        turns: args.limits.max_steps,
        command: Duration::from_secs(args.limits.command_seconds),
        // Each task's own limit replaces this, unless --trial-seconds is given.
        total: Duration::ZERO,
        output_bytes: args.limits.output_bytes,
        reply_tokens: Some(settings.max_tokens),
        tokens: args.limits.trial_tokens,
        dollars: dollars(args, settings, endpoint)?,
        context: endpoint.max_context.map(|most| most.saturating_sub(settings.max_tokens.into())),
    };
    let of = |scaffold: Arc<dyn Scaffold>| AgentConfig {
        actor: ModelActor { program: program_version(scaffold.driver()), ..actor.clone() },
        scaffold,
        role,
        limits,
        rounds: args.rounds,
        logprobs: if args.logprobs { Logprobs::Ask } else { Logprobs::No },
        overflow: if args.summarise { Overflow::Summarised } else { Overflow::Ends },
        fork: None,
        preflight: Preflight::default(),
    };
    let shares = scaffolds.into_iter().map(|(scaffold, share)| (of(scaffold), share)).collect();
    let agents = Agents::shared(shares).ok_or_else(|| Failure::usage("--agents names no agent"))?;
    let models = Arc::new(models);
    Ok((Some(models.clone()), Solver::Model { models, agents }))
}

/// A scaffold, and its share of the attempts.
type Share = (Arc<dyn Scaffold>, u32);

/// The scaffolds in which a model acts, and their shares. `None`: no model acts.
fn scaffolds(config: &Config, args: &RolloutArgs) -> Result<Option<Vec<Share>>, Failure> {
    let wake = if args.early_wake { Wake::WhenDone } else { Wake::Never };
    let options = ScaffoldOptions { wake, command: args.agent_command.clone() };
    if let Some(Shares(shares)) = &args.agents {
        let (assets, catalog) = (config.assets()?, agent::catalog(config, &args.agent_data)?);
        let named = |(name, share): &(String, u32)| -> Result<_, Failure> {
            let scaffold = match SCAFFOLDS.iter().find(|entry| entry.option == name) {
                Some(entry) => (entry.load)(&assets, &options)?,
                None => catalog.scaffold(&AgentName::of(name))?,
            };
            Ok((scaffold, *share))
        };
        return shares.iter().map(named).collect::<Result<_, _>>().map(Some);
    }
    let scaffold = match (&args.agent, args.scaffold) {
        (Some(agent), _) => agent::catalog(config, &args.agent_data)?.scaffold(agent)?,
        (None, ScaffoldArg::Model(entry)) => (entry.load)(&config.assets()?, &options)?,
        (None, ScaffoldArg::Scripted | ScaffoldArg::Oracle | ScaffoldArg::Nop) => return Ok(None),
    };
    Ok(Some(vec![(scaffold, 1)]))
}

/// The version of an installed agent.
fn program_version(driver: Driver<'_>) -> Option<ProgramVersion> {
    let Driver::InSandbox(program) = driver else { return None };
    program.installed.as_ref().map(|installed| ProgramVersion {
        version: installed.version.clone(),
        layer: installed.layer.to_string(),
    })
}

/// The budget of one rollout in dollars, with the prices of the settings.
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

/// Marks the certificate of each task that an agent passed without doing the work as revoked.
/// Failed writes are returned and stop nothing, since the rollouts are paid for. E.g. a task may
/// lie in a read-only folder.
fn revoke(revoked: &[(PathBuf, Key)]) -> Vec<StoreError> {
    let certified = revoked.iter().filter(|(dir, _)| dir.join("certificate.json").exists());
    let written = certified.map(|(dir, key)| {
        let text = json!({ "version": 1, "rollout": rollout_id(key), "why": "an adversary passed" });
        write_beside(&dir.join(REVOKED), &File::text(format!("{text:#}\n")))
    });
    written.filter_map(Result::err).collect()
}

/// Why the certificate in `dir` is revoked. `None` if it is not.
pub(super) fn revocation(dir: &Path) -> Option<String> {
    let text = match read_file(&dir.join(REVOKED), LARGEST_REVOCATION) {
        Ok(text) => text?,
        // An unreadable file was still meant to revoke.
        Err(error) => return Some(format!("revoked: {error}")),
    };
    let rollout = serde_json::from_slice::<serde_json::Value>(&text).ok();
    let id = rollout.as_ref().and_then(|text| text.get("rollout")?.as_str()).unwrap_or("unknown");
    Some(format!("revoked: rollout {id} passes without doing the work"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_revoked_where_they_can_be_written() {
        let key = Key::parse("ab".repeat(32)).unwrap();
        // `entries` are files and folders of a task. A name that ends with `/` is a folder.
        let check = |entries: &[&str], unmarked: usize, revoked: Option<&str>| {
            let dir = tempfile::tempdir().unwrap();
            for entry in entries {
                let path = dir.path().join(entry);
                match entry.strip_suffix('/') {
                    Some(_) => std::fs::create_dir(path).unwrap(),
                    None => std::fs::write(path, "{}").unwrap(),
                }
            }
            let failed = revoke(&[(dir.path().to_owned(), key.clone())]);
            assert_eq!(failed.len(), unmarked, "{entries:?}: {failed:?}");
            let found = revocation(dir.path());
            match revoked {
                None => assert_eq!(found, None, "{entries:?}"),
                Some(part) => assert!(found.is_some_and(|why| why.contains(part)), "{entries:?}"),
            }
        };
        check(&["certificate.json"], 0, Some("revoked: rollout abababab"));
        check(&["certificate.json", REVOKED], 0, Some("revoked: rollout abababab"));
        check(&[], 0, None);
        check(&["certificate.json", "revoked.json/"], 1, Some("neither a regular file nor a folder"));
    }

    #[test]
    fn an_unwritten_revocation_is_a_status_of_its_own() {
        let check = |stop: Option<Stop>, revoked: usize, unmarked: bool, expect: Status| {
            let revoked = vec![(PathBuf::new(), Key::parse("ab".repeat(32)).unwrap()); revoked];
            let report = CampaignReport { stop, revoked, ..CampaignReport::default() };
            assert_eq!(status(&report, unmarked), expect, "{report:?}");
        };
        check(None, 0, false, Status::Ok);
        check(None, 1, false, Status::Failed);
        check(None, 1, true, Status::Io);
        check(Some(Stop::Interrupted), 1, true, Status::Interrupted);
    }
}
