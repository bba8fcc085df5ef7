//! The command line as typed. [`super::config`] resolves the global flags.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::args_agent::AgentCommand;
use super::args_data::DataArgs;
use super::args_import::ImportArgs;
use super::args_rollout::{JudgeArgs, ModelArgs, RolloutArgs};
use super::args_stages::StageArgs;
use super::args_tasks::{LintArgs, ScreenArgs, TryArgs, VerifyArgs, VerifyCertificateArgs};
use super::exit::Status;
use crate::agent::{ScaffoldMix, ScaffoldMixError};
use crate::domain::Authors;
use crate::harbor::DeclaredVerifier;
use crate::sandbox::{ENGINES, EngineEntry};

const EXAMPLES: &str = "\
Examples:
  termsmith doctor --fix                        install and start what is missing
  termsmith run --out out/demo --seed 7 --count 24
  termsmith plan --count 100                    the tasks of a run, and their coverage
  termsmith try out/demo/tasks/coding-…         work on a task yourself
  termsmith recipe check coding/…               render, screen and roll out one recipe

Exit statuses:
";

/// Heading of the options that every command has.
const GLOBAL: &str = "Options of every command";

fn after_help() -> String {
    Status::TABLE
        .iter()
        .fold(EXAMPLES.to_owned(), |text, (_, code, meaning)| text + &format!("  {code:>3}  {meaning}\n"))
}

/// Turns domain specs into verified terminal environments and training data.
#[derive(Debug, Parser)]
#[command(name = "termsmith", version, about, after_help = after_help(), max_term_width = 110)]
pub(super) struct Cli {
    /// Domain specs to use instead of the built-in ones
    #[arg(long, global = true, value_name = "DIR", env = "TERMSMITH_DOMAINS", help_heading = GLOBAL)]
    pub(super) domains: Option<PathBuf>,
    /// Templates (recipes, bases, prompts, rules) to use instead of all the built-in ones
    #[arg(long, global = true, value_name = "DIR", env = "TERMSMITH_TEMPLATES", help_heading = GLOBAL)]
    pub(super) templates: Option<PathBuf>,
    /// The container engine to use
    #[arg(long, global = true, value_name = "NAME", env = "TERMSMITH_ENGINE", value_parser = engines(), default_value = ENGINES[0].name, help_heading = GLOBAL)]
    pub(super) engine: &'static EngineEntry,
    /// Print JSON for scripts instead of text for people
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The values of `--engine`: every registered engine.
fn engines() -> impl TypedValueParser<Value = &'static EngineEntry> {
    let listed = ENGINES.iter().map(|entry| PossibleValue::new(entry.name).help(entry.description));
    PossibleValuesParser::new(listed.collect::<Vec<_>>())
        .try_map(|chosen| ENGINES.iter().find(|entry| entry.name == chosen).ok_or("no such engine"))
}

/// The flags for logs.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Log to standard error: -v what termsmith does, -vv also what its libraries do
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub(super) verbose: u8,
    /// Append a log to FILE, one JSON object per line
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(super) log_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The whole pipeline: plan, author, screen, roll out, export, audit
    Run(Box<RunArgs>),
    /// Show the tasks of a run and their coverage, without making them
    Plan(PlanArgs),
    /// Start a domain spec or a recipe from a working example
    New(NewArgs),
    /// Work with recipes
    #[command(subcommand)]
    Recipe(RecipeCommand),
    /// Write the Parquet files of a run again
    Export(ExportArgs),
    /// Show the coverage of a run: tasks planned, certified and solved by domain, skill and so on,
    /// and what has no task
    Audit(AuditArgs),
    /// Attack, mutate and re-run the verifiers of tasks of any origin
    Screen(Box<ScreenArgs>),
    /// Run agents on tasks of any origin, and store their trajectories as data
    Rollout(Box<RolloutArgs>),
    /// Install agents such as Codex, for `rollout --agent`
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Import rollouts made elsewhere, e.g. Harbor job folders, trial folders, ATIF files
    Import(ImportArgs),
    /// Have a model label the failures in the rollouts of a run folder
    Judge(Box<JudgeArgs>),
    /// Compare models and scaffolds: pass@k, step scores, causes of failure, tokens and dollars
    Report(ReportArgs),
    /// Check that certificates match the files of their task directories
    VerifyCertificate(VerifyCertificateArgs),
    /// Open a task's sandbox for you to work in, and judge the result when you leave
    Try(TryArgs),
    /// Judge a solution of a task in the clean room
    Verify(VerifyArgs),
    /// Check tasks statically, without running them
    Lint(LintArgs),
    /// Print a trajectory or a task of a run
    Show(ShowArgs),
    /// Remove termsmith's containers and images
    Clean(CleanArgs),
    /// Report what this machine lacks; with --fix, also install it
    Doctor(DoctorArgs),
    /// Print the JSON Schema of a format
    Schema(SchemaArgs),
    /// Print shell completions
    Completions { shell: clap_complete::Shell },
    /// Print the manual page, or write all of them to a folder
    Man {
        /// Folder for termsmith.1, termsmith-run.1 and so on
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

impl Command {
    /// The command's name as typed, for logs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Plan(_) => "plan",
            Self::New(_) => "new",
            Self::Recipe(_) => "recipe",
            Self::Export(_) => "export",
            Self::Audit(_) => "audit",
            Self::Screen(_) => "screen",
            Self::Rollout(_) => "rollout",
            Self::Agent(_) => "agent",
            Self::Import(_) => "import",
            Self::Judge(_) => "judge",
            Self::Report(_) => "report",
            Self::VerifyCertificate(_) => "verify-certificate",
            Self::Try(_) => "try",
            Self::Verify(_) => "verify",
            Self::Lint(_) => "lint",
            Self::Show(_) => "show",
            Self::Clean(_) => "clean",
            Self::Doctor(_) => "doctor",
            Self::Schema(_) => "schema",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
        }
    }
}

