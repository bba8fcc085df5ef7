//! Writes the command that a dataset card names. It has the options that the rows depend on.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::{Parser as _, ValueEnum};

use super::args::{Cli, Command, RunArgs, Selection};
use super::args_data::DataArgs;
use crate::assets::Overrides;
use crate::syntax::shell_word;

/// An option, and its value. A flag's value is empty.
type Given = (Cow<'static, str>, Option<String>);

/// The command that writes the rows of `run` again: its seed and count, and every option that is
/// not the default. Options that do not affect the rows are left out: paths, concurrency, the model
/// server's address.
pub(super) fn of_run(args: &RunArgs, overrides: &Overrides) -> String {
    let Selection { seed, count, .. } = &args.selection;
    let usual = usual();
    let given = options(args).into_iter().filter(|option| !usual.contains(option));
    let place = |place: &Option<PathBuf>| place.as_ref().map(|place| place.display().to_string());
    let folders = [("--domains", place(&overrides.domains)), ("--templates", place(&overrides.templates))];
    line(&format!("termsmith run --seed {seed} --count {count}"), given.chain(folders.map(named)))
}

/// The command that writes the rows of a run folder with these options.
pub(super) fn of_export(args: &DataArgs) -> String {
    line("termsmith export", export_options(args).into_iter())
}

/// The options of `termsmith run` without arguments.
fn usual() -> Vec<Given> {
    match Cli::try_parse_from(["termsmith", "run"]).map(|cli| cli.command) {
        Ok(Command::Run(args)) => options(&args),
        _ => Vec::new(),
    }
}

fn options(args: &RunArgs) -> Vec<Given> {
    let only = &args.selection.only;
    let before = [
        ("--domain", (!only.is_empty()).then(|| only.join(","))),
        ("--author", name(&args.author)),
        ("--blind", args.blind.map(|blind| blind.to_string())),
        ("--difficulty-attempts", Some(args.difficulty_attempts.to_string())),
    ];
    let after = [
        ("--oneshot", args.oneshot.then(String::new)),
        ("--attempts", Some(args.attempts.to_string())),
        ("--scaffolds", Some(args.scaffolds.typed.clone())),
        ("--shard", args.shard.clone()),
        ("--image-prefix", args.image_prefix.clone()),
        ("--verifier-mode", name(&args.verifier_mode)),
        ("--rigor", name(&args.rigor)),
    ];
    let stages = args.stages.given().map(|(option, count)| (option.into(), Some(count.to_string())));
    let mut options: Vec<Given> =
        before.map(named).into_iter().chain(stages).chain(after.map(named)).collect();
    options.extend(export_options(&args.data));
    options
}

fn export_options(args: &DataArgs) -> [Given; 5] {
    [
        ("--sft", name(&args.sft)),
        ("--failed-turns", name(&args.failed_turns)),
        ("--pair-reward", name(&args.pair_reward)),
        ("--gamma", args.gamma.map(|gamma| gamma.to_string())),
        ("--mask-secrets", args.mask_secrets.then(String::new)),
    ]
    .map(named)
}

fn named((option, value): (&'static str, Option<String>)) -> Given {
    (option.into(), value)
}

/// The value as it is typed.
fn name(value: &impl ValueEnum) -> Option<String> {
    Some(value.to_possible_value()?.get_name().to_owned())
}

/// `command` with the options that have a value, quoted for a shell.
fn line(command: &str, options: impl Iterator<Item = Given>) -> String {
    let mut line = command.to_owned();
    for (option, value) in options {
        let Some(value) = value else { continue };
        line.push(' ');
        line.push_str(&option);
        if !value.is_empty() {
            line.push(' ');
            line.push_str(&shell_word(&value));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_names_what_its_rows_follow_from() {
        let check = |typed: &[&str], expect: &str| {
            let words = ["termsmith", "run", "--seed", "5", "--count", "8"].iter().chain(typed);
            let cli = Cli::try_parse_from(words).unwrap();
            let overrides = Overrides { domains: cli.domains, templates: cli.templates };
            let Command::Run(args) = cli.command else { panic!("{typed:?}") };
            assert_eq!(
                of_run(&args, &overrides),
                format!("termsmith run --seed 5 --count 8{expect}"),
                "{typed:?}"
            );
        };
        let same = |typed: &str| {
            check(&typed.split(' ').collect::<Vec<_>>(), &format!(" {typed}"));
        };
        check(&[], "");
        // Paths, concurrency and servers are left out.
        check(
            &["--out", "out/x", "-j", "3", "--base-url", "http://h/v1", "--model", "m", "--max-usd", "2"],
            "",
        );
        check(
            &["--rigor", "standard", "--attempts", "4", "--scaffolds", "terminus=3,bash=1,bash-block=1"],
            "",
        );
        check(&["--domain", "coding", "--domain", "games"], " --domain coding,games");
        same("--author mixed --blind 2 --difficulty-attempts 3 --mistakes 0 --oneshot");
        same("--attempts 6 --scaffolds bash=1");
        same("--shard 0/2 --image-prefix registry.example/x --verifier-mode shared --rigor full");
        same("--sft all --failed-turns drop --pair-reward binary --gamma 0.9");
        check(
            &["--templates", "my templates", "--domains", "specs"],
            " --domains specs --templates 'my templates'",
        );
    }

    #[test]
    fn exports_name_their_options() {
        let check = |typed: &[&str], expect: &str| {
            let cli = Cli::try_parse_from(["termsmith", "export"].iter().chain(typed)).unwrap();
            let Command::Export(args) = cli.command else { panic!("{typed:?}") };
            assert_eq!(of_export(&args.data), expect, "{typed:?}");
        };
        check(&[], "termsmith export --sft passing --failed-turns mask --pair-reward f2p");
        check(
            &["--sft", "all", "--gamma", "0.5"],
            "termsmith export --sft all --failed-turns mask --pair-reward f2p --gamma 0.5",
        );
    }
}
