//! `agent check`: whether an agent is installed, and whether it can run in a task's image.

use std::path::Path;

use serde::Serialize;

use super::agent::short;
use super::config::{Config, Format, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::interrupt::Interrupts;
use super::{paths, say};
use crate::agent::AgentError;
use crate::agent::catalog::{AgentManifest, AgentName, Catalog, CatalogError, Libc, Lock};
use crate::pipeline::{Ready, prepare};
use crate::rollout::{RolloutError, image_libc, version};
use crate::sandbox::LayerState;
use crate::store::{RunDir, Store};
use crate::verify::{EngineOnDemand, Slots, TrialRunner, Watcher};

/// One line of the report.
#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    fits: Fits,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Fits {
    Yes,
    /// Perhaps.
    Unsure,
    No,
}

impl Fits {
    fn mark(self) -> &'static str {
        match self {
            Self::Yes => "ok",
            Self::Unsure => "warn",
            Self::No => "BAD",
        }
    }
}

pub(super) fn check(config: &Config, catalog: &Catalog, agent: &AgentName, task: Option<&Path>) -> Outcome {
    let manifest = catalog.manifest(&agent.name)?;
    let lock = catalog.lock(agent)?.ok_or_else(|| CatalogError::NotLocked {
        name: agent.name.clone(),
        version: agent.version.clone().unwrap_or_else(|| manifest.declared.version.clone()),
    })?;
    let rows = runtime()?.block_on(checked(config, manifest, &lock, task))?;
    match config.format {
        Format::Json => say::json(&rows)?,
        Format::Text => {
            for Row { what, fits, detail } in &rows {
                say::line(format!("{:<5} {what:<10} {detail}", fits.mark()))?;
            }
        }
    }
    Ok(if rows.iter().any(|row| row.fits == Fits::No) { Status::Unusable } else { Status::Ok })
}

async fn checked(
    config: &Config,
    manifest: &AgentManifest,
    lock: &Lock,
    task: Option<&Path>,
) -> Result<Vec<Row>, Failure> {
    let engine = EngineOnDemand::new(config.engine);
    let state = engine.get().await?.layer_state(&lock.layer.id).await?;
    let mut rows = vec![installed(manifest, lock, state)];
    if let (Some(dir), LayerState::Whole) = (task, state) {
        paths::check(dir, paths::Expected::TaskDirectory)?;
        let assets = config.pipeline_assets()?;
        let interrupts = Interrupts::listen()?;
        // What a task's preparation stores is of no use afterwards.
        let folder = tempfile::tempdir().map_err(Failure::io("make a temporary folder"))?;
        let store = Store::new(RunDir::open(folder.path())?);
        let slots = Slots::new(1);
        let runner = TrialRunner {
            engine: &engine,
            store: &store,
            slots: &slots,
            priority: 0,
            drain: &interrupts.drain,
            watcher: Watcher::default(),
        };
        let ready =
            prepare(&runner, &assets, dir).await.map_err(|error| Failure::new(Status::BadInput, error))?;
        rows.extend(fits(manifest, lock, &ready, &runner).await?);
    }
    if let Some(engine) = engine.connected() {
        engine.close().await;
    }
    Ok(rows)
}

fn installed(manifest: &AgentManifest, lock: &Lock, state: LayerState) -> Row {
    let (name, version) = (&manifest.name, &lock.version);
    let add = format!("`termsmith agent add {name}@{version}` installs it");
    let (fits, detail) = match state {
        LayerState::Whole => (Fits::Yes, format!("{version}, layer {}", short(lock.layer.id.as_str()))),
        LayerState::HalfFilled => (Fits::No, format!("{version} is half installed; {add}")),
        LayerState::Missing => (Fits::No, format!("{version} is not installed; {add}")),
    };
    Row { what: "installed", fits, detail }
}

async fn fits(
    manifest: &AgentManifest,
    lock: &Lock,
    ready: &Ready,
    runner: &TrialRunner<'_>,
) -> Result<[Row; 3], Failure> {
    let target = ready.prepared().target;
    let needs = manifest.declared.libc;
    let has = image_libc(runner, target).await.map_err(crate::pipeline::Fault::from)?;
    let libc = Row {
        what: "C library",
        fits: if needs == Libc::Any || Some(needs) == has { Fits::Yes } else { Fits::No },
        detail: format!(
            "the image has {}; the agent needs {}",
            has.map_or("none", Libc::as_str),
            needs.as_str()
        ),
    };
    let (has, needs) = (ready.limits.memory_mb, manifest.declared.memory_mb);
    let memory = Row {
        what: "memory",
        fits: if has >= needs { Fits::Yes } else { Fits::Unsure },
        detail: format!("the task allows {has} MiB; the agent is known to work with {needs} MiB"),
    };
    let (fits, detail) = match version(runner, target, &manifest.program(lock)).await {
        Ok(printed) => (Fits::Yes, printed),
        Err(RolloutError::Agent(error @ AgentError::CannotRun { .. })) => (Fits::No, error.to_string()),
        Err(RolloutError::Agent(error @ AgentError::TooSlow { .. })) => (Fits::Unsure, error.to_string()),
        Err(error) => return Err(crate::pipeline::Fault::from(error).into()),
    };
    Ok([libc, memory, Row { what: "start", fits, detail }])
}
