//! A report as text tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{AttemptClass, Report, SolverReport, Spread, StepScores, TaskReport};
use crate::model::{Estimate, Scores, floored_percent, one_line};

/// The report as text. Shares are in per cent. Brackets hold 95 % intervals.
pub fn text(report: &Report) -> String {
    if report.solvers.is_empty() {
        return "no rollouts\n".to_owned();
    }
    let mut text = String::new();
    let sections = [
        ("passes, % [95 % interval]", passes(report)),
        ("F2P step scores, % of attempts", step_scores(report)),
        ("effort, total and mean of an attempt", effort(report)),
        ("causes, ends, labels and attacks, attempts", causes(report)),
        ("tasks, %", tasks(report)),
    ];
    for (title, table) in sections {
        if table.rows.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{title}\n{}", table.render());
    }
    text
}

/// A table with text aligned left and numbers aligned right.
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Number of columns, from the left, that hold text.
    text: usize,
}

/// Shown where a value is unknown.
const NOTHING: &str = "-";

const WHO: [&str; 3] = ["teacher", "scaffold", "arm"];

impl Table {
    fn new(text: &[&str], numbers: impl IntoIterator<Item = String>) -> Self {
        let head = text.iter().map(|head| (*head).to_owned()).chain(numbers).collect();
        Self { head, rows: Vec::new(), text: text.len() }
    }

    fn render(&self) -> String {
        let head = self.head.clone();
        // Names of agents and tasks may come from foreign files.
        let cells = |row: &Vec<String>| row.iter().map(|cell| one_line(cell).into_owned()).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        let lines = || [&head].into_iter().chain(&rows);
        let width = |at: usize| lines().map(|row| row.get(at).map_or(0, |cell| cell.chars().count())).max();
        let widths: Vec<usize> = (0..self.head.len()).map(|at| width(at).unwrap_or_default()).collect();
        let mut text = String::new();
        for row in lines() {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                if at < self.text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "  {}", line.trim_end());
        }
        text
    }
}

fn passes(report: &Report) -> Table {
    let most = report.solvers.iter().map(|solver| solver.at.len()).max().unwrap_or_default();
    let powers: Vec<u64> = (0..most).map(|power| 1 << power).collect();
    let fixed = ["tasks", "scored", "unscored", "coverage", "passed", "rate"].map(str::to_owned);
    let at = powers.iter().map(|k| format!("pass@{k}"));
    let all = powers.iter().skip(1).map(|k| format!("pass^{k}"));
    let mut table = Table::new(&WHO, fixed.into_iter().chain(at).chain(all));
    for solver in &report.solvers {
        let counts = solver.counts;
        let numbers =
            [solver.tasks.len() as u64, counts.scored, counts.unscored].map(|number| number.to_string());
        let passed = [coverage(counts), counts.passed.to_string(), interval(solver.pass_rate)];
        let find = |k: &u64| solver.at.iter().find(|at| at.k == *k);
        let at = powers.iter().map(|k| interval(find(k).map(|at| at.pass_at)));
        let all = powers.iter().skip(1).map(|k| interval(find(k).map(|at| at.pass_all)));
        let cells = numbers.into_iter().chain(passed);
        table.rows.push(who(solver).into_iter().chain(cells).chain(at).chain(all).collect());
    }
    table
}

/// The share of attempts that were scored.
fn coverage(counts: Scores) -> String {
    counts.coverage().map_or_else(|| NOTHING.to_owned(), floored_percent)
}

fn step_scores(report: &Report) -> Table {
    let heads = ["scored"].into_iter().chain(StepScores::BANDS).chain(["mean"]);
    let mut table = Table::new(&WHO, heads.map(str::to_owned));
    for solver in &report.solvers {
        let scores = solver.breakdown.step_scores;
        let scored: u64 = scores.bands().iter().sum();
        if scored == 0 {
            continue;
        }
        let shares = scores.bands().map(|band| percent(band as f64 / scored as f64));
        let mean = scores.mean.map_or_else(|| NOTHING.to_owned(), percent);
        table
            .rows
            .push(who(solver).into_iter().chain([scored.to_string()]).chain(shares).chain([mean]).collect());
    }
    table
}

