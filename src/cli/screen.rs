//! `screen`: certifies tasks of any origin.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::args_tasks::ScreenArgs;
use super::authors::screening_models;
use super::config::{Config, Format, jobs, run_to_write, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome, fault_status};
use super::inspect::{clauses, rows_with};
use super::interrupt::Interrupts;
use super::printable::printable;
use super::rows::{only, row};
use super::seen::{WithSeen, below};
use super::{former, models, open, paths, say};
use crate::folder::{LARGEST_TEXT, read_file};
use crate::model::{Certificate, Clauses, File, RowKind, ScreeningCost, Timings};
use crate::pipeline::{
    ClauseAuthor, Examination, ExamineError, Examined, Fault, ModelRows, Stop, Upcoming, VerifierMode,
};
use crate::screen::{Extent, Only, Screening};
use crate::store::publish_file;
use crate::verify::{EngineOnDemand, Slots, TrialRunner, Watcher};

const MIB: u64 = 1 << 20;

/// `expect.toml` in a corpus: the expected result of screening the task beside it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    about: String,
    verdict: Wanted,
    /// The row that rejects the task, or that must be ok, as `kind` or `kind:name`.
    row: Option<String>,
    /// Attacks that must pass on this task.
    #[serde(default)]
    proves: Vec<String>,
    /// How the task is judged. Only people read it.
    #[serde(default, rename = "mode")]
    _mode: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Certified,
    Rejected,
}

/// How the screening of one task ended.
enum Ended {
    Screened(Box<Screening>, Option<Clauses>),
    Unsupported(String),
    /// The directory is no readable task.
    Unreadable(String),
    /// Infrastructure failed. The same command completes the screening.
    LeftOpen(String),
    /// Another failure. It says nothing about the other tasks.
    Failed(Status, String),
}

impl Ended {
    fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Screened(screening, _) => Some(&screening.certificate),
            Self::Unsupported(_) | Self::Unreadable(_) | Self::LeftOpen(_) | Self::Failed(..) => None,
        }
    }

    /// Why the task was not screened: a name for scripts, and a text.
    fn obstacle(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Screened(..) => None,
            Self::Unsupported(why) => Some(("unsupported", why)),
            Self::Unreadable(why) => Some(("unreadable", why)),
            Self::LeftOpen(why) => Some(("left_open", why)),
            Self::Failed(_, why) => Some(("failed", why)),
        }
    }

    fn status(&self) -> Status {
        match self {
            // A rejected or unreadable task is a result here, and no failure of the command.
            Self::Screened(..) | Self::Unsupported(_) | Self::Unreadable(_) => Status::Ok,
            Self::LeftOpen(_) => Status::TryAgain,
            Self::Failed(status, _) => *status,
        }
    }
}

/// The results of all tasks.
#[derive(Default)]
struct Collected {
    ended: Vec<(PathBuf, Ended, Option<Expected>)>,
    /// Number of tasks that were not finished because the command was stopped.
    stopped: usize,
    /// The failure that stopped the command.
    failed: Option<Failure>,
}

