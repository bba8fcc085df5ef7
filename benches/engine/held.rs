//! Maximum number of concurrent sandboxes, and the memory of each.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use termsmith::model::ShellOutcome;
use termsmith::sandbox::{ExecLimit, Image, Sandbox};

use crate::machine::{children, meminfo, parent, proportional_memory};
use crate::report::{Line, Section, Unit, Who};
use crate::sample::Sample;
use crate::{BenchContext, fixture};

/// Maximum total memory.
const BUDGET_MIB: f64 = 16.0 * 1024.0;
/// Memory left free for other processes of the machine.
const RESERVE_MIB: f64 = 1024.0;
/// No launch begins after this time.
const WITHIN: Duration = Duration::from_secs(45);
/// Number of concurrent launches. More would only queue in the engine.
const AT_ONCE: usize = 4;
/// Number of bare containers whose memory is measured. It varies by a few per cent.
const BARE: usize = 16;

pub(crate) async fn measure(context: &BenchContext, most: usize) -> anyhow::Result<Section> {
    let image = Image::named(fixture::BASE);
    let before = available();
    let (sandboxes, why) = hold(context, &image, most, before).await;
    let answers = sandboxes.iter().map(answers);
    let answering = join_all(answers).await.into_iter().filter(|answers| *answers).count();
    let after = available();
    let ids = sandboxes.iter().map(|sandbox| sandbox.id().as_str());
    let ours = memory(context, ids).await?;
    drop(sandboxes);
    context.engine.close().await;

    let mut names = Vec::new();
    for _ in 0..BARE {
        names.push(context.bare.start(image.reference()).await?);
    }
    let bare = memory(context, names.iter().map(String::as_str)).await?;
    for name in &names {
        context.bare.remove(name).await?;
    }

    let mut section = Section::new("held", "sandboxes held at once, each with its shell running");
    let held = "held at once, and all of them answered again";
    section.groups.push(vec![Line::single(Who::Termsmith, held, Unit::Count, answering as f64)]);
    if ours.len() > 0 && bare.len() > 0 {
        let line = |who, what, sample| Line::new(who, what, Unit::Mebibytes, sample);
        let ours = line(Who::Termsmith, "memory of one: guest, shell, the engine's monitor", &ours);
        let bare = line(Who::Engine, "memory of one: `sleep`, the engine's monitor", &bare).multiple(&ours);
        section.groups.push(vec![ours, bare]);
    } else {
        section
            .notes
            .push("memory by process was not measured: its files are readable for root alone".to_owned());
    }
    let lost = before - after;
    let each = lost / answering.max(1) as f64;
    section.notes.push(format!("stopped {why}"));
    section.notes.push(format!(
        "MemAvailable {before:.0} MiB before, {after:.0} MiB after: {each:.1} MiB each, the engine's and everybody else's share included"
    ));
    if each > 0.0 {
        section.notes.push(format!(
            "16 GiB at that rate: {:.0} (extrapolated, not held; other limits may come first)",
            BUDGET_MIB / each
        ));
    }
    Ok(section)
}

/// Launches until a limit is reached. Returns the limit's name.
async fn hold(context: &BenchContext, image: &Image, most: usize, before: f64) -> (Vec<Sandbox>, String) {
    let started = Instant::now();
    let mut sandboxes = Vec::new();
    let launches = (0..most).map(|_| async {
        let sandbox = fixture::launch(&context.engine, image).await?;
        Ok::<_, anyhow::Error>((answers(&sandbox).await, sandbox))
    });
    let mut launches = stream::iter(launches).buffer_unordered(AT_ONCE);
    while let Some(launched) = launches.next().await {
        match launched {
            Ok((true, sandbox)) => sandboxes.push(sandbox),
            Ok((false, _)) => return (sandboxes, "at a sandbox that did not answer".to_owned()),
            Err(error) => return (sandboxes, format!("at a launch that failed: {error}")),
        }
        let left = available();
        if before - left >= BUDGET_MIB {
            return (sandboxes, "at 16 GiB".to_owned());
        }
        if left < RESERVE_MIB {
            return (sandboxes, format!("with {left:.0} MiB of the machine's memory left"));
        }
        if started.elapsed() > WITHIN {
            return (sandboxes, format!("after {} s of launching, not for want of memory", WITHIN.as_secs()));
        }
    }
    (sandboxes, format!("at the cap of {most} (`--most`), not for want of memory"))
}

async fn answers(sandbox: &Sandbox) -> bool {
    let result = sandbox.shell(":", &ExecLimit::default()).await;
    result.is_ok_and(|result| result.outcome == ShellOutcome::Exited(0))
}

/// Memory of each container's processes and the engine's process for it, in MiB. Empty if it cannot
/// be read.
async fn memory(context: &BenchContext, containers: impl Iterator<Item = &str>) -> anyhow::Result<Sample> {
    let mut sample = Sample::default();
    for container in containers {
        let Some(pid) = context.bare.pid(container).await? else { continue };
        let mut pids: Vec<u32> = parent(pid).into_iter().collect();
        let mut open = vec![pid];
        while let Some(pid) = open.pop() {
            open.extend(children(pid));
            pids.push(pid);
        }
        let sizes: Option<Vec<f64>> = pids.into_iter().map(proportional_memory).collect();
        if let Some(sizes) = sizes {
            sample.push(sizes.into_iter().sum());
        }
    }
    Ok(sample)
}

fn available() -> f64 {
    meminfo("MemAvailable").unwrap_or(f64::NAN)
}
