//! `doctor`: checks the machine.

use std::fmt::Write as _;
use std::path::Path;

use super::args::DoctorArgs;
use super::config::{Config, Format, runtime};
use super::exit::Status as Exit;
use super::failure::{Failure, Outcome};
use super::say;
use crate::doctor::{Machine, Report, Row, diagnose, repair};
use crate::sandbox::{Host, Status, limits_table};

/// Inspects the machine, or repairs it with `--fix`, and prints the report. Changes are printed as
/// they happen.
pub(super) fn run(config: &Config, args: &DoctorArgs) -> Outcome {
    if args.print_fix {
        let script = config.engine.fix_script.ok_or_else(|| {
            Failure::usage(format!("the engine `{}` has no script that provides it", config.engine.name))
        })?;
        say::text(script)?;
        return Ok(Exit::Ok);
    }
    let host = Host::of_process();
    let machine = Machine { host: &host, engine: config.engine, out: Path::new("out") };
    let report = runtime()?.block_on(async {
        if args.fix {
            repair(&machine, &mut |event| say::note(event.to_string())).await
        } else {
            diagnose(&machine).await
        }
    });
    match config.format {
        Format::Json => say::json(&report)?,
        Format::Text => say::text(&table(&report))?,
    }
    Ok(if report.healthy { Exit::Ok } else { Exit::Failed })
}

fn table(report: &Report) -> String {
    let widest = report.rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    // Writing to a String cannot fail.
    for Row { name, status, detail, hint } in &report.rows {
        let _ = writeln!(text, "{:<8} {name:<widest$}  {detail}", status.as_str());
        if let Some(hint) = hint {
            let _ = writeln!(text, "{:<8} {:<widest$}  hint: {hint}", "", "");
        }
    }
    if !report.limits.is_empty() {
        let _ = write!(text, "\n{}\n", limits_table(&report.limits));
    }
    let missing: Vec<&str> =
        report.rows.iter().filter(|row| row.status == Status::Missing).map(|row| row.name.as_str()).collect();
    let _ = if report.healthy {
        writeln!(text, "This machine is ready.")
    } else {
        writeln!(text, "This machine is not ready: {}.", missing.join(", "))
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, status: Status, detail: &str, hint: Option<&str>) -> Row {
        Row { name: name.into(), status, detail: detail.into(), hint: hint.map(str::to_owned) }
    }

    fn check(healthy: bool, rows: Vec<Row>) -> String {
        table(&Report { version: 2, healthy, rows, limits: Vec::new() })
    }

    #[test]
    fn reports_are_tables() {
        let failed = "`dockerd` ended with status 1\n  | no space left";
        insta::assert_snapshot!(check(false, vec![
            row("engine", Status::Missing, failed, Some("make room")),
            row("base image", Status::Fixed, "debian:bookworm-slim", None),
            row("memory", Status::Warn, "1.0 GiB available", None),
        ]), @r"
        missing  engine      `dockerd` ended with status 1
          | no space left
                             hint: make room
        fixed    base image  debian:bookworm-slim
        warn     memory      1.0 GiB available
        This machine is not ready: engine.
        ");
        insta::assert_snapshot!(check(true, vec![row("cores", Status::Ok, "2 cores", None)]), @r"
        ok       cores  2 cores
        This machine is ready.
        ");
    }
}
