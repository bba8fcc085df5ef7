//! Arguments of `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::RigorArg;
use super::args_data::DataArgs;
use super::args_rollout::ModelArgs;
use super::args_stages::StageArgs;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    pub(super) what: Option<ImportWhat>,
    /// Harbor job folders, trial folders or ATIF files (v1.0 to v1.8)
    #[arg(required = true)]
    pub(super) rollouts: Vec<PathBuf>,
    /// Run folder to store them in
    #[arg(long, short, value_name = "DIR", default_value = "out/rollouts")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum ImportWhat {
    /// Have a model make tasks from recorded terminal sessions: asciicasts of versions 1 to 3, and
    /// transcripts
    Cast(Box<CastArgs>),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Some recordings are refused with a reason: those with personal data, with a full-screen program, with hardly any work, or with\n\
resources that a container lacks (templates/recordings/filters.toml). Each other one becomes a request, and then a task, stage by\n\
stage, as with `run --author model`. If the import is killed at any instant, the same command continues it."
)]
pub(super) struct CastArgs {
    /// Files with recordings
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Domain of the tasks. It gives base image and limits
    #[arg(long, value_name = "ID", default_value = "system_admin")]
    pub(super) domain: String,
    /// Seed of all randomness
    #[arg(long, default_value_t = 7)]
    pub(super) seed: u64,
    /// Run folder. It is created if it is missing, and continued if it exists
    #[arg(long, short, value_name = "DIR", default_value = "out/casts")]
    pub(super) out: PathBuf,
    /// Attempts by a model that sees only the instruction and the machine. One of them has to pass
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(super) blind: u32,
    #[command(flatten)]
    pub(super) stages: StageArgs,
    /// Have a model write machine, solution and tests in a single reply each, without a shell to
    /// try them in first
    #[arg(long)]
    pub(super) oneshot: bool,
    /// Number of trials at once [default: 2 per core]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) jobs: Option<u32>,
    /// How thoroughly each task's verifier is tested
    #[arg(long, value_enum, default_value_t = RigorArg::Standard)]
    pub(super) rigor: RigorArg,
    #[command(flatten)]
    pub(super) model: ModelArgs,
}
