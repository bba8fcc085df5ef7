//! `lint`: checks tasks statically.

use std::fmt::Write as _;

use super::args_tasks::{LintArgs, LintFormat};
use super::config::{Config, Format};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::paths;
use super::say;
use crate::lint::{LintReport, Rule, Rules, TaskReport, lint_dir, sarif};

pub(super) fn lint(config: &Config, args: &LintArgs) -> Outcome {
    let rules = Rules::load(&config.assets()?)?;
    if let Some(id) = &args.explain {
        say::text(&explanation(find(&rules, id)?))?;
        return Ok(Status::Ok);
    }
    if args.rules {
        say::text(&list(&rules))?;
        return Ok(Status::Ok);
    }
    let mut tasks = Vec::new();
    for place in paths::tasks(&args.dirs)? {
        let findings = lint_dir(&rules, &place)?;
        tasks.push(TaskReport { path: place.display().to_string(), findings });
    }
    let report = LintReport::new(tasks);
    let default = if config.format == Format::Json { LintFormat::Json } else { LintFormat::Text };
    match args.format.unwrap_or(default) {
        LintFormat::Text => say::text(&report.text())?,
        LintFormat::Json => say::json(&report)?,
        LintFormat::Sarif => say::json(&sarif(&rules, &report))?,
    }
    Ok(if report.counts.errors == 0 { Status::Ok } else { Status::Failed })
}

fn find<'a>(rules: &'a Rules, id: &str) -> Result<&'a Rule, Failure> {
    rules.get(id).ok_or_else(|| {
        Failure::usage(format!("no lint rule `{id}`\nhint: `termsmith lint --rules` lists all"))
    })
}

fn explanation(rule: &Rule) -> String {
    let Rule { id, severity, own, message, hint, explain, source, .. } = rule;
    let mut weight = severity.as_str().to_owned();
    if own.as_str() != weight {
        // Writing to a String cannot fail.
        let _ = write!(weight, "; in tasks of termsmith's own: {}", own.as_str());
    }
    if rule.opt_in {
        weight.push_str("; in other tasks only if they name it in `extend-select`");
    }
    format!("{id}: {message}\n{weight}\n\n{explain}\n\nHint: {hint}.\nSource: {source}.\n")
}

fn list(rules: &Rules) -> String {
    let mut text = String::new();
    for rule in rules.iter() {
        let severity = if rule.opt_in { "opt-in" } else { rule.severity.as_str() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{severity:<10} {:<34} {}", rule.id, rule.message);
    }
    text
}
