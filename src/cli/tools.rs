//! `completions` and `man`: generated from the description of the command line.

use std::path::Path;

use clap::CommandFactory as _;

use super::args::Cli;
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::{paths, say};

pub(super) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "termsmith", &mut text);
    say::text(&String::from_utf8_lossy(&text))?;
    Ok(Status::Ok)
}

pub(super) fn man(out: Option<&Path>) -> Outcome {
    match out {
        Some(folder) => {
            paths::check_output_folder(folder, "--out")?;
            let failed = |error| {
                let message = format!("failed to write manual pages to `{}`: {error}", folder.display());
                Failure::message(Status::Io, message)
            };
            std::fs::create_dir_all(folder).map_err(failed)?;
            clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut text)
                .map_err(Failure::io("format the manual page"))?;
            say::text(&String::from_utf8_lossy(&text))?;
        }
    }
    Ok(Status::Ok)
}
