//! Overhead of a scaffold per action, compared with Harbor's terminus-2; and hundreds of rollouts
//! in one process.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use termsmith::agent::terminal::Wake;
use termsmith::agent::terminus::Format;
use termsmith::agent::{
    BashBlock, BashTool, Conversation, Deadline, Driver, EpisodeContext, Hooks, Logprobs, Machine,
    ModelPolicy, NoTurnLog, PromptsError, React, Scaffold, StepLimits, Terminus, run_episode,
};
use termsmith::assets::Assets;
use termsmith::llm::{ModelRole, Models, Options, Settings};
use termsmith::model::{Arm, Assume, End, Limits, ModelActor, Profile, TaskName};
use termsmith::pipeline::PipelineAssets;
use termsmith::rollout::{AgentConfig, Overflow, Preflight, PreparedTask, attempt};
use termsmith::sandbox::{Image, LaunchSpec, Network, process_engine};
use termsmith::store::{RunDir, Store};
use termsmith::verify::{EngineOnDemand, HashedTask, Slots, TrialRunner, Watcher};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Endpoint, model};
use crate::harbor::Harbor;
use crate::machine::peak_memory;
use crate::report::{Line, Section, Unit, Who};
use crate::sample::Sample;
use crate::{BenchContext, fixture};

/// Turns of a long and of a short episode. The difference gives the time of a turn, without start
/// and judging.
const LONG: usize = 22;
const SHORT: usize = 2;
const ROUNDS: usize = 3;
/// Harbor's trials take many seconds each.
const PEER_ROUNDS: usize = 2;
/// Rollouts at once in one process.
const FLEET: usize = 500;
/// Turns of each of them.
const FLEET_TURNS: usize = 6;

/// How a scaffold is loaded.
type Load = fn(&Assets) -> Result<Arc<dyn Scaffold>, PromptsError>;

/// A scaffold, its name, and the aim for its overhead in milliseconds.
type Row = (Load, &'static str, Option<(&'static str, f64)>);

const SCAFFOLDS: [Row; 5] = [
    (|assets| Ok(Arc::new(BashTool::load(assets)?)), "bash", Some(("≤ 3 ms", 3.0))),
    (|assets| Ok(Arc::new(BashBlock::load(assets)?)), "bash-block", Some(("≤ 3 ms", 3.0))),
    (|assets| Ok(Arc::new(React::load(assets)?)), "react", Some(("≤ 3 ms", 3.0))),
    (|assets| terminus(assets, Wake::WhenDone), "terminus, early wake", Some(("≤ 30 ms", 30.0))),
    (|assets| terminus(assets, Wake::Never), "terminus, Harbor's waits", None),
];

fn terminus(assets: &Assets, wake: Wake) -> Result<Arc<dyn Scaffold>, PromptsError> {
    Ok(Arc::new(Terminus::load(assets, Format::Json, wake)?))
}

pub(crate) async fn measure(context: &BenchContext) -> anyhow::Result<Section> {
    let endpoint = Endpoint::start().await?;
    let mut section =
        Section::new("agents", "a turn of an agent whose model answers at once and whose command is `:`");
    section.groups.push(actions(context, &endpoint).await?);
    section.groups.push(fleet(&endpoint).await?);
    section.groups.push(turns(context, &endpoint, &mut section.notes).await?);
    section.notes.push(format!(
        "a turn is the difference between episodes of {LONG} and {SHORT} turns; `:` with a wait of 0.1 s for terminus, which Harbor \
         takes in full"
    ));
    Ok(section)
}

fn settings(endpoint: &str, steps: usize) -> anyhow::Result<Settings> {
    let text = format!(
        "version = 1\n[endpoints.instant]\nbase_url = \"{endpoint}\"\nconcurrency = 1000\n\
         [roles.expert]\nendpoint = \"instant\"\nmodel = \"{}\"\nmax_tokens = 64\n",
        model(steps)
    );
    Ok(Settings::parse("termsmith.toml", &text)?)
}

fn limits() -> StepLimits {
    StepLimits { turns: 100, ..StepLimits::scripted(Duration::from_secs(600)) }
}