/// The options that select a run's tasks.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Seed of all randomness
    #[arg(long, default_value_t = 7)]
    pub(super) seed: u64,
    /// Number of tasks to plan. A task that screening rejects is not replaced
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(super) count: u32,
    /// Only these domains (repeatable, or separated by commas)
    #[arg(long = "domain", value_name = "ID", value_delimiter = ',')]
    pub(super) only: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "If it is killed at any instant, the same command continues it. Finished work is never repeated.\n\
The first Ctrl-C finishes the work in progress, the second one stops immediately."
)]
pub(super) struct RunArgs {
    /// Run folder. It is created if it is missing, and continued if it exists
    #[arg(long, short, value_name = "DIR", default_value = "out/run")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Who writes the tasks
    #[arg(long, value_enum, default_value_t = AuthorArg::Recipe)]
    pub(super) author: AuthorArg,
    /// Attempts by a model that sees only the instruction and the machine. One of them has to pass
    /// [default: 1 if a model writes the tasks, else 0]
    #[arg(long, value_name = "K")]
    pub(super) blind: Option<u32>,
    /// Try each task that a model wrote K times with a strong and a weak solver (roles `solver` and
    /// `weak`), and rewrite tasks that are too easy or too hard
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(super) difficulty_attempts: u32,
    #[command(flatten)]
    pub(super) stages: StageArgs,
    /// Have a model write machine, solution and tests in a single reply each, without a shell to
    /// try them in first
    #[arg(long)]
    pub(super) oneshot: bool,
    /// Print the calls, tokens and dollars that a model's run will probably take, and a prompt of
    /// each stage. No model is asked, and nothing is started
    #[arg(long)]
    pub(super) estimate: bool,
    /// Rollouts of each certified task by its scripted expert. They come in pairs: the second one
    /// of a pair follows the first up to a decision, and then fails
    #[arg(long, default_value_t = 4)]
    pub(super) attempts: u32,
    /// Scaffolds of these rollouts and how often each is drawn, as NAME=WEIGHT,…
    #[arg(long, value_name = "WEIGHTS", default_value = "terminus=3,bash=1,bash-block=1")]
    pub(super) scaffolds: Weights,
    /// Number of trials at once [default: 2 per core]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) jobs: Option<u32>,
    /// Only part I of N of the plan, counted from 0. Parts can run on different machines
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<String>,
    /// Name task images PREFIX/<task> in task.toml. Use it with a registry that you push the images
    /// to
    #[arg(long, value_name = "PREFIX")]
    pub(super) image_prefix: Option<String>,
    /// Verifier mode that tasks declare for other harnesses. Termsmith itself always judges in its
    /// clean room
    #[arg(long, value_enum, value_name = "MODE", default_value_t = HarborMode::Separate)]
    pub(super) verifier_mode: HarborMode,
    /// How thoroughly each task's verifier is tested
    #[arg(long, value_enum, default_value_t = RigorArg::Standard)]
    pub(super) rigor: RigorArg,
    #[command(flatten)]
    pub(super) data: DataArgs,
    #[command(flatten)]
    pub(super) model: ModelArgs,
}

/// Weights of scaffolds, as typed and as read.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    pub(super) typed: String,
    pub(super) mix: ScaffoldMix,
}

