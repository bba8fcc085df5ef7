//! The report as text for people and JSON for scripts.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::report::{Line, Ratio, Report, Section, Unit, Who};

/// Width of the first column.
const LABEL: usize = 64;
/// Percentiles of fewer measurements than this are omitted.
const FEW: usize = 10;

pub(crate) fn print_json(report: &Report) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(report)? + "\n"))
}

pub(crate) fn print_text(report: &Report) -> anyhow::Result<()> {
    print(&text(report))
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

fn text(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine);
    for section in &report.sections {
        text.push('\n');
        push_section(&mut text, section, report.machine.engine_name());
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\np99 of fewer than 100 repetitions is the largest. {:.0} s in all; load average {} afterwards.",
        report.seconds, report.load_after
    );
    text
}

fn push_section(text: &mut String, section: &Section, engine: &str) {
    let title = format!("{}: {} ({:.0} s)", section.name, section.about, section.seconds);
    let _ = writeln!(text, "{title}");
    let _ = writeln!(
        text,
        "  {:<LABEL$} {:>10} {:>10} {:>10} {:>6}  ours against it",
        "", "p50", "p99", "min", "n"
    );
    for (index, group) in section.groups.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        for line in group {
            push_line(text, line, engine);
        }
    }
    for note in &section.notes {
        let _ = writeln!(text, "  {note}");
    }
}

fn push_line(text: &mut String, line: &Line, engine: &str) {
    let who = match line.who {
        Who::Termsmith => "termsmith",
        Who::Engine => engine,
        Who::Harbor => "harbor",
    };
    let label = format!("{who:<10} {}", line.what);
    let value = |value: f64| figure(line.unit, value);
    let (p99, min) = match line.n {
        1 => (String::new(), String::new()),
        n if n < FEW => (String::new(), value(line.min)),
        _ => (value(line.p99), value(line.min)),
    };
    let row = format!(
        "  {label:<LABEL$} {:>10} {p99:>10} {min:>10} {:>6}  {}",
        value(line.p50),
        line.n,
        verdict(line)
    );
    let _ = writeln!(text, "{}", row.trim_end());
}

/// E.g. `484 × lower, aim ≥ 30 ×: met`.
fn verdict(line: &Line) -> String {
    let mut parts = Vec::new();
    match line.ratio {
        Some(Ratio::TimesLower { p50, p99 }) => {
            parts.push(format!("{} × lower (p99 {} ×)", short(p50), short(p99)));
        }
        Some(Ratio::Multiple(ratio)) => parts.push(format!("{} ×", short(ratio))),
        Some(Ratio::OfFirst(ratio)) => parts.push(format!("{} × the first", short(ratio))),
        None => {}
    }
    if let Some(aim) = &line.aim {
        parts.push(format!("aim {}: {}", aim.text, if aim.met { "met" } else { "not met" }));
    }
    parts.join(", ")
}

fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Milliseconds => format!("{} ms", short(value)),
        Unit::PerHour => format!("{} /h", short(value)),
        Unit::Mebibytes => format!("{} MiB", short(value)),
        Unit::Count => format!("{value:.0}"),
    }
}

/// Three significant digits. More would be noise.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
