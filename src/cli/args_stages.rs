//! Options for the stages of writing a task. They come from the table of stages.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};

use crate::authoring::{StageCounts, stage_options};

/// One option for each stage that has one, e.g. `--mistakes K`.
#[derive(Clone, Debug, Default)]
pub(super) struct StageArgs {
    pub(super) counts: StageCounts,
}

impl StageArgs {
    /// The options that the stages have, with their values.
    pub(super) fn given(&self) -> impl Iterator<Item = (String, u32)> {
        self.counts.iter().map(|(stage, count)| (format!("--{stage}"), count))
    }
}

impl FromArgMatches for StageArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let value = |name: &str| matches.get_one::<u32>(name).copied();
        let counts = stage_options().map(|option| (option.name, value(option.name).unwrap_or(option.usual)));
        Ok(Self { counts: counts.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for StageArgs {
    fn augment_args(command: Command) -> Command {
        command.args(stage_options().map(|option| {
            Arg::new(option.name)
                .long(option.name)
                .value_name("K")
                .value_parser(value_parser!(u32).range(..=i64::from(option.most)))
                .help(format!("{} [default: {}]", option.help, option.usual))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
