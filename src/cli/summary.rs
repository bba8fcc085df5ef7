//! The summary of a run, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::open;
use super::printable::printable;
use crate::audit::Audit;
use crate::domain::Plan;
use crate::model::{Blueprint, Outcome, RecipeId, RowKind, ScreeningCost};
use crate::pipeline::{Ended, RunReport};

/// Style of the text.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) colour: bool,
}

impl Style {
    fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Version of the JSON summary.
const SUMMARY_VERSION: u32 = 5;

/// The summary as JSON.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    version: u32,
    planned: usize,
    certified: usize,
    rejected: BTreeMap<&'a str, Vec<String>>,
    /// Blueprints without a draft: the stage that gave up, and its problems.
    unmade: BTreeMap<String, (&'a str, &'a [String])>,
    /// Tasks without a result, with the reason.
    without_result: BTreeMap<String, String>,
    /// Tasks without a result that the same command completes.
    left_open: Vec<String>,
    rollouts: BTreeMap<String, usize>,
    /// Attempts without a rollout because the recipe's script is wrong, with the reason, by task.
    script_faults: BTreeMap<&'a str, Vec<(u32, String)>>,
    rows: BTreeMap<&'a str, u64>,
    /// Cost of the trials of all tasks, earlier runs included.
    screening: ScreeningCost,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    interrupted: bool,
}

pub(super) fn json(report: &RunReport, took: Duration) -> Summary<'_> {
    let rejected = report.ended.iter().filter(|ended| !ended.certificate.certified);
    let exported = report.export.iter().flat_map(|export| &export.configs);
    Summary {
        version: SUMMARY_VERSION,
        planned: report.planned,
        certified: certified(report),
        rejected: rejected
            .map(|ended| {
                let reasons = ended.certificate.reasons.iter().map(|reason| reason.message.clone());
                (ended.certificate.task.as_str(), reasons.collect())
            })
            .collect(),
        unmade: report
            .unmade
            .iter()
            .map(|(blueprint, unmade)| {
                let task = crate::harbor::task_name(blueprint).to_string();
                (task, (unmade.stage.as_str(), unmade.problems.as_slice()))
            })
            .collect(),
        without_result: report
            .faults
            .iter()
            .map(|(blueprint, fault)| (crate::harbor::task_name(blueprint).to_string(), fault.to_string()))
            .collect(),
        left_open: left_open(report)
            .map(|blueprint| crate::harbor::task_name(blueprint).to_string())
            .collect(),
        rollouts: rollouts(report)
            .into_iter()
            .map(|(outcome, count)| (name(outcome).to_owned(), count))
            .collect(),
        script_faults: with_script_faults(report)
            .map(|ended| {
                let faults = ended.script_faults.iter().map(|(attempt, error)| (*attempt, error.to_string()));
                (ended.certificate.task.as_str(), faults.collect())
            })
            .collect(),
        rows: exported.map(|config| (config.name, config.rows)).collect(),
        screening: screening(report),
        seconds: took.as_secs_f64(),
        peak_memory_bytes: peak_memory(),
        interrupted: report.interrupted,
    }
}

