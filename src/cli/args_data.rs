//! Options of every command that writes the Parquet files.

use clap::{Args, ValueEnum};

use crate::export::pairs::RewardKind;
use crate::export::train::FailedTurns;

/// Export options.
#[derive(Clone, Debug, Args)]
pub(super) struct DataArgs {
    /// Discount factor of later turns in the DMPO pairs, above 0 and at most 1
    #[arg(long, value_name = "G")]
    pub(super) gamma: Option<f64>,
    /// Trajectories in the SFT data
    #[arg(long, value_enum, default_value_t = SftArg::Passing)]
    pub(super) sft: SftArg,
    /// Turns of the SFT data whose command failed, or that wrote what was later repaired
    #[arg(long, value_enum, default_value_t = FailedTurnsArg::Mask)]
    pub(super) failed_turns: FailedTurnsArg,
    /// Reward that the two sides of a pair are compared by
    #[arg(long, value_enum, default_value_t = PairRewardArg::F2p)]
    pub(super) pair_reward: PairRewardArg,
    /// Put `[masked: <kind>]` in the place of values that look like credentials, such as API keys
    /// and private keys. Without it they are counted, and `report/secrets.json` names the
    /// trajectories
    #[arg(long)]
    pub(super) mask_secrets: bool,
}

/// `train::FailedTurns` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailedTurnsArg {
    /// Their flag `train` is false
    Mask,
    /// They are trained on
    All,
    /// Trajectories with such turns are left out
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
    /// Weighted share of the checks that fail on the untouched environment, and 0 where another check is broken
    F2p,
    /// Share of all checks
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
    /// All trajectories with a message, failed ones included
    All,
}
