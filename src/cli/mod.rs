//! The command line. Only this module reads flags and environment variables, and only this module
//! prints.

mod agent;
mod agent_check;
mod args;
mod args_agent;
mod args_data;
mod args_import;
mod args_rollout;
mod args_stages;
mod args_tasks;
mod authors;
mod beside;
mod card_command;
mod cast;
mod certificate;
mod config;
mod doctor;
mod estimate;
mod exit;
mod exported;
mod failure;
mod former;
mod inspect;
mod interrupt;
mod judging;
mod lint;
mod logging;
mod models;
mod new;
mod open;
mod paths;
mod plan;
mod printable;
mod progress;
mod recipe;
mod rollout;
mod rows;
mod run;
mod sandboxes;
mod say;
mod schema;
mod screen;
mod seen;
mod summary;
mod task;
mod tools;
mod tty;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command, RecipeCommand};
use config::Config;
pub use exit::Status;
use failure::Outcome;

/// Parses the command line, runs the command, and returns its exit status.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let config = Config::resolve(&cli);
    let ended = logging::install(&cli.log).and_then(|()| {
        let span =
            tracing::info_span!("termsmith", command = cli.command.name(), process = std::process::id());
        span.in_scope(|| {
            tracing::debug!(version = env!("CARGO_PKG_VERSION"), "command started");
            let ended = dispatch(&config, cli.command);
            let status = ended.as_ref().map_or_else(|failure| failure.status, |status| *status);
            tracing::debug!(status = status.code(), "command ended");
            ended
        })
    });
    match ended {
        Ok(status) => status.into(),
        Err(failure) => {
            say::error(&failure.error);
            failure.status.into()
        }
    }
}

fn dispatch(config: &Config, command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::run(config, &args),
        Command::Plan(args) => plan::plan(config, &args),
        Command::New(args) => new::new(config, &args.what),
        Command::Recipe(RecipeCommand::Check { names, seeds, from, out, jobs, rigor, draws, only }) => {
            let rigor = rigor.into();
            let options = recipe::CheckOptions { names, seeds, from, out, jobs, rigor, draws, only };
            recipe::check(config, &options)
        }
        Command::Recipe(RecipeCommand::List) => recipe::list(config),
        Command::Recipe(RecipeCommand::Render { name, seed, difficulty, out }) => {
            recipe::render(config, &name, seed, difficulty.map(Into::into), &out)
        }
        Command::Export(args) => inspect::export(config, &args),
        Command::Audit(args) => inspect::audit(config, &args),
        Command::Screen(args) => screen::screen(config, &args),
        Command::Rollout(args) => rollout::rollout(config, &args),
        Command::Agent(command) => agent::run(config, &command),
        Command::Import(args) => inspect::import(config, &args),
        Command::Judge(args) => judging::judge(config, &args),
        Command::Report(args) => inspect::report(config, &args),
        Command::VerifyCertificate(args) => certificate::verify_certificate(config, &args),
        Command::Lint(args) => lint::lint(config, &args),
        Command::Show(args) => inspect::show(config, &args),
        Command::Try(args) => task::try_task(config, &args),
        Command::Verify(args) => task::verify(config, &args),
        Command::Clean(args) => sandboxes::clean(config, &args),
        Command::Doctor(args) => doctor::run(config, &args),
        Command::Schema(args) => schema::schema(&args),
        Command::Completions { shell } => tools::completions(shell),
        Command::Man { out } => tools::man(out.as_deref()),
    }
}