pub(super) fn screen(config: &Config, args: &ScreenArgs) -> Outcome {
    models::check_called(&args.model, args.clauses || args.blind > 0, "--clauses or --blind K")?;
    let dirs = distinct(paths::tasks(&args.tasks)?)?;
    paths::check_output_folder(&args.out, "--out")?;
    let only = only(&args.only)?;
    let assets = config.pipeline_assets()?;
    let store = run_to_write(&args.out)?;
    former::note(&args.out, &store, Upcoming::Screening)?;
    let scratch = store.dir().scratch();
    let slots = Slots::new(jobs(args.jobs) as usize);
    let engine = EngineOnDemand::new(config.engine);
    let budget = args.budget.map(Duration::from_secs);
    let extent = Extent { budget, ..Extent::of(args.rigor.into()) };
    let verifier_mode =
        args.as_harbor.map_or(VerifierMode::AsDeclared, |mode| VerifierMode::AsHarbor(mode.into()));
    let collected = runtime()?.block_on(async {
        let interrupts = Interrupts::listen()?;
        let runner = TrialRunner {
            engine: &engine,
            store: &store,
            slots: &slots,
            priority: 0,
            drain: &interrupts.drain,
            watcher: Watcher::default(),
        };
        let model = screening_models(config, args, &store, &interrupts.drain)?;
        let clauses = if args.clauses { ClauseAuthor::Model } else { ClauseAuthor::Task };
        let models = model.as_ref().map(|model| ModelRows { model, clauses });
        let examination = Examination { runner: &runner, assets: &assets, verifier_mode, models };
        // There are as many tasks as slots, so that slots are used while one task waits for its
        // last trial.
        let work = stream::iter(&dirs).map(|dir| {
            let (examination, only, drain) = (&examination, &only, &interrupts.drain);
            async move {
                if drain.is_cancelled() {
                    return (dir, Err(Fault::Drained), None);
                }
                let expected = args.summary.then(|| expected(dir)).transpose();
                let only = match &expected {
                    Ok(None) => Ok(only.clone()),
                    Ok(Some(expected)) => expected.only(),
                    Err(why) => Err(why.clone()),
                };
                let ended = match only {
                    Ok(only) => one(examination, dir, extent, &only).await,
                    // One bad expectation does not stop the screening of the others.
                    Err(why) => Ok(Ended::Unreadable(why)),
                };
                (dir, ended, expected.ok().flatten())
            }
        });
        let mut work = work.buffer_unordered(jobs(args.jobs) as usize);
        let mut collected = Collected::default();
        let collecting = async {
            while let Some((dir, end, expected)) = work.next().await {
                let reported = match end {
                    Ok(end) => report(config, args, &scratch, dir, &end, expected.as_ref())
                        .map(|()| collected.ended.push((dir.clone(), end, expected))),
                    Err(fault) if fault.stop() == Some(Stop::Interrupted) => {
                        collected.stopped += 1;
                        Ok(())
                    }
                    Err(fault) => Err(Failure::from(fault)),
                };
                if let Err(failure) = reported {
                    // The other tasks finish and store their trials in progress, and begin no
                    // further ones.
                    interrupts.drain.cancel();
                    collected.stopped += 1;
                    collected.failed.get_or_insert(failure);
                }
            }
        };
        let killed = tokio::select! {
            () = collecting => None,
            () = interrupts.kill.cancelled() => Some(Failure::from(Fault::Drained)),
        };
        if let Some(engine) = engine.connected() {
            engine.close().await;
        }
        killed.map_or(Ok(collected), Err)
    })?;
    if collected.stopped > 0 {
        say::note(format!("{} tasks were not finished; the same command continues", collected.stopped));
    }
    let status =
        if collected.ended.is_empty() { Status::Interrupted } else { conclude(config, args, &collected)? };
    collected.failed.map_or(Ok(status), Err)
}

/// Refuses two directories with the same task name, because certificates are stored by task name.
fn distinct(dirs: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    let mut names: BTreeMap<String, &Path> = BTreeMap::new();
    for dir in &dirs {
        if let Some(other) = names.insert(name_of(dir), dir) {
            return Err(Failure::usage(format!(
                "`{}` and `{}` have the same name, so one certificate would replace the other\nhint: screen them one after the other, each \
                 with an --out folder of its own",
                other.display(),
                dir.display()
            )));
        }
    }
    Ok(dirs)
}

/// The name of a task directory.
fn name_of(dir: &Path) -> String {
    dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned()
}

async fn one(examination: &Examination<'_>, dir: &Path, extent: Extent, only: &Only) -> Result<Ended, Fault> {
    match examination.examine(dir, extent, only).await {
        Ok(Examined::Screened { screening, written }) => Ok(Ended::Screened(screening, written)),
        Ok(Examined::Unsupported(why)) => Ok(Ended::Unsupported(why)),
        Err(ExamineError::Read(error)) => Ok(Ended::Unreadable(error.to_string())),
        Err(ExamineError::Fault(fault)) if concerns_all(&fault) => Err(fault),
        Err(ExamineError::Fault(fault)) if open::is_left_open(&fault) => {
            Ok(Ended::LeftOpen(fault.to_string()))
        }
        Err(ExamineError::Fault(fault)) => Ok(Ended::Failed(fault_status(&fault), fault.to_string())),
    }
}