impl FromStr for Weights {
    type Err = ScaffoldMixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self { typed: text.to_owned(), mix: text.parse()? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AuthorArg {
    /// The built-in recipes, offline
    Recipe,
    /// A language model, stage by stage. It is told the results of trials
    Model,
    /// Recipes for the cells of the plan that they fill, and a model for the others
    Mixed,
    /// A model, and only for cells of the plan that no recipe fills
    Fill,
}

impl From<AuthorArg> for Authors {
    fn from(author: AuthorArg) -> Self {
        match author {
            AuthorArg::Recipe => Self::Recipes,
            AuthorArg::Model => Self::Model,
            AuthorArg::Mixed => Self::Mixed,
            AuthorArg::Fill => Self::Fill,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Who writes the tasks
    #[arg(long, value_enum, default_value_t = AuthorArg::Recipe)]
    pub(super) author: AuthorArg,
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    #[command(subcommand)]
    pub(super) what: NewWhat,
}

#[derive(Debug, Subcommand)]
pub(super) enum NewWhat {
    /// A domain spec, `domains/NAME.toml`
    Domain { name: String },
    /// A recipe, `templates/recipes/DOMAIN/NAME/`
    Recipe {
        /// DOMAIN/NAME
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum RecipeCommand {
    /// Render, lint, build, screen and roll out recipes for several seeds, and list their problems
    Check {
        /// DOMAIN/NAME (repeatable); all recipes if none is given
        names: Vec<String>,
        /// Number of seeds. Difficulties alternate
        #[arg(long, default_value_t = 3)]
        seeds: u32,
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Run folder that keeps the results, so that a second check repeats nothing
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Number of trials at once [default: 2 per core]
        #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
        jobs: Option<u32>,
        /// How thoroughly the verifier is tested
        #[arg(long, value_enum, default_value_t = RigorArg::Quick)]
        rigor: RigorArg,
        /// Number of further draws of the tests' random inputs that the reference and the second
        /// solution must pass [default: 0 at quick, 2 at standard, 10 at full]
        #[arg(long, value_name = "N")]
        draws: Option<u32>,
        /// Only these rows: KIND or KIND:NAME (repeatable), as in `screen --only`. `expert` alone
        /// runs only the expert's script
        #[arg(long, value_name = "ROW")]
        only: Vec<String>,
    },
    /// List the recipes
    List,
    /// Write the files that a recipe renders, without running anything
    Render {
        /// DOMAIN/NAME
        name: String,
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// A difficulty that the recipe declares [default: the first one]
        #[arg(long, value_enum)]
        difficulty: Option<DifficultyArg>,
        /// Folder to write to
        #[arg(long, short, value_name = "DIR")]
        out: PathBuf,
    },
}

/// `model::Difficulty` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DifficultyArg {
    Easy,
    Medium,
    Hard,
}

impl From<DifficultyArg> for crate::model::Difficulty {
    fn from(arg: DifficultyArg) -> Self {
        match arg {
            DifficultyArg::Easy => Self::Easy,
            DifficultyArg::Medium => Self::Medium,
            DifficultyArg::Hard => Self::Hard,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Run folder
    #[arg(long, short, value_name = "DIR", default_value = "out/run")]
    pub(super) out: PathBuf,
    /// Refuse pairs if a surface feature, e.g. the length, tells their sides apart. The card has
    /// the figures
    #[arg(long)]
    pub(super) strict: bool,
    #[command(flatten)]
    pub(super) data: DataArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Run folder
    #[arg(long, short, value_name = "DIR", default_value = "out/rollouts")]
    pub(super) out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Run folder
    #[arg(long, short, value_name = "DIR", default_value = "out/run")]
    pub(super) out: PathBuf,
}

/// `model::Rigor` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RigorArg {
    /// The reference twice, the second solution, known wrong solutions, and truncated solutions
    Quick,
    /// Also checks in another order, legal variants, 12 mutants, 6 violations of clauses, and all
    /// attacks that can share a trial
    Standard,
    /// Also all violations, 40 mutants, all attacks, leaks, and special conditions (clock, half a
    /// processor, offline, rebuilt image)
    Full,
}

impl From<RigorArg> for crate::model::Rigor {
    fn from(arg: RigorArg) -> Self {
        match arg {
            RigorArg::Quick => Self::Quick,
            RigorArg::Standard => Self::Standard,
            RigorArg::Full => Self::Full,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Trajectory id (or its beginning), or task name
    pub(super) id: String,
    /// Run folder
    #[arg(long, short, value_name = "DIR", default_value = "out/run")]
    pub(super) out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct CleanArgs {
    /// Also remove the images built for tasks, and the layers of agents
    #[arg(long)]
    pub(super) images: bool,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Run the engine's script for each missing part. It installs and starts what is missing
    #[arg(long)]
    pub(super) fix: bool,
    /// Print that script, so that you can read it before it runs as root
    #[arg(long, conflicts_with = "fix")]
    pub(super) print_fix: bool,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Which format
    #[arg(value_enum)]
    pub(super) format: SchemaFormat,
}

/// Where Harbor runs the tests of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HarborMode {
    /// In a container of their own, with what the solver left
    Separate,
    /// In the solver's container, after the solver
    Shared,
}

impl From<HarborMode> for DeclaredVerifier {
    fn from(mode: HarborMode) -> Self {
        match mode {
            HarborMode::Separate => Self::Separate,
            HarborMode::Shared => Self::Shared,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaFormat {
    /// domains/*.toml
    Domain,
    /// templates/recipes/*/*/recipe.toml
    Recipe,
    /// certificate.json
    Certificate,
    /// clauses.toml of a recipe or a task
    Clauses,
    /// timings.json, which `screen` writes beside a certificate
    Timings,
    /// termsmith.toml: model endpoints and the roles that use them
    Settings,
    /// What `lint --format json` prints
    Lint,
    /// report/audit.json
    Audit,
    /// report/rollouts.json
    Rollouts,
}
