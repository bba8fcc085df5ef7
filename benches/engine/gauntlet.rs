//! Screening: trials per second, the time of a whole standard gauntlet, and its two simplest rows
//! compared with Harbor.

use std::time::Instant;

use anyhow::ensure;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use termsmith::model::{Rigor, Verdict};
use termsmith::screen::{Extent, Material, Only, screen};
use termsmith::store::{RunDir, Store};
use termsmith::verify::{
    Act, Condition, EngineOnDemand, HashedTask, Images, Slots, TrialRunner, Watcher, run_trial,
};
use tokio_util::sync::CancellationToken;

use crate::BenchContext;
use crate::harbor::{Agent, Harbor};
use crate::report::{Line, Section, Unit, Who};
use crate::sample::Sample;

/// Concurrent trials, as Harbor's default.
const PLACES: usize = 4;
/// About the number of trials in a full gauntlet of one task.
const TRIALS: usize = 60;
/// Oracle and nop trials of each side, of each kind.
const EACH: usize = 8;
const ROUNDS: usize = 3;
/// Seconds that a standard gauntlet of a trivial task should take on two processors.
const STANDARD: f64 = 25.0;

pub(crate) async fn measure(context: &BenchContext) -> anyhow::Result<Section> {
    let task = &context.fixture.draft.task;
    let mut section = Section::new("gauntlet", format!("screening of `{}`", task.name));
    let (mut trials, mut pairs, mut screens) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        trials.push(per_hour(TRIALS, || trial(context, Agent::Oracle), || context.engine.close()).await?);
        pairs.push(per_hour(TRIALS, || crate::trials::pair(context), async || {}).await?);
        screens.push(standard(context).await? * 1e3);
    }
    let ours = Line::new(
        Who::Termsmith,
        format!("{TRIALS} trials of the reference, {PLACES} at once"),
        Unit::PerHour,
        &trials,
    );
    let engine = Line::new(
        Who::Engine,
        format!("{TRIALS} pairs of create, start, remove, {PLACES} at once"),
        Unit::PerHour,
        &pairs,
    )
    .multiple(&ours);
    section.groups.push(vec![ours, engine]);
    let screened = Line::new(Who::Termsmith, "a whole standard gauntlet", Unit::Milliseconds, &screens);
    section.groups.push(vec![screened.aim("≤ 25 s", |median| median <= STANDARD * 1e3)]);
    match Harbor::from_env() {
        Some(harbor) => section.groups.push(beside(context, harbor).await?),
        None => section.notes.push("harbor was not measured: PEER_HARBOR names no command".to_owned()),
    }
    section.notes.push(format!(
        "n is rounds, in turns; {:.1} trials/s of ours; a gauntlet begins with the image built and nothing remembered",
        trials.p50() / 3600.0
    ));
    Ok(section)
}

/// The same oracle and nop trials on both sides, each in fresh containers.
async fn beside(context: &BenchContext, harbor: Harbor) -> anyhow::Result<Vec<Line>> {
    let harbor = harbor.prepare(&context.fixture.directory).await?;
    let (mut ours, mut theirs) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for agent in [Agent::Oracle, Agent::Nop] {
            per_hour(EACH, || trial(context, agent), || context.engine.close()).await?;
        }
        ours.push(rate(2 * EACH, started));
        let mut hours = 0.0;
        for agent in [Agent::Oracle, Agent::Nop] {
            hours += EACH as f64 / harbor.run_as(agent, PLACES, EACH).await?.per_hour;
        }
        theirs.push(2.0 * EACH as f64 / hours);
    }
    let what = format!("{EACH} oracle and {EACH} nop trials, {PLACES} at once");
    let ours = Line::new(Who::Termsmith, what.clone(), Unit::PerHour, &ours);
    let theirs = Line::new(Who::Harbor, what, Unit::PerHour, &theirs).multiple(&ours);
    Ok(vec![ours, theirs.aim("≥ 8 ×", |ratio| ratio >= 8.0)])
}

/// Runs `work` `count` times concurrently, then `finish`. Returns the rate per hour.
async fn per_hour<W, F>(count: usize, work: impl Fn() -> W, finish: impl FnOnce() -> F) -> anyhow::Result<f64>
where
    W: Future<Output = anyhow::Result<()>>,
    F: Future<Output = ()>,
{
    let started = Instant::now();
    stream::iter(0..count).map(|_| work()).buffer_unordered(PLACES).try_collect::<Vec<()>>().await?;
    finish().await;
    Ok(rate(count, started))
}

fn rate(count: usize, started: Instant) -> f64 {
    count as f64 * 3600.0 / started.elapsed().as_secs_f64()
}

async fn trial(context: &BenchContext, agent: Agent) -> anyhow::Result<()> {
    let task = &context.fixture.draft.task;
    let act = match agent {
        Agent::Oracle => Act::Solve(&task.solution),
        Agent::Nop => Act::Nothing,
    };
    let trial = run_trial(
        &context.engine,
        &Images::from(context.fixture.image.clone()),
        &HashedTask::new(task, context.fixture.environment_digest.clone())?,
        act,
        Condition::Ordinary,
        &CancellationToken::new(),
    )
    .await?;
    let as_it_must = |verdict: &Verdict| verdict.passed() == (agent == Agent::Oracle);
    ensure!(as_it_must(&trial.verdict), "{agent:?} of `{}` ended with {:?}", task.name, trial.verdict);
    Ok(())
}

/// Seconds of one standard gauntlet, in an empty store.
async fn standard(context: &BenchContext) -> anyhow::Result<f64> {
    let scratch = tempfile::tempdir()?;
    let store = Store::new(RunDir::open(scratch.path())?);
    let (engine, slots, drain) = (EngineOnDemand::default(), Slots::new(PLACES), CancellationToken::new());
    let runner = TrialRunner {
        engine: &engine,
        store: &store,
        slots: &slots,
        priority: 0,
        drain: &drain,
        watcher: Watcher::default(),
    };
    let fixture = &context.fixture;
    let hashed = HashedTask::new(&fixture.draft.task, fixture.environment_digest.clone())?;
    let started = Instant::now();
    let (suite, findings) = (&fixture.suite, &[]);
    let material = Material::of_draft(&fixture.draft, &hashed, &fixture.directory);
    let extent = Extent::of(Rigor::Standard);
    let screening = screen(&runner, suite, &material, findings, extent, &Only::All).await?;
    if let Some(engine) = engine.connected() {
        engine.close().await;
    }
    let certificate = screening.certificate;
    ensure!(certificate.certified, "`{}` is rejected: {:?}", certificate.task, certificate.reasons);
    Ok(started.elapsed().as_secs_f64())
}