/// Whether the other tasks would fail in the same way.
fn concerns_all(fault: &Fault) -> bool {
    fault.stop().is_some()
        || fault.ends_everything()
        || open::is_unreachable(fault)
        || matches!(fault, Fault::Store(_))
}

fn report(
    config: &Config,
    args: &ScreenArgs,
    scratch: &Path,
    dir: &Path,
    ended: &Ended,
    expected: Option<&Expected>,
) -> Result<(), Failure> {
    let name = name_of(dir);
    if let Ended::Screened(screening, written) = ended {
        let folder = args.out.join("certificates").join(&name);
        publish_file(scratch, &folder.join("timings.json"), &json_file(&screening.timings)?)?;
        publish_file(scratch, &folder.join("certificate.txt"), &File::text(printable(&page(screening))))?;
        if let Some(clauses) = written {
            let text = toml::to_string_pretty(clauses).map_err(|error| Failure::new(Status::Io, error))?;
            publish_file(scratch, &folder.join("clauses.toml"), &File::text(text))?;
        }
        // Another host may be able to run the rows that this one could not. So no certificate is
        // written yet.
        if screening.unmet.is_none() {
            publish_file(scratch, &folder.join("certificate.json"), &json_file(&screening.certificate)?)?;
        }
    }
    if args.summary {
        let (comparison, says) = compared(ended, expected);
        return match config.format {
            Format::Json => say::json(&json!({
                "task": name, "as_expected": comparison == Comparison::AsExpected, "says": says,
                "certificate": ended.certificate(),
            })),
            Format::Text => say::line(format!("{} {name:<44} {says}", comparison.mark())),
        };
    }
    match (config.format, ended) {
        (Format::Json, Ended::Screened(screening, _)) => {
            say::json(&WithSeen::new(&screening.certificate, &screening.timings))
        }
        (Format::Json, _) => {
            let (kind, why) = ended.obstacle().unwrap_or_default();
            say::json(&json!({ "task": name, "not_screened": kind, "why": why }))
        }
        (Format::Text, Ended::Screened(screening, _)) => say::text(&page(screening)),
        (Format::Text, Ended::Unsupported(why) | Ended::Failed(_, why)) => {
            say::line(format!("{name}: not screened: {why}"))
        }
        (Format::Text, Ended::Unreadable(why)) => say::line(format!("{name}: not a task: {why}")),
        (Format::Text, Ended::LeftOpen(why)) => say::line(format!("{name}: left open: {why}")),
    }
}

/// Whether a task of a corpus ended as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    AsExpected,
    Differs,
}

impl Comparison {
    fn mark(self) -> &'static str {
        match self {
            Self::AsExpected => "ok ",
            Self::Differs => "BAD",
        }
    }
}

/// Compares a task's result with its expectation. Returns a text about the difference too.
fn compared(ended: &Ended, expected: Option<&Expected>) -> (Comparison, String) {
    match expected.map(|expected| (expected, expected.complaint(ended))) {
        Some((expected, None)) => (Comparison::AsExpected, expected.about.clone()),
        Some((_, Some(complaint))) => (Comparison::Differs, complaint),
        None => {
            let why = ended.obstacle().map_or("it has no expect.toml", |(_, why)| why);
            (Comparison::Differs, why.to_owned())
        }
    }
}

