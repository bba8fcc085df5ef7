//! The command line of `rollout`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::args_agent::{AgentData, Shares};
use super::args_data::DataArgs;
use crate::agent::catalog::AgentName;
use crate::agent::{SCAFFOLDS, ScaffoldEntry};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  termsmith rollout out/demo/tasks --scaffold oracle
  termsmith rollout out/demo/tasks --scaffold terminus --early-wake --attempts 4 --max-usd 5
  termsmith rollout some-task --scaffold bash --base-url http://127.0.0.1:8000/v1 --model qwen --arm self-correction

Models are read from termsmith.toml (`termsmith schema settings`), or named by --base-url and --model. If a rollout is killed at
any instant, the same command continues it: no reply is paid for twice, and recorded actions are replayed without asking the model.")]
pub(super) struct RolloutArgs {
    /// Task directories, or folders of them [default: the tasks of --out]
    pub(super) tasks: Vec<PathBuf>,
    /// Protocol between model and sandbox
    #[arg(long, value_parser = scaffolds(), default_value = SCAFFOLDS[0].option)]
    pub(super) scaffold: ScaffoldArg,
    /// Command line of the agent, for the scaffold `command`. $INSTRUCTION_FILE, $MODEL and
    /// $OPENAI_BASE_URL are set
    #[arg(long, value_name = "COMMAND", required_if_eq("scaffold", "command"))]
    pub(super) agent_command: Option<String>,
    /// In place of --scaffold: an installed agent, as NAME or NAME@VERSION (`termsmith agent list`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["scaffold", "agent_command"])]
    pub(super) agent: Option<AgentName>,
    /// In place of --scaffold: several agents and scaffolds, and their shares of the attempts, as
    /// NAME=SHARE,…
    #[arg(long, value_name = "SHARES", conflicts_with_all = ["scaffold", "agent"])]
    pub(super) agents: Option<Shares>,
    #[command(flatten)]
    pub(super) agent_data: AgentData,
    /// Assistance that the agent gets in addition to the task
    #[arg(long, value_enum, default_value_t = ArmArg::Base)]
    pub(super) arm: ArmArg,
    /// Tell the agent to pass without doing the work. A pass revokes the task's certificate
    #[arg(long, value_enum, value_name = "VIEW")]
    pub(super) adversary: Option<AdversaryArg>,
    /// Rollouts of each task. With the arm `fork`, the parent rollout is made in addition
    #[arg(long, short = 'k', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) attempts: u32,
    /// Number of rollouts at once [default: 2 per core]
    #[arg(long, short = 'j', visible_alias = "concurrency", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) jobs: Option<u32>,
    /// Number of further rounds in the arm `self-correction`
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) rounds: u32,
    /// Number of turns that the attempts of the arm `fork` share with the parent rollout
    #[arg(long, value_name = "TURNS", default_value_t = 2)]
    pub(super) fork_at: usize,
    /// Source of failure labels, in addition to the detectors
    #[arg(long, value_enum, default_value_t = JudgeArg::None)]
    pub(super) judge: JudgeArg,
    /// If a conversation would not fit the model's context, continue it from a summary instead of
    /// ending it. Its parts become separate rows of sft, and no rows of pref_dmpo
    #[arg(long, visible_alias = "summarize")]
    pub(super) summarise: bool,
    /// With a terminus scaffold: end a wait as soon as its commands are done. Harbor always waits
    /// the full time
    #[arg(long)]
    pub(super) early_wake: bool,
    /// Run folder. It is created if it is missing, and continued if it exists
    #[arg(long, short, value_name = "DIR", default_value = "out/rollouts")]
    pub(super) out: PathBuf,
    /// Also write all rollouts of the run folder to this folder, as a job for `harbor view` and
    /// `harbor traces export`
    #[arg(long, value_name = "DIR")]
    pub(super) harbor_jobs: Option<PathBuf>,
    #[command(flatten)]
    pub(super) data: DataArgs,
    #[command(flatten)]
    pub(super) limits: TrialArgs,
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// Ask the model for the log-probabilities of tokens
    #[arg(long, help_heading = "Models")]
    pub(super) logprobs: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  termsmith judge --out out/demo
  termsmith judge --out out/imported --base-url http://127.0.0.1:8000/v1 --model qwen --max-tokens 2000000

The role `judge` reads each rollout, with long texts shortened. It labels failures, and names the steps that show them. The labels of
the detectors are kept. No verdict and no reward changes. A rollout is not judged again by the same model and texts.")]
pub(super) struct JudgeArgs {
    /// Run folder
    #[arg(long, short, value_name = "DIR", default_value = "out/rollouts")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) data: DataArgs,
    #[command(flatten)]
    pub(super) model: ModelArgs,
}