/// Measures an action alone, from message to observation, without client and journal.
async fn actions(context: &BenchContext, endpoint: &Endpoint) -> anyhow::Result<Vec<Line>> {
    let assets = Assets::embedded();
    let sandbox = fixture::launch(&context.engine, &Image::named(fixture::BASE)).await?;
    let dir = tempfile::tempdir()?;
    let store = Store::new(RunDir::open(dir.path())?);
    let models = Models::new(settings(&endpoint.base_url, LONG)?, |_| None, &store, Options::default())?;
    let mut lines = Vec::new();
    for (number, (load, name, aim)) in SCAFFOLDS.into_iter().enumerate() {
        let mut sample = Sample::default();
        let limits = limits();
        let drain = CancellationToken::new();
        let episode = EpisodeContext {
            sandbox: &sandbox,
            drain,
            env: &[],
            limits: &limits,
            deadline: Deadline::after(limits.total, sandbox.clock().clone()),
            assume: Assume::Nothing,
            machine: Machine::Fresh,
        };
        let unit = format!("actions-{number}");
        let conversation = one(&*load(&assets)?, &models, &unit, &episode).await?;
        for pair in conversation.seen.windows(2) {
            // The time from one message to the next, without the model's time.
            let gap = pair[1].at_ms as f64 - pair[0].at_ms as f64 - pair[1].think_ms;
            sample.push(gap.max(0.0));
        }
        let line =
            Line::new(Who::Termsmith, format!("{name}: the action alone"), Unit::Milliseconds, &sample);
        lines.push(match aim {
            Some((text, most)) => line.aim(text, move |p50| p50 <= most),
            None => line,
        });
    }
    sandbox.destroy().await;
    Ok(lines)
}

async fn one(
    scaffold: &dyn Scaffold,
    models: &Models,
    unit: &str,
    episode: &EpisodeContext<'_>,
) -> anyhow::Result<Conversation> {
    let mut policy = ModelPolicy {
        models,
        role: ModelRole::Expert,
        unit,
        round: 0,
        stop: Vec::new(),
        logprobs: Logprobs::No,
    };
    let mut conversation = Conversation::default();
    let mut nowhere = NoTurnLog;
    let hooks = Hooks::none(&mut nowhere);
    let Driver::TurnByTurn(protocol) = scaffold.driver() else { bail!("it has a loop of its own") };
    let ended = run_episode(protocol, &mut policy, &mut conversation, "Do nothing.", episode, hooks).await?;
    ensure!(ended.end == End::Submitted, "an episode ended with {ended:?}");
    Ok(conversation)
}

/// Measures a whole turn: client, journal on the disk, action. Harbor's terminus-2 runs on the same
/// task and endpoint.
async fn turns(
    context: &BenchContext,
    endpoint: &Endpoint,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Line>> {
    let assets = PipelineAssets::load(&Assets::embedded())?;
    let task = &context.fixture.draft.task;
    let hashed = HashedTask::new(task, context.fixture.environment_digest.clone())?;
    let engine = EngineOnDemand::default();
    let mut lines = Vec::new();
    for (load, name, _) in SCAFFOLDS {
        let mut sample = Sample::default();
        for round in 0..ROUNDS {
            let mut took = [0.0; 2];
            for (place, steps) in took.iter_mut().zip([SHORT, LONG]) {
                *place = episode(&engine, &assets, &hashed, endpoint, load, steps, round).await?;
            }
            sample.push((took[1] - took[0]) / (LONG - SHORT) as f64);
        }
        lines.push(Line::new(
            Who::Termsmith,
            format!("{name}: a turn, with client and journal"),
            Unit::Milliseconds,
            &sample,
        ));
    }
    engine.get().await?.close().await;
    match Harbor::from_env() {
        Some(harbor) => {
            let prepared = harbor.prepare(&context.fixture.directory).await?;
            let mut sample = Sample::default();
            for _ in 0..PEER_ROUNDS {
                let short = prepared.agent_seconds(&model(SHORT), &endpoint.base_url).await?;
                let long = prepared.agent_seconds(&model(LONG), &endpoint.base_url).await?;
                sample.push((long - short) * 1e3 / (LONG - SHORT) as f64);
            }
            let line = Line::new(Who::Harbor, "terminus-2: a turn".to_owned(), Unit::Milliseconds, &sample);
            // Harbor's line is compared with terminus with early wake, which sends the same
            // messages.
            let ours = lines.get(3).context("the terminus line is missing")?;
            lines.push(line.times_lower(ours).aim("≥ 20 ×", |ratio| ratio >= 20.0));
        }
        None => notes.push("harbor was not measured: PEER_HARBOR names no command".to_owned()),
    }
    Ok(lines)
}

/// Milliseconds of an episode with this number of steps, from its first message to its last.
async fn episode(
    engine: &EngineOnDemand,
    assets: &PipelineAssets,
    hashed: &HashedTask<'_>,
    endpoint: &Endpoint,
    load: Load,
    steps: usize,
    round: usize,
) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let store = Store::new(RunDir::open(dir.path())?);
    let (drain, slots) = (CancellationToken::new(), Slots::new(1));
    let runner = TrialRunner {
        engine,
        store: &store,
        slots: &slots,
        priority: 0,
        drain: &drain,
        watcher: Watcher::default(),
    };
    let models = Models::new(settings(&endpoint.base_url, steps)?, |_| None, &store, Options::default())?;
    let prepared = PreparedTask {
        further: Vec::new(),
        name: TaskName::parse(format!("bench-{round}"))?,
        instruction: "Do nothing.",
        task_digest: None,
        edition: 0,
        target: hashed,
    };
    let agent_config = AgentConfig {
        scaffold: load(&Assets::embedded())?,
        role: ModelRole::Expert,
        actor: ModelActor {
            model: model(steps),
            endpoint: "instant".to_owned(),
            arm: Arm::Base,
            adversary: None,
            program: None,
        },
        limits: limits(),
        rounds: 0,
        logprobs: Logprobs::No,
        overflow: Overflow::Ends,
        fork: None,
        preflight: Preflight::default(),
    };
    let key = attempt(&runner, &models, &assets.texts, &prepared, &agent_config, 0).await?;
    let read = termsmith::rollout::read_record(&store, &key)?;
    let (_, log) = read.context("the rollout was not kept")?;
    let (first, last) = (log.turns.first().context("no turn")?, log.turns.last().context("no turn")?);
    Ok(last.at_ms as f64 - first.at_ms as f64)
}