fn conclude(config: &Config, args: &ScreenArgs, collected: &Collected) -> Outcome {
    let ended = &collected.ended;
    let count = |test: &dyn Fn(&Ended, Option<&Expected>) -> bool| {
        ended.iter().filter(|(_, end, expected)| test(end, expected.as_ref())).count()
    };
    let left_open = count(&|end, _| matches!(end, Ended::LeftOpen(_)));
    if left_open > 0 {
        say::note(open::summary(left_open));
    }
    let certified = |end: &Ended| end.certificate().is_some_and(|certificate| certificate.certified);
    if args.summary {
        let matching = count(&|end, expected| compared(end, expected).0 == Comparison::AsExpected);
        let mut proven: Vec<String> = ended
            .iter()
            .filter_map(|(_, end, expected)| Some((end, expected.as_ref()?)))
            .flat_map(|(end, expected)| expected.proven(end))
            .collect();
        proven.sort();
        proven.dedup();
        let sound =
            count(&|_, expected| expected.is_some_and(|expected| expected.verdict == Wanted::Certified));
        let (tasks, defective, other) = (ended.len(), ended.len() - sound, ended.len() - matching);
        match config.format {
            Format::Json => say::json(&json!({
                "tasks": tasks, "sound": sound, "with_defect": defective, "as_expected": matching,
                "attacks_proven": proven,
            }))?,
            Format::Text => {
                say::line(format!("attacks proven to score on a vulnerable task: {}", proven.join(" ")))?;
                say::line(format!(
                    "{tasks} tasks: {sound} sound, {defective} with a planted defect; {matching} as expected, {other} not"
                ))?;
            }
        }
        return Ok(ending(collected, matching == tasks));
    }
    let good = count(&|end, _| certified(end));
    if config.format == Format::Text {
        say::line(format!(
            "{} tasks: {good} certified, {} rejected, {} not screened",
            ended.len(),
            count(&|end, _| end.certificate().is_some_and(|certificate| !certificate.certified)),
            count(&|end, _| end.certificate().is_none()),
        ))?;
    }
    Ok(ending(collected, good == ended.len()))
}

fn ending(collected: &Collected, all_good: bool) -> Status {
    let result = if all_good { Status::Ok } else { Status::Failed };
    match collected.stopped {
        0 => open::combined(collected.ended.iter().map(|(_, end, _)| end.status()).chain([result])),
        _ => Status::Interrupted,
    }
}

fn json_file(document: &impl Serialize) -> Result<File, Failure> {
    let text = serde_json::to_string_pretty(document).map_err(|error| Failure::new(Status::Io, error))?;
    Ok(File::text(text + "\n"))
}

/// A certificate on one page.
fn page(screening: &Screening) -> String {
    let certificate = &screening.certificate;
    let verdict = if certificate.certified { "certified" } else { "rejected" };
    let mut text =
        format!("{}: {verdict} ({:?}, {:?})\n", certificate.task, certificate.rigor, certificate.judging);
    text.push_str(&rows_with(certificate, |row| below(&screening.timings, row)));
    let rates = &certificate.rates;
    let share = |tally: crate::model::Tally| match tally.rate() {
        Some(rate) => format!("{rate:.2} ({} of {})", tally.good, tally.counted),
        None => "not tried".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "    violations refused      {}", share(rates.clauses));
    let _ = writeln!(text, "    wrong answers refused   {}", share(rates.killed));
    if let aside @ 1.. = certificate.set_aside() {
        let _ = writeln!(
            text,
            "    set aside               {aside} mutants that pass, as equivalent to the reference (clauses.toml)"
        );
    }
    let _ = writeln!(text, "    right forms accepted    {}", share(rates.accepted));
    let _ = writeln!(text, "    attacks repelled        {}", share(rates.repelled));
    let _ = writeln!(
        text,
        "    flake rate              at most {:.2} (95 %, {} of {} references passed)",
        rates.flake_upper, rates.steady.good, rates.steady.counted
    );
    if certificate.left_out > 0 {
        let _ = writeln!(
            text,
            "    left out                {} mutants, because --budget was spent",
            certificate.left_out
        );
    }
    text.push_str(&took(&screening.timings));
    text.push_str(&cost(&screening.timings.cost));
    text.push_str(&clauses(certificate));
    for reason in &certificate.reasons {
        let _ = writeln!(text, "  → {}:{}: {}", reason.kind.name(), reason.name, reason.message);
        let _ = writeln!(text, "    {}: {}", reason.part.path(), reason.ask);
    }
    text
}

/// The cost of trials. Empty if there was no trial.
pub(super) fn cost(cost: &ScreeningCost) -> String {
    if cost.kinds.is_empty() {
        return String::new();
    }
    let lines = cost.lines();
    let labels = std::iter::once("cost of screening").chain(std::iter::repeat(""));
    lines.iter().zip(labels).map(|(line, label)| format!("    {label:<23} {line}\n")).collect()
}