/// Limits of one rollout.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits of a rollout")]
pub(super) struct TrialArgs {
    /// Maximum number of the agent's messages
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(super) max_steps: u32,
    /// Time limit of one command in seconds, in scaffolds that wait for commands
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(super) command_seconds: u64,
    /// Time limit of the whole rollout in seconds, with the model's time [default: the task's agent
    /// timeout]
    #[arg(long, value_name = "SECONDS")]
    pub(super) trial_seconds: Option<u64>,
    /// Maximum number of tokens of a rollout, input and output together
    #[arg(long, value_name = "N")]
    pub(super) trial_tokens: Option<u64>,
    /// Maximum cost of a rollout in US dollars. The settings must name prices
    #[arg(long, value_name = "DOLLARS")]
    pub(super) trial_usd: Option<f64>,
    /// Maximum bytes of output in one observation, in scaffolds that have such a limit
    #[arg(long, value_name = "BYTES", default_value_t = 10_000)]
    pub(super) output_bytes: usize,
}

/// Models and their budget.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Models")]
pub(super) struct ModelArgs {
    /// Settings file with endpoints and roles [default: termsmith.toml, if it exists]
    #[arg(long, value_name = "FILE", env = "TERMSMITH_SETTINGS")]
    pub(super) settings: Option<PathBuf>,
    /// OpenAI-compatible server for every role but `weak`, instead of a settings file
    #[arg(long, value_name = "URL", requires = "model")]
    pub(super) base_url: Option<String>,
    /// Model name. With --base-url it is the model of every role but `weak`. Otherwise it replaces
    /// the settings' model of the one role that the command calls, e.g. of the agent in `rollout`
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// With --base-url: the environment variable that holds the API key
    #[arg(long, value_name = "VARIABLE", requires = "base_url")]
    pub(super) api_key_env: Option<String>,
    /// With --base-url: maximum tokens per reply [default: 16384 for the roles that write tasks,
    /// 4096 for the others]
    #[arg(long, value_name = "N", requires = "base_url")]
    pub(super) reply_tokens: Option<u32>,
    /// Maximum cost in US dollars of all commands in this run folder together
    #[arg(long, value_name = "DOLLARS")]
    pub(super) max_usd: Option<f64>,
    /// Maximum tokens of all commands in this run folder together, input and output
    #[arg(long, value_name = "N")]
    pub(super) max_tokens: Option<u64>,
    /// Seconds after which this command sends no further request
    #[arg(long, value_name = "SECONDS")]
    pub(super) max_wall: Option<u64>,
    /// Answer calls from a recording instead of the endpoints. It may be compressed (`.zst`)
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(super) cassette: Option<PathBuf>,
    /// Append every call to a recording
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
}

/// A scaffold in which a model acts, or a solver without a model.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScaffoldArg {
    Model(&'static ScaffoldEntry),
    Scripted,
    Oracle,
    Nop,
}

/// The solvers without a model: option value, help, and solver.
const WITHOUT_MODEL: [(&str, &str, ScaffoldArg); 3] = [
    (
        "scripted",
        "The recipe's scripted expert, for tasks that `termsmith run` made in this run folder",
        ScaffoldArg::Scripted,
    ),
    ("oracle", "No agent: the task's own solution", ScaffoldArg::Oracle),
    ("nop", "No agent: nothing is done", ScaffoldArg::Nop),
];

/// The values of `--scaffold`: every registered scaffold, then the solvers without a model.
fn scaffolds() -> impl TypedValueParser<Value = ScaffoldArg> {
    let models = SCAFFOLDS.iter().map(|entry| (entry.option, entry.description, ScaffoldArg::Model(entry)));
    let values: Vec<_> = models.chain(WITHOUT_MODEL).collect();
    let listed = values.iter().map(|(value, help, _)| PossibleValue::new(*value).help(*help));
    PossibleValuesParser::new(listed.collect::<Vec<_>>()).try_map(move |chosen| {
        let found = values.iter().find(|(value, ..)| *value == chosen);
        found.map(|(.., scaffold)| *scaffold).ok_or("there is no such scaffold")
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ArmArg {
    /// No assistance
    Base,
    /// After a failure: the failing checks' names and messages, and another round
    SelfCorrection,
    /// Key steps without code, from the role `planner`
    Plan,
    /// Answers to at most three questions, from the role `mentor`, which gives no code
    Interactive,
    /// Both plan and interactive
    PlanInteractive,
    /// None, but several attempts begin in the state that the first rollout had after --fork-at
    /// turns
    Fork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum JudgeArg {
    /// Only detectors, no model
    None,
    /// The model of the role `judge`
    Model,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AdversaryArg {
    /// The agent sees only the task
    Blind,
    /// The agent sees the task and its tests
    Tests,
}
