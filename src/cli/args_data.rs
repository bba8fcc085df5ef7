//! Options of every command that writes the Parquet files.

use clap::{Args, ValueEnum};

use crate::export::pairs::RewardKind;
use crate::export::train::FailedTurns;

/// Export options.
#[derive(Clone, Debug, Args)]
pub(super) struct DataArgs {
    /// Discount factor of later turns in the DMPO pairs: above 0, at most 1
    #[arg(long, value_name = "G")]
    pub(super) gamma: Option<f64>,
    /// Trajectories that the SFT data contains
    #[arg(long, value_enum, default_value_t = SftArg::Passing)]
    pub(super) sft: SftArg,
    /// What to do in the SFT data with turns whose command failed, or whose result was repaired
    /// later
    #[arg(long, value_enum, default_value_t = FailedTurnsArg::Mask)]
    pub(super) failed_turns: FailedTurnsArg,
    /// Reward that decides which side of a pair is better
    #[arg(long, value_enum, default_value_t = PairRewardArg::F2p)]
    pub(super) pair_reward: PairRewardArg,
    /// Replace values that look like credentials, e.g. API keys and private keys, by `[masked:
    /// <kind>]`. Without this option they are only counted, and `report/secrets.json` names the
    /// trajectories
    #[arg(long)]
    pub(super) mask_secrets: bool,
}

/// `train::FailedTurns` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailedTurnsArg {
    /// Set their flag `train` to false
    Mask,
    /// Train on them
    All,
    /// Leave out trajectories with such turns
    Drop,
}

impl From<FailedTurnsArg> for FailedTurns {
    fn from(arg: FailedTurnsArg) -> Self {
        match arg {
            FailedTurnsArg::Mask => Self::Mask,
            FailedTurnsArg::All => Self::All,
            FailedTurnsArg::Drop => Self::Drop,
        }
    }
}

/// `pairs::RewardKind` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PairRewardArg {
    /// Weighted share of the checks that fail on the untouched environment; 0 if another check is
    /// broken
    F2p,
    /// Weighted share of all checks
    PassRatio,
    /// 1 if every check passed, else 0
    Binary,
}

impl From<PairRewardArg> for RewardKind {
    fn from(arg: PairRewardArg) -> Self {
        match arg {
            PairRewardArg::F2p => Self::F2p,
            PairRewardArg::PassRatio => Self::PassRatio,
            PairRewardArg::Binary => Self::Binary,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SftArg {
    /// Only trajectories that passed
    Passing,
    /// All trajectories with a message, also failed ones
    All,
}