/// The summary as text. It contains no control sequences but those of `style`.
pub(super) fn text(
    out: &Path,
    plan: &Plan,
    report: &RunReport,
    audit: &Audit,
    took: Duration,
    style: Style,
) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |label: &str, value: String| {
        let label = style.bold(&format!("{label:<10}"));
        let _ = writeln!(text, "{label}  {}", printable(&value));
    };
    let certified = certified(report);
    let rejected = report.ended.len() - certified;
    line("tasks", {
        let mut parts = vec![
            format!("{} planned", report.planned),
            format!("{} drafted", report.ended.len()),
            format!("{certified} certified"),
            format!("{rejected} rejected"),
        ];
        if !report.unmade.is_empty() {
            parts.push(format!("{} without a draft", report.unmade.len()));
        }
        let without_result = report.faults.len() - left_open(report).count();
        if without_result > 0 {
            parts.push(format!("{without_result} without a result"));
        }
        parts.join(", ")
    });
    let open = left_open(report).count();
    if open > 0 {
        line("", open::summary(open));
    }
    for ended in report.ended.iter().filter(|ended| !ended.certificate.certified) {
        for reason in &ended.certificate.reasons {
            line(
                "",
                format!(
                    "{}: {} {}: {}",
                    ended.certificate.task,
                    row_name(reason.kind),
                    reason.name,
                    first_line(&reason.message)
                ),
            );
        }
    }
    for (blueprint, unmade) in &report.unmade {
        let task = crate::harbor::task_name(blueprint);
        let stage = unmade.stage.as_str();
        let problem = unmade.problems.first().map_or("", |problem| first_line(problem));
        line("", format!("{task}: given up at its {stage}: {problem}"));
    }
    for (fault, tasks) in by_fault(report) {
        let first = tasks.first().map_or("", String::as_str);
        let others = if tasks.len() > 1 { format!(" and {} more", tasks.len() - 1) } else { String::new() };
        line("", format!("{first}{others}: {fault}"));
    }
    if !plan.impossible.is_empty() {
        let cells = plan.impossible.len();
        line("", format!("{cells} cells of the specs that no recipe can fill; `termsmith plan` names them"));
    }
    if let Some(funnel) = &audit.authoring {
        line("authors", funnel.line());
    }
    let outcomes = rollouts(report);
    let total: usize = outcomes.values().sum();
    let shown: Vec<_> =
        outcomes.iter().map(|(outcome, count)| format!("{count} {}", name(*outcome))).collect();
    let unscored: usize =
        outcomes.iter().filter(|(outcome, _)| !outcome.is_scored()).map(|(_, count)| count).sum();
    line(
        "rollouts",
        match total {
            0 => "none".to_owned(),
            _ => format!("{total}: {}; {} scored, {unscored} unscored", shown.join(", "), total - unscored),
        },
    );
    for ended in with_script_faults(report) {
        let recipe = ended.record.blueprint.recipe().map_or("", RecipeId::as_str);
        for (attempt, error) in &ended.script_faults {
            line("", format!("{}, attempt {attempt}, has none: {error}", ended.certificate.task));
        }
        line(
            "",
            format!(
                "`termsmith recipe check {recipe} --only expert` runs its script and names each wrong step"
            ),
        );
    }
    if let Some(export) = &report.export {
        for config in &export.configs {
            for file in &config.files {
                line("data", format!("{:>6} rows  data/{}", file.rows, file.path.display()));
            }
        }
    }
    line("coverage", {
        let reached = audit.operations.values().filter(|tally| tally.certified > 0).count();
        let domains = audit.domains.values().filter(|domain| domain.total.certified > 0).count();
        format!(
            "{domains} of {} domains, {reached} of {} operations, {} empty cells named in report/audit.txt",
            audit.domains.len(),
            audit.operations.len(),
            audit.gaps.len()
        )
    });
    let memory = peak_memory().map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    line("cost", format!("{:.1} s, {memory} peak memory of termsmith itself", took.as_secs_f64()));
    if report.interrupted {
        line("stopped", "interrupted; the same command continues".to_owned());
    } else {
        let looks = ["tasks/", "trajectories/", "data/README.md", "report/audit.txt"];
        let looks: Vec<_> = looks.iter().map(|place| out.join(place).display().to_string()).collect();
        line("look at", looks.join("  "));
        if let Some(ended) = report.ended.iter().find(|ended| ended.certificate.certified) {
            line(
                "try",
                format!("termsmith try {}", out.join("tasks").join(&ended.certificate.task).display()),
            );
        }
    }
    text
}

/// The cost of the trials of all tasks.
pub(super) fn screening(report: &RunReport) -> ScreeningCost {
    let mut sum = ScreeningCost::default();
    report.ended.iter().for_each(|ended| sum += &ended.cost);
    sum
}

fn left_open(report: &RunReport) -> impl Iterator<Item = &Blueprint> {
    report.faults.iter().filter(|(_, fault)| open::is_left_open(fault)).map(|(blueprint, _)| blueprint)
}

fn with_script_faults(report: &RunReport) -> impl Iterator<Item = &Ended> {
    report.ended.iter().filter(|ended| !ended.script_faults.is_empty())
}

fn certified(report: &RunReport) -> usize {
    report.ended.iter().filter(|ended| ended.certificate.certified).count()
}

fn rollouts(report: &RunReport) -> BTreeMap<Outcome, usize> {
    let mut counts = BTreeMap::new();
    for outcome in report.ended.iter().flat_map(|ended| &ended.outcomes) {
        *counts.entry(*outcome).or_default() += 1;
    }
    counts
}

/// Tasks without a result, grouped by fault. So an engine that is gone is one line.
fn by_fault(report: &RunReport) -> BTreeMap<String, Vec<String>> {
    let mut faults: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (blueprint, fault) in &report.faults {
        faults.entry(fault.to_string()).or_default().push(crate::harbor::task_name(blueprint).to_string());
    }
    faults
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Timeout => "timeout",
        Outcome::Infra => "infra",
        Outcome::VerifierError => "verifier error",
    }
}

fn row_name(kind: RowKind) -> String {
    kind.name().replace('_', " ")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The most memory that this process has used, in bytes.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib << 10)
}