/// Time and memory of the reference, compared with a solver's limits.
fn took(timings: &Timings) -> String {
    let Some((seconds, peak)) = timings.most(RowKind::Reference) else { return String::new() };
    let memory = peak.map_or_else(String::new, |bytes| {
        format!("; {} of {} MiB at once", bytes.div_ceil(MIB), timings.memory_mb)
    });
    format!("    a reference took        {seconds:.1} of {} s{memory}\n", timings.agent_timeout_sec)
}

fn expected(dir: &Path) -> Result<Expected, String> {
    let path = dir.join("expect.toml");
    let text = read_file(&path, LARGEST_TEXT).map_err(|error| error.to_string())?;
    let text = text.ok_or_else(|| format!("`{}` does not exist", path.display()))?;
    toml::from_slice(&text).map_err(|error| format!("`{}`: {error}", path.display()))
}

impl Expected {
    /// The rows that the expectation names. Rows that every task needs are run in addition.
    fn only(&self) -> Result<Only, String> {
        let mut wanted: Vec<_> = self.row.iter().map(|text| row(text)).collect::<Result<_, _>>()?;
        wanted.extend(self.proves.iter().map(|id| (RowKind::Attack, Some(id.clone()))));
        Ok(Only::Rows(wanted))
    }

    /// How the result differs from the expectation. `None` if it does not.
    fn complaint(&self, ended: &Ended) -> Option<String> {
        let certificate = match ended {
            Ended::Screened(screening, _) => &screening.certificate,
            Ended::Unreadable(why)
                if self.verdict == Wanted::Rejected && self.row.as_deref() == Some("lint") =>
            {
                let _ = why;
                return None;
            }
            Ended::Unsupported(why)
            | Ended::Unreadable(why)
            | Ended::LeftOpen(why)
            | Ended::Failed(_, why) => {
                return Some(format!("not screened: {why}"));
            }
        };
        let says = |text: &str, good: bool| {
            let (kind, name) = text.split_once(':').unwrap_or((text, ""));
            certificate.rows.iter().any(|row| {
                let named = row.name == name
                    || row.name.starts_with(&format!("{name}-"))
                    || row.name.starts_with(&format!("{name}/"))
                    || name.is_empty();
                // Each of the reference's further runs has a number as its name. An expectation
                // calls them `flake`.
                let flake = name == "flake" && row.name.parse::<u32>().is_ok();
                row.kind.name() == kind && (named || flake) && row.ok == good
            })
        };
        match self.verdict {
            Wanted::Certified if !certificate.certified => {
                let reasons: Vec<_> =
                    certificate.reasons.iter().map(|reason| reason.message.clone()).collect();
                return Some(format!("rejected, although it is sound: {}", reasons.join("; ")));
            }
            Wanted::Rejected if certificate.certified => {
                return Some(format!("certified, although {}", self.about));
            }
            Wanted::Certified | Wanted::Rejected => {}
        }
        if let Some(row) = self.row.as_deref().filter(|row| !says(row, self.verdict == Wanted::Certified)) {
            let reasons: Vec<_> = certificate
                .reasons
                .iter()
                .map(|reason| format!("{}:{}: {}", reason.kind.name(), reason.name, reason.message))
                .collect();
            return Some(format!(
                "row {row} does not end as expected; reasons for rejection: {}",
                reasons.join("; ")
            ));
        }
        let unproven: Vec<_> =
            self.proves.iter().filter(|id| !says(&format!("attack:{id}"), false)).cloned().collect();
        (!unproven.is_empty()).then(|| format!("attack {} does not score", unproven.join(", ")))
    }

    /// The attacks that passed as expected.
    fn proven(&self, ended: &Ended) -> Vec<String> {
        let Some(certificate) = ended.certificate() else { return Vec::new() };
        let scored = certificate.rows.iter().filter(|row| row.kind == RowKind::Attack && !row.ok);
        scored.map(|row| row.name.chars().take("D-00".len()).collect()).collect()
    }
}
