//! The command line of `agent`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use crate::agent::catalog::AgentName;

#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// Download an agent, and keep it on the engine as a layer that containers mount
    Add(AddArgs),
    /// List the agents, and which of them are installed
    List {
        #[command(flatten)]
        data: AgentData,
    },
    /// Start an agent in the image of a task, and compare what both need
    Check {
        /// NAME or NAME@VERSION
        agent: AgentName,
        /// Task directory [default: say only whether the agent is installed]
        task: Option<PathBuf>,
        #[command(flatten)]
        data: AgentData,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  termsmith agent add codex
  termsmith agent add claude-code@2.1.332

Each archive is compared with the hash in the agent's lock file. A version without a lock is resolved from the registries, and
locked on this host.")]
pub(super) struct AddArgs {
    /// NAME or NAME@VERSION
    pub(super) agent: AgentName,
    /// Ignore the present lock, and write another one to FILE
    #[arg(long, value_name = "FILE")]
    pub(super) relock: Option<PathBuf>,
    #[command(flatten)]
    pub(super) data: AgentData,
    /// Address of the npm registry
    #[arg(long, value_name = "URL", env = "NPM_CONFIG_REGISTRY", help_heading = "Registries")]
    pub(super) npm: Option<String>,
    /// Address of a Python package index, for pip
    #[arg(long, value_name = "URL", env = "PIP_INDEX_URL", help_heading = "Registries")]
    pub(super) pypi: Option<String>,
    /// Address of the host of Python packages
    #[arg(long, value_name = "URL", env = "TERMSMITH_PYPI_FILES", help_heading = "Registries")]
    pub(super) pypi_files: Option<String>,
    /// Address of a mirror of Debian
    #[arg(long, value_name = "URL", env = "TERMSMITH_DEBIAN", help_heading = "Registries")]
    pub(super) debian: Option<String>,
}

/// Agents and their shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shares(pub(super) Vec<(String, u32)>);

/// Larger shares could overflow the sum.
const MOST_SHARE: u32 = 1000;

/// Why a list of shares is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum SharesError {
    #[error("`{0}` is not NAME=SHARE, with a whole number from 1 to {MOST_SHARE}")]
    NotAShare(String),
    #[error("`{0}` is named twice")]
    Twice(String),
}

impl FromStr for Shares {
    type Err = SharesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut shares: Vec<(String, u32)> = Vec::new();
        for part in text.split(',') {
            let wrong = || SharesError::NotAShare(part.to_owned());
            let (name, share) = part.rsplit_once('=').ok_or_else(wrong)?;
            let (name, share) = (name.trim(), share.trim().parse().map_err(|_| wrong())?);
            if name.is_empty() || !(1..=MOST_SHARE).contains(&share) {
                return Err(wrong());
            }
            if shares.iter().any(|(known, _)| known == name) {
                return Err(SharesError::Twice(name.to_owned()));
            }
            shares.push((name.to_owned(), share));
        }
        Ok(Self(shares))
    }
}

/// Where this user's locks and downloads are.
#[derive(Clone, Debug, Args)]
pub(super) struct AgentData {
    /// Folder of the locks and downloads of agents [default: ~/.local/share/termsmith]
    #[arg(long, value_name = "DIR", env = "TERMSMITH_DATA")]
    pub(super) data_dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        let check = |text: &str, expect: Result<&[(&str, u32)], SharesError>| {
            let expect = expect.map(|shares| {
                Shares(shares.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect())
            });
            assert_eq!(text.parse::<Shares>(), expect, "{text}");
        };
        check("codex=2,terminus=1", Ok(&[("codex", 2), ("terminus", 1)]));
        check("codex@0.171.0=1", Ok(&[("codex@0.171.0", 1)]));
        let wrong = |text: &str| Err(SharesError::NotAShare(text.to_owned()));
        check("codex", wrong("codex"));
        check("codex=0", wrong("codex=0"));
        check("codex=1,=1", wrong("=1"));
        check("codex=1001", wrong("codex=1001"));
        check("codex=1,codex=2", Err(SharesError::Twice("codex".to_owned())));
    }
}
