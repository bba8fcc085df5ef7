//! Arguments of commands that work on task directories.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::args::{HarborMode, RigorArg};
use super::args_rollout::ModelArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  termsmith screen out/demo/tasks --rigor full
  termsmith screen some-folder --rigor full --budget 120
  termsmith screen some-task --only attack:D-02 --only variant
  termsmith screen out/demo/tasks --as-harbor separate
  termsmith screen some-folder --clauses --blind 2 --base-url http://127.0.0.1:8000/v1 --model NAME

Certificates are written below --out. If the screening is killed at any instant, the same command continues it.")]
pub(super) struct ScreenArgs {
    /// Task directories, or folders of them
    #[arg(required = true)]
    pub(super) tasks: Vec<PathBuf>,
    /// How thoroughly verifiers are tested
    #[arg(long, value_enum, default_value_t = RigorArg::Standard)]
    pub(super) rigor: RigorArg,
    /// Seconds after which no further mutant of a task is started. The most informative mutants
    /// come first [default: try all mutants]
    #[arg(long, value_name = "SECONDS")]
    pub(super) budget: Option<u64>,
    /// Judge termsmith's own tasks as Harbor would: with the tests in a separate container, or in
    /// the solver's container, where attacks reach further
    #[arg(long, value_enum, value_name = "MODE")]
    pub(super) as_harbor: Option<HarborMode>,
    /// Only these rows of the certificate, in addition to build, untouched and reference: KIND or
    /// KIND:NAME (repeatable)
    #[arg(long, value_name = "ROW")]
    pub(super) only: Vec<String>,
    /// Have a model list what the instruction demands, and violate each demand. The model does not
    /// see the tests. Its clauses take the place of clauses.toml
    #[arg(long, conflicts_with = "summary")]
    pub(super) clauses: bool,
    /// Attempts by a model that sees only the instruction and the machine. One of them has to pass
    #[arg(long, value_name = "K", default_value_t = 0, conflicts_with = "summary")]
    pub(super) blind: u32,
    /// For a corpus: compare each result with the task's expect.toml, and run only the rows that it
    /// names
    #[arg(long, conflicts_with = "only")]
    pub(super) summary: bool,
    /// Folder for certificates and finished trials
    #[arg(long, short, value_name = "DIR", default_value = "out/screen")]
    pub(super) out: PathBuf,
    /// Number of trials at once [default: 2 per core]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) jobs: Option<u32>,
    #[command(flatten)]
    pub(super) model: ModelArgs,
}

#[derive(Debug, Args)]
pub(super) struct VerifyCertificateArgs {
    /// Task directories, or folders of them
    #[arg(required = true)]
    pub(super) tasks: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct TryArgs {
    /// Task directory
    pub(super) task: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Task directory
    pub(super) task: PathBuf,
    /// Solution to judge: a script, or a folder with solve.sh and the files that it uses [default:
    /// the task's solution/]
    #[arg(long, value_name = "PATH")]
    pub(super) solution: Option<PathBuf>,
    /// Judge the environment without any solution
    #[arg(long, conflicts_with = "solution")]
    pub(super) nothing: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "A task declares an exception from a rule in its task.toml, with a reason:\n  \
[metadata.termsmith.lint]\n  ignore = { shared-verifier = \"the tests only read files\" }\n\
Exit status 1 if there is a finding of severity error: a defect that makes a trial impossible, or, in a task that \
termsmith made,\na defect of its recipe.")]
pub(super) struct LintArgs {
    /// Task directories of any origin, or folders of them
    #[arg(value_name = "DIR", required_unless_present_any = ["explain", "rules"])]
    pub(super) dirs: Vec<PathBuf>,
    /// Output format of findings
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) format: Option<LintFormat>,
    /// Explain a rule
    #[arg(long, value_name = "RULE", conflicts_with_all = ["dirs", "rules"])]
    pub(super) explain: Option<String>,
    /// List the rules
    #[arg(long, conflicts_with = "dirs")]
    pub(super) rules: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LintFormat {
    /// path:line: severity[rule] message
    Text,
    /// For scripts; see `termsmith schema lint`
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}
