//! The command line.

use std::fmt;

use clap::{Parser, ValueEnum};

/// A task whose tests run no program of the solver. So a trial has two containers: solver and
/// verifier.
const RECIPE: &str = "data_science/settle-meter-readings";

/// Measures termsmith, compared with the engine that it runs on.
#[derive(Debug, Parser)]
#[command(
    name = "engine",
    after_help = "PEER_HARBOR names the `harbor` command to measure as a peer, if any."
)]
pub(crate) struct Args {
    /// What to measure [default: everything]
    #[arg(value_enum)]
    sections: Vec<SectionName>,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Most sandboxes to hold at once
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) most: usize,
    /// The recipe whose task is tried. Its tests should run no programs of the solver
    #[arg(long, value_name = "DOMAIN/NAME", default_value = RECIPE)]
    pub(crate) recipe: String,
    /// Only this part of the section `agents`
    #[arg(long, hide = true, value_name = "URL")]
    pub(crate) fleet: Option<String>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SectionName {
    /// One command in a running sandbox, compared with `docker exec`
    Latency,
    /// Launch to removal of a sandbox, compared with bare create, start and remove
    Launch,
    /// Trials per hour, compared with the engine's own start rate and Harbor
    Trials,
    /// Screening: trials per second, a whole standard gauntlet, oracle and nop compared with Harbor
    Gauntlet,
    /// Overhead of a scaffold per action, compared with Harbor's terminus-2; 500 rollouts at once
    Agents,
    /// Sandboxes held at once
    Held,
    /// Peak memory of termsmith itself
    Memory,
}

impl Args {
    /// The sections asked for, in their usual order.
    pub(crate) fn sections(&self) -> Vec<SectionName> {
        let asked = |name: &SectionName| self.sections.is_empty() || self.sections.contains(name);
        SectionName::value_variants().iter().copied().filter(asked).collect()
    }
}

impl fmt::Display for SectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latency => "latency",
            Self::Launch => "launch",
            Self::Trials => "trials",
            Self::Gauntlet => "gauntlet",
            Self::Agents => "agents",
            Self::Held => "held",
            Self::Memory => "memory",
        })
    }
}
