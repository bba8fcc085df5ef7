//! `termsmith doctor`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::doctor::{Report, Row, Status, System, diagnose, treat};

/// Say what this machine lacks for a run, and with --fix provide it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Install and start what is missing: a Docker engine (by apt) and the base image. Says so first, never asks.
    #[arg(long)]
    pub fix: bool,
    /// Print the report as JSON; what --fix does is then told on standard error.
    #[arg(long)]
    pub json: bool,
    /// Where runs will write.
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    pub out: PathBuf,
}

/// Looks, mends if asked to, and writes the report to `out`, actions as they happen to `log`. True if nothing is missing.
pub fn run(args: &Args, out: &mut dyn Write, log: &mut dyn Write) -> Result<bool> {
    let system = System::real();
    let report = if args.fix {
        // A log that nobody reads any more is no reason to stop half-way.
        treat(&system, &args.out, &mut |event| drop(writeln!(log, "{event}").and_then(|()| log.flush())))
    } else {
        diagnose(&system, &args.out)
    };
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write_table(&report, out)?;
    }
    out.flush()?;
    Ok(report.healthy)
}

fn write_table(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    let widest = report.rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for Row { name, status, detail, hint } in &report.rows {
        writeln!(out, "{:<8} {name:<widest$}  {detail}", status.as_str())?;
        if let Some(hint) = hint {
            writeln!(out, "{:<8} {:<widest$}  hint: {hint}", "", "")?;
        }
    }
    let missing: Vec<&str> =
        report.rows.iter().filter(|row| row.status == Status::Missing).map(|row| row.name.as_str()).collect();
    if report.healthy {
        writeln!(out, "This machine is ready.")
    } else {
        writeln!(out, "This machine is not ready: {}.", missing.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, status: Status, detail: &str, hint: Option<&str>) -> Row {
        Row { name: name.into(), status, detail: detail.into(), hint: hint.map(str::to_owned) }
    }

    fn check(healthy: bool, rows: Vec<Row>) -> String {
        let mut text = Vec::new();
        write_table(&Report { version: 1, healthy, rows }, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_table_is_for_people() {
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