fn effort(report: &Report) -> Table {
    let quantities = [
        "attempts",
        "turns",
        "mean",
        "seconds",
        "mean",
        "tokens in",
        "mean",
        "tokens out",
        "mean",
        "$",
        "mean",
    ];
    let text = [WHO[0], WHO[1], WHO[2], "class"];
    let mut table = Table::new(&text, quantities.map(str::to_owned));
    for solver in &report.solvers {
        for (class, effort) in &solver.breakdown.effort {
            let whole = |spread: Spread| known(spread, |value| format!("{value:.0}"));
            let tenths = |spread: Spread| known(spread, |value| format!("{value:.1}"));
            let dollars = |spread: Spread| known(spread, |value| format!("{value:.4}"));
            let cells = [
                [effort.attempts.to_string()].to_vec(),
                vec![whole(effort.turns)[0].clone(), tenths(effort.turns)[1].clone()],
                tenths(effort.seconds).to_vec(),
                whole(effort.prompt_tokens).to_vec(),
                whole(effort.completion_tokens).to_vec(),
                dollars(effort.usd).to_vec(),
            ];
            let class = class.as_str().to_owned();
            table.rows.push(who(solver).into_iter().chain([class]).chain(cells.concat()).collect());
        }
    }
    table
}

/// Total and mean, if they are known for any attempt.
fn known(spread: Spread, show: impl Fn(f64) -> String) -> [String; 2] {
    match spread.known {
        0 => [NOTHING, NOTHING].map(str::to_owned),
        _ => [show(spread.total), show(spread.mean)],
    }
}

fn causes(report: &Report) -> Table {
    let mut table = Table::new(&[WHO[0], WHO[1], WHO[2], "of", "what"], ["attempts".to_owned()]);
    for solver in &report.solvers {
        let breakdown = &solver.breakdown;
        let kinds: [(&str, &BTreeMap<String, u64>); 4] = [
            ("cause", &breakdown.failure_kinds),
            ("end", &breakdown.ends),
            ("label", &breakdown.labels),
            ("attack", &breakdown.exploits),
        ];
        for (kind, counts) in kinds {
            for (name, count) in counts {
                let cells = [kind.to_owned(), name.clone(), count.to_string()];
                table.rows.push(who(solver).into_iter().chain(cells).collect());
            }
        }
    }
    table
}

fn tasks(report: &Report) -> Table {
    let numbers = [
        "scored",
        "unscored",
        "coverage",
        "passed",
        "pass@1",
        "largest k",
        "pass@k",
        "pass^k",
        "F2P",
        "seconds",
    ];
    let mut table = Table::new(&[WHO[0], WHO[1], WHO[2], "task"], numbers.map(str::to_owned));
    for solver in &report.solvers {
        for task in &solver.tasks {
            let (counts, last) = (task.counts, task.at.last());
            let share = |of: Option<f64>| of.map_or_else(|| NOTHING.to_owned(), percent);
            let cells = [
                task.task.to_string(),
                counts.scored.to_string(),
                counts.unscored.to_string(),
                coverage(counts),
                counts.passed.to_string(),
                share(task.at.first().map(|at| at.pass_at)),
                last.map_or_else(|| NOTHING.to_owned(), |at| at.k.to_string()),
                share(last.map(|at| at.pass_at)),
                share(last.map(|at| at.pass_all)),
                share(task.breakdown.step_scores.mean),
                seconds(task),
            ];
            table.rows.push(who(solver).into_iter().chain(cells).collect());
        }
    }
    table
}

/// Mean seconds of the scored attempts.
fn seconds(task: &TaskReport) -> String {
    let counted = task.breakdown.effort.iter().filter(|(class, _)| **class != AttemptClass::Masked);
    let (known, total) = counted.fold((0, 0.0), |(known, total), (_, effort)| {
        (known + effort.seconds.known, total + effort.seconds.total)
    });
    if known == 0 { NOTHING.to_owned() } else { format!("{:.1}", total / known as f64) }
}

fn who(solver: &SolverReport) -> Vec<String> {
    let solver = &solver.solver;
    let arm = match &solver.adversary {
        Some(sight) => format!("{} (told to cheat, {sight})", solver.arm),
        None => solver.arm.clone(),
    };
    let version = solver.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    vec![solver.teacher.clone(), format!("{}{version}", solver.scaffold), arm]
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn interval(estimate: Option<Estimate>) -> String {
    match estimate {
        None => NOTHING.to_owned(),
        Some(Estimate { mean, low, high }) => {
            format!("{} [{}, {}]", percent(mean), percent(low), percent(high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_row() {
        let mut table = Table::new(&["teacher"], ["passed".to_owned()]);
        table.rows.push(vec!["a\n  model  9".to_owned(), "0".to_owned()]);
        assert_eq!(table.render().lines().count(), 2, "{}", table.render());
    }
}
