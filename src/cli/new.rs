//! `new`: writes a working domain spec or recipe to start from.

use std::path::{Path, PathBuf};

use super::args::NewWhat;
use super::beside::write_beside;
use super::config::Config;
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::say;
use crate::domain::{load_domains, new_domain, new_recipe};
use crate::model::FileTree;

pub(super) fn new(config: &Config, what: &NewWhat) -> Outcome {
    let assets = config.assets()?;
    let specs = load_domains(&assets)?;
    let bad = |error| Failure::new(Status::Usage, error);
    let (files, next) = match what {
        NewWhat::Domain { name } => {
            let next = format!("next, write its recipes: termsmith --domains domains new recipe {name}/NAME");
            (new_domain(&assets, &specs, name).map_err(bad)?, next)
        }
        NewWhat::Recipe { name } => {
            let next = format!("next: termsmith --templates templates recipe check {name}");
            (new_recipe(&assets, &specs, name).map_err(bad)?, next)
        }
    };
    for path in write(config, &files)? {
        say::line(format!("wrote {}", path.display()))?;
    }
    say::line(next)?;
    Ok(Status::Ok)
}

/// Writes new files to the folders in use, or to `domains/` and `templates/` in the current folder.
/// Existing files are not replaced.
fn write(config: &Config, files: &FileTree) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for (path, file) in files.iter() {
        let place = |folder: &str, with: &Option<PathBuf>| {
            let rest = path.as_str().strip_prefix(folder)?.strip_prefix('/')?;
            Some(with.as_deref().unwrap_or(Path::new(folder)).join(rest))
        };
        let target = place("domains", &config.overrides.domains)
            .or_else(|| place("templates", &config.overrides.templates))
            .unwrap_or_else(|| PathBuf::from(path.as_str()));
        if target.exists() {
            return Err(Failure::usage(format!(
                "`{}` already exists\nhint: choose another name, or remove it",
                target.display()
            )));
        }
        write_beside(&target, file)?;
        written.push(target);
    }
    Ok(written)
}
