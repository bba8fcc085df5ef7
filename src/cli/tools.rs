//! Shell completions and manual pages, generated from the command line's own description.

use std::path::Path;

use clap::CommandFactory as _;

use super::args::Cli;
use super::exit::Status;
use super::failure::Outcome;
use super::say;

pub(super) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "termsmith", &mut text);
    say::text(&String::from_utf8_lossy(&text))?;
    Ok(Status::Ok)
}

pub(super) fn man(out: Option<&Path>) -> Outcome {
    match out {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(Cli::command(), folder)?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            say::text(&String::from_utf8_lossy(&text))?;
        }
    }
    Ok(Status::Ok)
}
