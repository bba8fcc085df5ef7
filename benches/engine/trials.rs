//! Trials per hour, with two fresh containers each. They are compared with the rate at which the
//! engine itself starts pairs of containers.

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures_util::future::try_join_all;
use termsmith::verify::{Act, Condition, HashedTask, Images, run_trial};
use tokio_util::sync::CancellationToken;

use crate::BenchContext;
use crate::harbor::Harbor;
use crate::report::{Line, Section, Unit, Who};
use crate::sample::Sample;

const CONCURRENCY: [usize; 3] = [1, 4, 16];
/// Concurrent trials of Harbor. With sixteen at once on a small machine, each would take most of a
/// minute.
const PEER_CONCURRENCY: [usize; 2] = [1, 4];
const ROUNDS: usize = 3;
/// No trial begins after this part of a round. Running trials are finished and counted, with their
/// time.
const ROUND: Duration = Duration::from_secs(5);

/// Rates by round.
#[derive(Default)]
struct Measured {
    ours: Sample,
    pairs: Sample,
    peer: Sample,
    trials: usize,
    starts: usize,
    peer_trials: usize,
}

pub(crate) async fn measure(context: &BenchContext) -> anyhow::Result<Section> {
    let harbor = match Harbor::from_env() {
        Some(harbor) => Some(harbor.prepare(&context.fixture.directory).await?),
        None => None,
    };
    trial(context).await?;
    let mut section = Section::new(
        "trials",
        format!(
            "oracle trials of `{}` an hour, solver and verifier each in a fresh container",
            context.fixture.draft.task.name
        ),
    );
    let mut peer_seconds = Sample::default();
    let mut peer_verdict_seconds = Sample::default();
    for n in CONCURRENCY {
        let mut measured = Measured::default();
        for _ in 0..ROUNDS {
            let (rate, trials) = saturate(n, || trial(context), || context.engine.close()).await?;
            measured.ours.push(rate);
            measured.trials += trials;
            let (rate, pairs) = saturate(n, || pair(context), async || {}).await?;
            measured.pairs.push(rate);
            measured.starts += pairs;
            if let Some(harbor) = harbor.as_ref().filter(|_| PEER_CONCURRENCY.contains(&n)) {
                let job = harbor.run(n).await?;
                measured.peer.push(job.per_hour);
                measured.peer_trials += job.seconds.len();
                job.seconds.iter().for_each(|seconds| peer_seconds.push(*seconds));
                job.verdict_seconds.iter().for_each(|seconds| peer_verdict_seconds.push(*seconds));
            }
        }
        section.groups.push(lines(n, &measured));
    }
    section.notes.push(format!(
        "n is {ROUNDS} rounds of {} s and longer, in turns; removals are waited for and counted",
        ROUND.as_secs()
    ));
    section.notes.push(match harbor {
        Some(_) => format!(
            "a harbor trial took {:.1} s, of which {:.1} s to the verdict (medians): one container, shared by solver and tests",
            peer_seconds.p50(),
            peer_verdict_seconds.p50()
        ),
        None => "harbor was not measured: PEER_HARBOR names no command".to_owned(),
    });
    Ok(section)
}

fn lines(n: usize, measured: &Measured) -> Vec<Line> {
    let ours = Line::new(
        Who::Termsmith,
        format!("trials, {n} at once ({} in all)", measured.trials),
        Unit::PerHour,
        &measured.ours,
    );
    let pairs = Line::new(
        Who::Engine,
        format!("pairs of create, start, remove, {n} at once ({})", measured.starts),
        Unit::PerHour,
        &measured.pairs,
    )
    .multiple(&ours);
    let peer = Line::new(
        Who::Harbor,
        format!("oracle trials, {n} at once ({})", measured.peer_trials),
        Unit::PerHour,
        &measured.peer,
    )
    .multiple(&ours)
    .aim("≥ 8 ×", |ratio| ratio >= 8.0);
    let mut lines = vec![ours, pairs];
    if measured.peer_trials > 0 {
        lines.push(peer);
    }
    lines
}

/// Runs `work` on `n` workers until the round is over, then `finish`. Returns the rate per hour,
/// and the count.
async fn saturate<W, F>(
    n: usize,
    work: impl Fn() -> W,
    finish: impl FnOnce() -> F,
) -> anyhow::Result<(f64, usize)>
where
    W: Future<Output = anyhow::Result<()>>,
    F: Future<Output = ()>,
{
    let started = Instant::now();
    let worker = || async {
        let mut done = 0;
        while started.elapsed() < ROUND {
            work().await?;
            done += 1;
        }
        Ok::<_, anyhow::Error>(done)
    };
    let done: usize = try_join_all((0..n).map(|_| worker())).await?.into_iter().sum();
    finish().await;
    Ok((done as f64 * 3600.0 / started.elapsed().as_secs_f64(), done))
}

async fn trial(context: &BenchContext) -> anyhow::Result<()> {
    let task = &context.fixture.draft.task;
    let trial = run_trial(
        &context.engine,
        &Images::from(context.fixture.image.clone()),
        &HashedTask::new(task, context.fixture.environment_digest.clone())?,
        Act::Solve(&task.solution),
        Condition::Ordinary,
        &CancellationToken::new(),
    )
    .await?;
    ensure!(
        trial.verdict.passed(),
        "the reference solution of `{}` did not pass: {:?}",
        task.name,
        trial.verdict
    );
    Ok(())
}

pub(crate) async fn pair(context: &BenchContext) -> anyhow::Result<()> {
    for _ in 0..2 {
        let name = context.bare.start(context.fixture.image.reference()).await?;
        context.bare.remove(&name).await?;
    }
    Ok(())
}
