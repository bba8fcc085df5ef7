//! Resolves the global flags once.

use std::path::Path;
use std::thread::available_parallelism;

use super::args::Cli;
use super::args_data::{DataArgs, SftArg};
use super::card_command;
use super::failure::Failure;
use super::paths::{self, Expected};
use crate::assets::{Assets, Overrides};
use crate::export::pairs::PairPolicy;
use crate::export::secrets::SecretHandling;
use crate::export::{ExportOptions, SftFilter, phi};
use crate::pipeline::PipelineAssets;
use crate::sandbox::EngineEntry;
use crate::store::{ReadStore, RunDir, Store};
use crate::verify::EngineOnDemand;

/// Text for people or JSON for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

/// Resolved global settings.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) format: Format,
    pub(super) engine: &'static EngineEntry,
    pub(super) overrides: Overrides,
}

impl Config {
    pub(super) fn resolve(cli: &Cli) -> Self {
        Self {
            engine: cli.engine,
            format: if cli.json { Format::Json } else { Format::Text },
            overrides: Overrides { domains: cli.domains.clone(), templates: cli.templates.clone() },
        }
    }

    pub(super) fn assets(&self) -> Result<Assets, Failure> {
        let Overrides { domains, templates } = &self.overrides;
        for (place, expected) in [(domains, Expected::Domains), (templates, Expected::Templates)] {
            if let Some(place) = place {
                paths::check(place, expected)?;
            }
        }
        Ok(Assets::with_override(&self.overrides)?)
    }

    pub(super) fn pipeline_assets(&self) -> Result<PipelineAssets, Failure> {
        Ok(PipelineAssets::load(&self.assets()?)?)
    }
}

/// The number of concurrent trials. A trial waits for the engine about as long as it computes, so
/// the default is two for each core.
pub(super) fn jobs(asked: Option<u32>) -> u32 {
    const PER_CORE: u32 = 2;
    asked.unwrap_or_else(|| cores() * PER_CORE)
}

/// Cores that this process may use.
pub(super) fn cores() -> u32 {
    available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}

/// Removes containers that killed runs left behind, and counts them. If no engine answers, or it
/// fails, this removes nothing. The next user of the engine reports the error.
pub(super) async fn sweep(engine: &EngineOnDemand) -> usize {
    let swept = match engine.get().await {
        Ok(engine) => engine.sweep().await,
        Err(error) => {
            tracing::debug!(%error, "no engine to sweep");
            return 0;
        }
    };
    swept.unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to remove containers of earlier runs");
        0
    })
}

pub(super) fn export_options(args: &DataArgs, title: &Path) -> Result<ExportOptions, Failure> {
    let mut options = ExportOptions {
        sft: match args.sft {
            SftArg::Passing => SftFilter::Passing,
            SftArg::All => SftFilter::All,
        },
        failed_turns: args.failed_turns.into(),
        pairs: PairPolicy { reward: args.pair_reward.into(), ..PairPolicy::default() },
        ..ExportOptions::default()
    };
    if args.mask_secrets {
        options.secrets = SecretHandling::Mask;
    }
    options.command = Some(card_command::of_export(args));
    if let Some(gamma) = args.gamma {
        options.gamma = phi::Gamma::new(gamma)
            .map_err(|error| Failure::usage(format!("--gamma: {error}\nhint: 0.99 is a usual value")))?;
    }
    if let Some(name) = paths::named(title).file_name() {
        options.title = format!("{}: verified terminal trajectories", name.to_string_lossy());
    }
    Ok(options)
}

/// Opens an existing run folder for reading.
pub(super) fn existing_run(out: &Path) -> Result<ReadStore, Failure> {
    paths::check(out, Expected::RunFolder)?;
    Ok(ReadStore::open(out)?)
}

/// Opens an existing run folder for writing. Meanwhile no other process can write there.
pub(super) fn existing_run_locked(out: &Path) -> Result<Store, Failure> {
    paths::check(out, Expected::RunFolder)?;
    Ok(Store::new(RunDir::open_existing(out)?))
}

/// Opens a run folder for writing, and creates it if it is missing.
pub(super) fn run_to_write(out: &Path) -> Result<Store, Failure> {
    paths::check_output_folder(out, "--out")?;
    Ok(Store::new(RunDir::open(out)?))
}

/// The runtime for commands that use an engine or a model.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::io("start the threads that commands run on"))
}