/// Measurements reported by the fleet process.
#[derive(Serialize, Deserialize)]
struct Fleet {
    turns: usize,
    seconds: f64,
    /// Seconds of the slowest and the fastest rollout.
    slowest: f64,
    fastest: f64,
}

/// Runs five hundred rollouts at once, in a separate process, on the process engine.
async fn fleet(endpoint: &Endpoint) -> anyhow::Result<Vec<Line>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--bench", "--fleet", &endpoint.base_url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = child.id().context("it ended at once")?;
    let mut out = child.stdout.take().context("no output")?;
    let mut peak = None;
    let status = loop {
        peak = peak_memory(pid).or(peak);
        match child.try_wait()? {
            Some(status) => break status,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    ensure!(status.success(), "the fleet ended with {status}");
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut out, &mut text).await?;
    let fleet: Fleet =
        serde_json::from_str(text.trim()).with_context(|| format!("the child process printed `{text}`"))?;
    let one = |what: String, unit, value| Line::single(Who::Termsmith, what, unit, value);
    let peak = peak.context("its memory was not seen")?;
    Ok(vec![
        one(format!("{FLEET} rollouts at once: peak memory"), Unit::Mebibytes, peak)
            .aim("≤ 300 MiB", |mib| mib <= 300.0),
        one(
            format!("{FLEET} rollouts at once: turns"),
            Unit::PerHour,
            fleet.turns as f64 * 3600.0 / fleet.seconds,
        ),
        one("the slowest rollout, from its first turn".to_owned(), Unit::Milliseconds, fleet.slowest * 1e3),
        one("the fastest".to_owned(), Unit::Milliseconds, fleet.fastest * 1e3),
    ])
}

/// The fleet itself. It runs in a separate process.
pub(crate) async fn run_fleet(base_url: &str) -> anyhow::Result<String> {
    let engine = process_engine();
    let assets = Assets::embedded();
    let scaffold = BashBlock::load(&assets)?;
    let dir = tempfile::tempdir()?;
    let store = Store::new(RunDir::open(dir.path())?);
    let models = Models::new(settings(base_url, FLEET_TURNS)?, |_| None, &store, Options::default())?;
    let image = Image::named("none");
    let task_limits = Limits::default();
    let started = Instant::now();
    let gate = tokio::sync::Barrier::new(FLEET);
    let rollouts = stream::iter(0..FLEET).map(|number| {
        let (engine, scaffold, models, image, task_limits, gate) =
            (&engine, &scaffold, &models, &image, &task_limits, &gate);
        async move {
            let spec = LaunchSpec {
                image,
                limits: task_limits,
                profile: Profile::Plain,
                network: Network::None,
                workdir: "/",
                purpose: "solver",
                preload: Vec::new(),
                layer: None,
            };
            let sandbox = engine.launch(&spec).await?;
            // All agents are ready before any begins, so that all run at once.
            gate.wait().await;
            let began = Instant::now();
            let limits = limits();
            let drain = CancellationToken::new();
            let episode = EpisodeContext {
                sandbox: &sandbox,
                drain,
                env: &[],
                limits: &limits,
                deadline: Deadline::after(limits.total, sandbox.clock().clone()),
                assume: Assume::Nothing,
                machine: Machine::Fresh,
            };
            let unit = format!("fleet-{number}");
            let conversation = one(scaffold, models, &unit, &episode).await?;
            Ok::<_, anyhow::Error>((conversation.turns.len(), began.elapsed().as_secs_f64()))
        }
    });
    let ended: Vec<_> = rollouts.buffer_unordered(FLEET).collect().await;
    let ended: Vec<(usize, f64)> = ended.into_iter().collect::<anyhow::Result<_>>()?;
    let seconds = ended.iter().map(|(_, seconds)| *seconds);
    let fleet = Fleet {
        turns: ended.iter().map(|(turns, _)| turns).sum(),
        seconds: started.elapsed().as_secs_f64(),
        slowest: seconds.clone().fold(0.0, f64::max),
        fastest: seconds.fold(f64::INFINITY, f64::min),
    };
    Ok(serde_json::to_string(&fleet)?)
}
