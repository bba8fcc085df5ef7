//! Peak memory of termsmith itself, by the number of rollouts, and with a large submission.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use termsmith::model::{Seed, TaskName};
use termsmith::pipeline::{DRAFT, Gathered, UNIT, UnitRecord, gather};
use termsmith::rollout::ROLLOUT;
use termsmith::screen::SCREEN;
use termsmith::store::{ReadStore, RunDir, Store, key};
use tokio::process::Command;

use crate::BenchContext;
use crate::machine::peak_memory;
use crate::report::{Line, Section, Unit, Who};
use crate::sample::Sample;

/// Rollouts of the run that is really executed.
const REAL: usize = 10;
/// Rollouts of the stores that are exported.
const SIZES: [usize; 3] = [10, 100, LARGEST];
const LARGEST: usize = 1000;
/// Largest growth of memory that counts as flat while rollouts grow a hundredfold. One open row
/// group has buffers of this size.
const FLAT: f64 = 1.5;
const ROUNDS: usize = 3;
/// A solver that leaves nearly as much as a verifier accepts (256 MiB).
const LARGE: &str = "#!/bin/bash\nhead -c 240000000 /dev/urandom > large.bin\n";
/// Largest peak with it. Such archives must pass through temporary files.
const LARGE_MAX: f64 = 64.0;
/// Interval between readings of the kernel's high-water mark. Growth after the last reading is
/// missed.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub(crate) async fn measure(context: &BenchContext) -> anyhow::Result<Section> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let domain = &context.fixture.draft.task.blueprint.domain;
    let attempts = REAL.to_string();
    let selection = ["--seed", "7", "--count", "1", "--domain", domain.as_str(), "--attempts", &attempts];
    let run = peak("run", &[&selection[..], &["--out", text(&at("run"))?]].concat()).await?;

    let store = ReadStore::open(&at("run"))?;
    let unit = gather(&store)?.next().context("the run made no task")??;
    ensure!(unit.rollouts.len() == REAL, "the run made {} rollouts, not {REAL}", unit.rollouts.len());
    for size in SIZES {
        copies(&unit, &at(&size.to_string()), size / REAL)?;
    }
    let mut exports = SIZES.map(|_| Sample::default());
    for _ in 0..ROUNDS {
        for (size, sample) in SIZES.iter().zip(&mut exports) {
            sample.push(peak("export", &["--out", text(&at(&size.to_string()))?]).await?);
        }
    }

    std::fs::write(at("large.sh"), LARGE)?;
    let task = at("run").join("tasks").join(unit.draft.task.name.as_str());
    let large = peak("verify", &[text(&task)?, "--solution", text(&at("large.sh"))?]).await?;

    let mut section =
        Section::new("memory", "peak memory of the termsmith process (the engine has no counterpart)");
    let what = format!("`run`: one task screened, {REAL} rollouts, exported");
    section.groups.push(vec![Line::single(Who::Termsmith, what, Unit::Mebibytes, run)]);
    let what = "`verify` of a solver that leaves 240 MB".to_owned();
    let line = Line::single(Who::Termsmith, what, Unit::Mebibytes, large);
    section.groups.push(vec![line.aim("≤ 64 MiB", |peak| peak <= LARGE_MAX)]);
    let mut lines: Vec<Line> = Vec::new();
    for (size, sample) in SIZES.iter().zip(&exports) {
        let line = Line::new(Who::Termsmith, format!("`export` of {size} rollouts"), Unit::Mebibytes, sample);
        lines.push(match lines.first() {
            Some(first) => {
                let line = line.of_first(first);
                if *size == LARGEST { line.aim("≤ 1.5 ×", |ratio| ratio <= FLAT) } else { line }
            }
            None => line,
        });
    }
    section.groups.push(lines);
    section.notes.push(format!(
        "`export` reads stores made of copies of that run's {REAL} rollouts and task under new names"
    ));
    Ok(section)
}

/// Runs the real program to its end; returns its peak memory in MiB.
async fn peak(command: &str, args: &[&str]) -> anyhow::Result<f64> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_termsmith"))
        .arg(command)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let pid = child.id().context("it ended at once")?;
    let mut peak = None;
    let status = loop {
        // The value disappears with the process, so the last one is kept.
        peak = peak_memory(pid).or(peak);
        match child.try_wait()? {
            Some(status) => break status,
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    };
    // Status 1 is fine for `verify`: the solver does something else, so the verdict is a failure.
    let ended = status.success() || command == "verify" && status.code() == Some(1);
    ensure!(ended, "`termsmith {command} {}` ended with {status}", args.join(" "));
    peak.context("the kernel told no peak memory")
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("`{}` is not UTF-8", path.display()))
}

/// Makes a run folder with `count` copies of `unit`, as the pipeline would have left them.
fn copies(unit: &Gathered, out: &Path, count: usize) -> anyhow::Result<()> {
    let store = Store::new(RunDir::open(out)?);
    for index in 0..count {
        let mut draft = unit.draft.clone();
        draft.task.name = TaskName::parse(format!("{}-{index}", unit.draft.task.name))?;
        draft.task.blueprint.index = u32::try_from(index).unwrap_or(u32::MAX);
        draft.task.blueprint.seed = Seed(index as u64);
        let mut certificate = unit.certificate.clone();
        certificate.task = draft.task.name.to_string();
        let mut rollouts = Vec::new();
        for (rollout, log) in &unit.rollouts {
            let mut record = rollout.record.clone();
            record.task = draft.task.name.clone();
            let key = key(ROLLOUT, &record)?;
            store.observe(&key, log)?;
            store.put(ROLLOUT, &key, &record)?;
            rollouts.push(key);
        }
        let record = UnitRecord {
            blueprint: draft.task.blueprint.clone(),
            draft: key(DRAFT, &draft)?,
            certificate: key(SCREEN, &certificate)?,
            rollouts,
        };
        store.put(DRAFT, &record.draft, &draft)?;
        store.put(SCREEN, &record.certificate, &certificate)?;
        store.put(UNIT, &key(UNIT, &record)?, &record)?;
    }
    Ok(())
}
