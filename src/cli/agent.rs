//! `agent`: installs agents, lists them, and checks whether they can run in a task's image.

use std::path::PathBuf;

use serde_json::json;

use super::args_agent::{AddArgs, AgentCommand, AgentData};
use super::config::{Config, Format, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::say;
use crate::agent::catalog::{
    AgentManifest, AgentName, Catalog, Fetcher, Lock, Registries, Source, build, write_lock,
};
use crate::sandbox::{Engine, LayerState};

/// Bytes of a megabyte, as registries count.
const MEGABYTE: u64 = 1_000_000;

pub(super) fn run(config: &Config, command: &AgentCommand) -> Outcome {
    match command {
        AgentCommand::Add(args) => runtime()?.block_on(add(config, args)),
        AgentCommand::List { data } => runtime()?.block_on(list(config, data)),
        AgentCommand::Check { agent, task, data } => {
            super::agent_check::check(config, &catalog(config, data)?, agent, task.as_deref())
        }
    }
}

/// All agents, with this user's locks.
pub(super) fn catalog(config: &Config, data: &AgentData) -> Result<Catalog, Failure> {
    Ok(Catalog::load(&config.assets()?, &folder(data))?)
}

fn folder(data: &AgentData) -> PathBuf {
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let usual = || from("XDG_DATA_HOME").or_else(|| from("HOME").map(|home| home.join(".local/share")));
    data.data_dir
        .clone()
        .or_else(|| usual().map(|base| base.join("termsmith")))
        .unwrap_or_else(|| std::env::temp_dir().join("termsmith"))
}

async fn add(config: &Config, args: &AddArgs) -> Outcome {
    let catalog = catalog(config, &args.data)?;
    let manifest = catalog.manifest(&args.agent.name)?;
    let engine = config.engine.connect().await?;
    let lock = if args.relock.is_some() { None } else { catalog.lock(&args.agent)? };
    let installed = match &lock {
        Some(lock) => engine.layer_state(&lock.layer.id).await? == LayerState::Whole,
        None => false,
    };
    let lock = match lock {
        Some(lock) if installed => lock,
        lock => install(&catalog, &engine, manifest, lock.as_ref(), args).await?,
    };
    engine.close().await;
    let Lock { version, layer, parts } = &lock;
    match config.format {
        Format::Json => say::json(&json!({
            "agent": manifest.name,
            "version": version,
            "layer": layer.id,
            "files": layer.files,
            "bytes": layer.bytes,
            "archives": parts.len(),
            "was_installed": installed,
        }))?,
        Format::Text => {
            let done = if installed { "was installed before" } else { "is installed" };
            let (size, id) = (layer.bytes / MEGABYTE, short(layer.id.as_str()));
            say::line(format!(
                "{} {version} {done}: {} files, {size} MB, layer {id}",
                manifest.name, layer.files
            ))?;
        }
    }
    Ok(Status::Ok)
}

async fn install(
    catalog: &Catalog,
    engine: &Engine,
    manifest: &AgentManifest,
    lock: Option<&Lock>,
    args: &AddArgs,
) -> Result<Lock, Failure> {
    let fetcher = Fetcher::new(registries(args), folder(&args.data).join("downloads"))?;
    let version = args.agent.version.as_ref().unwrap_or(&manifest.declared.version);
    let source = match lock {
        Some(lock) => Source::Locked(lock),
        None => Source::Resolved { version },
    };
    say::note(format!("{} {version}: downloading and packing", manifest.name));
    let built = build(manifest, source, &fetcher).await?;
    engine.keep_layer(&built.layer).await?;
    match (&args.relock, lock) {
        (Some(path), _) => write_lock(path, &built.lock)?,
        (None, None) => {
            let path = catalog.keep_lock(&manifest.name, &built.lock)?;
            say::note(format!("its archives are locked in `{}`", path.display()));
        }
        (None, Some(_)) => {}
    }
    Ok(built.lock)
}

fn registries(args: &AddArgs) -> Registries {
    let usual = Registries::default();
    Registries {
        npm: args.npm.clone().unwrap_or(usual.npm),
        pypi_index: args.pypi.clone().unwrap_or(usual.pypi_index),
        pypi_files: args.pypi_files.clone().unwrap_or(usual.pypi_files),
        debian: args.debian.clone().unwrap_or(usual.debian),
    }
}

async fn list(config: &Config, data: &AgentData) -> Outcome {
    let catalog = catalog(config, data)?;
    // Without an engine the list is shown too.
    let kept = match config.engine.connect().await {
        Ok(engine) => engine.kept_layers().await?,
        Err(error) => {
            tracing::debug!(%error, "no engine to ask for layers");
            Vec::new()
        }
    };
    let mut rows = Vec::new();
    for manifest in catalog.manifests() {
        let declared = &manifest.declared;
        let lock = catalog.lock(&AgentName { name: manifest.name.clone(), version: None })?;
        let installed: Vec<&str> = kept
            .iter()
            .filter_map(|layer| layer.title.strip_prefix(&format!("{} ", manifest.name)))
            .collect();
        match config.format {
            Format::Json => rows.push(json!({
                "agent": manifest.name,
                "title": declared.title,
                "version": declared.version,
                "license": declared.license,
                "dialect": declared.dialect,
                "libc": declared.libc,
                "memory_mb": declared.memory_mb,
                "bytes": lock.map(|lock| lock.layer.bytes),
                "installed": installed,
                "unavailable": declared.unavailable,
            })),
            Format::Text => {
                let state = match (&declared.unavailable, installed.is_empty()) {
                    (Some(_), _) => "unavailable".to_owned(),
                    (None, true) => String::new(),
                    (None, false) => format!("installed: {}", installed.join(", ")),
                };
                let size = lock.map_or(String::new(), |lock| format!("{} MB", lock.layer.bytes / MEGABYTE));
                let line = format!(
                    "{:<15} {:<10} {:<9} {size:>7}  {:<38} {state}",
                    manifest.name,
                    declared.version,
                    declared.dialect.as_str(),
                    declared.title
                );
                say::line(line.trim_end())?;
            }
        }
    }
    if config.format == Format::Json {
        say::json(&rows)?;
    }
    Ok(Status::Ok)
}

/// The beginning of an id, which suffices for people.
pub(super) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
