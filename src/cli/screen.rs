//! `screen` and `verify-certificate`: certificates of tasks of any origin.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::args_tasks::{ScreenArgs, VerifyCertificateArgs};
use super::authors::screening_models;
use super::config::{Config, Format, jobs, run_to_write, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::inspect::{clauses, rows};
use super::interrupt::Interrupts;
use super::rows::{only, row};
use super::{open, paths, say};
use crate::harbor::read_task;
use crate::model::{Certificate, Clauses, File, RowKind, Timings};
use crate::pipeline::{ClauseAuthor, Examination, ExamineError, Examined, Fault, ModelRows, VerifierMode};
use crate::screen::{Extent, Only, Screening};
use crate::store::publish_file;
use crate::verify::{EngineOnDemand, TrialRunner};

const MIB: u64 = 1 << 20;

/// `expect.toml` of a corpus: the expected result of screening the task in the same directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    about: String,
    verdict: Wanted,
    /// `kind` or `kind:name` of the row that rejects, or must be ok.
    row: Option<String>,
    /// Attacks that score on this task.
    #[serde(default)]
    proves: Vec<String>,
    /// How the task is judged; for readers.
    #[serde(default, rename = "mode")]
    _mode: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Certified,
    Rejected,
}

/// How the screening of a task ended.
enum Ended {
    Screened(Box<Screening>, Option<Clauses>),
    Unsupported(String),
    /// The directory is no task that can be read.
    Unreadable(String),
    /// Infrastructure failed; the same command completes it.
    LeftOpen(String),
}

impl Ended {
    fn certificate(&self) -> Option<&Certificate> {
        match self {
            Self::Screened(screening, _) => Some(&screening.certificate),
            Self::Unsupported(_) | Self::Unreadable(_) | Self::LeftOpen(_) => None,
        }
    }
}

pub(super) fn screen(config: &Config, args: &ScreenArgs) -> Outcome {
    let dirs = paths::tasks(&args.tasks)?;
    paths::check_output_folder(&args.out, "--out")?;
    let only = only(&args.only)?;
    let assets = config.pipeline_assets()?;
    let store = run_to_write(&args.out)?;
    let scratch = store.dir().scratch();
    let slots = Semaphore::new(jobs(args.jobs) as usize);
    let engine = EngineOnDemand::default();
    let budget = args.budget.map(Duration::from_secs);
    let extent = Extent { budget, ..Extent::of(args.rigor.into()) };
    let verifier_mode =
        args.as_harbor.map_or(VerifierMode::AsDeclared, |mode| VerifierMode::AsHarbor(mode.into()));
    let ended = runtime()?.block_on(async {
        let interrupts = Interrupts::listen()?;
        let runner = TrialRunner { engine: &engine, store: &store, slots: &slots, drain: &interrupts.drain };
        let model = screening_models(config, args, &store, &interrupts.drain)?;
        let clauses = if args.clauses { ClauseAuthor::Model } else { ClauseAuthor::Task };
        let models = model.as_ref().map(|model| ModelRows { model, clauses });
        let examination = Examination { runner: &runner, assets: &assets, verifier_mode, models };
        // As many tasks as trials, so that slots are used while one task waits for its last trial of a section.
        let work = stream::iter(&dirs).map(|dir| {
            let (examination, only) = (&examination, &only);
            async move {
                let expected = args.summary.then(|| expected(dir)).transpose();
                let only = match &expected {
                    Ok(None) => Ok(only.clone()),
                    Ok(Some(expected)) => expected.only(),
                    Err(why) => Err(why.clone()),
                };
                let ended = match only {
                    Ok(only) => one(examination, dir, extent, &only).await?,
                    // One bad expectation does not stop the screening of the others.
                    Err(why) => Ended::Unreadable(why),
                };
                Ok::<_, Failure>((dir, ended, expected.ok().flatten()))
            }
        });
        let mut work = work.buffer_unordered(jobs(args.jobs) as usize);
        let mut ended = Vec::new();
        let collected = async {
            while let Some(next) = work.next().await {
                let (dir, end, expected) = next?;
                report(config, args, &scratch, dir, &end, expected.as_ref())?;
                ended.push((dir.clone(), end, expected));
            }
            Ok::<_, Failure>(())
        };
        let collected = tokio::select! {
            collected = collected => collected,
            () = interrupts.kill.cancelled() => Err(Failure::from(Fault::Drained)),
        };
        if let Some(engine) = engine.connected() {
            engine.close().await;
        }
        collected.map(|()| ended)
    })?;
    conclude(config, args, &ended)
}

async fn one(
    examination: &Examination<'_>,
    dir: &Path,
    extent: Extent,
    only: &Only,
) -> Result<Ended, Failure> {
    match examination.examine(dir, extent, only).await {
        Ok(Examined::Screened { screening, written }) => Ok(Ended::Screened(screening, written)),
        Ok(Examined::Unsupported(why)) => Ok(Ended::Unsupported(why)),
        Err(ExamineError::Read(error)) => Ok(Ended::Unreadable(error.to_string())),
        Err(ExamineError::Fault(fault)) if open::is_left_open(&fault) && !open::is_unreachable(&fault) => {
            Ok(Ended::LeftOpen(fault.to_string()))
        }
        Err(ExamineError::Fault(fault)) => Err(Failure::from(fault)),
    }
}

fn report(
    config: &Config,
    args: &ScreenArgs,
    scratch: &Path,
    dir: &Path,
    ended: &Ended,
    expected: Option<&Expected>,
) -> Result<(), Failure> {
    let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
    if let Ended::Screened(screening, written) = ended {
        let certificate = &screening.certificate;
        let folder = args.out.join("certificates").join(&*name);
        publish_file(scratch, &folder.join("timings.json"), &json_file(&screening.timings)?)?;
        publish_file(scratch, &folder.join("certificate.txt"), &File::text(page(screening)))?;
        if let Some(clauses) = written {
            let text = toml::to_string_pretty(clauses).map_err(|error| Failure::new(Status::Io, error))?;
            publish_file(scratch, &folder.join("clauses.toml"), &File::text(text))?;
        }
        publish_file(scratch, &folder.join("certificate.json"), &json_file(certificate)?)?;
        if config.format == Format::Json {
            say::json(certificate)?;
            return Ok(());
        }
    }
    if args.summary && expected.is_none() {
        let why = match ended {
            Ended::Unreadable(why) | Ended::Unsupported(why) | Ended::LeftOpen(why) => why,
            Ended::Screened(..) => "it has no expect.toml",
        };
        return say::line(format!("BAD {name:<44} {why}"));
    }
    if let Some(expected) = expected {
        let complaint = expected.complaint(ended);
        let mark = if complaint.is_none() { "ok " } else { "BAD" };
        return say::line(format!(
            "{mark} {name:<44} {}",
            complaint.unwrap_or_else(|| expected.about.clone())
        ));
    }
    let text = match ended {
        Ended::Screened(screening, _) => page(screening),
        Ended::Unsupported(why) => format!("{name}: not screened: {why}\n"),
        Ended::Unreadable(why) => format!("{name}: not a task: {why}\n"),
        Ended::LeftOpen(why) => format!("{name}: left open: {why}\n"),
    };
    say::text(&text)
}

fn conclude(config: &Config, args: &ScreenArgs, ended: &[(PathBuf, Ended, Option<Expected>)]) -> Outcome {
    let count = |test: &dyn Fn(&Ended, Option<&Expected>) -> bool| {
        ended.iter().filter(|(_, end, expected)| test(end, expected.as_ref())).count()
    };
    let left_open = count(&|end, _| matches!(end, Ended::LeftOpen(_)));
    if left_open > 0 {
        say::note(open::summary(left_open));
    }
    let certified = |end: &Ended| end.certificate().is_some_and(|certificate| certificate.certified);
    if args.summary {
        let matching =
            count(&|end, expected| expected.is_some_and(|expected| expected.complaint(end).is_none()));
        let mut proven: Vec<String> = ended
            .iter()
            .filter_map(|(_, end, expected)| Some((end, expected.as_ref()?)))
            .flat_map(|(end, expected)| expected.proven(end))
            .collect();
        proven.sort();
        proven.dedup();
        say::line(format!("attacks proven to score on a vulnerable task: {}", proven.join(" ")))?;
        let sound =
            count(&|_, expected| expected.is_some_and(|expected| expected.verdict == Wanted::Certified));
        say::line(format!(
            "{} tasks: {sound} sound, {} with a planted defect; {matching} as expected, {} not",
            ended.len(),
            ended.len() - sound,
            ended.len() - matching
        ))?;
        return Ok(ending(left_open, matching == ended.len()));
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
    Ok(ending(left_open, good == ended.len()))
}

fn ending(left_open: usize, all_good: bool) -> Status {
    match (left_open, all_good) {
        (0, true) => Status::Ok,
        (0, false) => Status::Failed,
        _ => Status::TryAgain,
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
    text.push_str(&rows(certificate));
    let rates = &certificate.rates;
    let share = |tally: crate::model::Tally| match tally.rate() {
        Some(rate) => format!("{rate:.2} ({} of {})", tally.good, tally.counted),
        None => "not tried".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "    violations refused      {}", share(rates.clauses));
    let _ = writeln!(text, "    wrong answers refused   {}", share(rates.killed));
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
    text.push_str(&clauses(certificate));
    for reason in &certificate.reasons {
        let _ = writeln!(text, "  → {}:{}: {}", reason.kind.name(), reason.name, reason.message);
        let _ = writeln!(text, "    {}: {}", reason.part.path(), reason.ask);
    }
    text
}

/// Time and memory of the reference, compared with the limits of a solver.
fn took(timings: &Timings) -> String {
    let Some((seconds, peak)) = timings.most(RowKind::Reference) else { return String::new() };
    let memory = peak.map_or_else(String::new, |bytes| {
        format!("; {} of {} MiB at once", bytes.div_ceil(MIB), timings.memory_mb)
    });
    format!("    a reference took        {seconds:.1} of {} s{memory}\n", timings.agent_timeout_sec)
}

fn expected(dir: &Path) -> Result<Expected, String> {
    let path = dir.join("expect.toml");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("failed to read `{}`: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| format!("`{}`: {error}", path.display()))
}

impl Expected {
    /// The rows that it names, in addition to those that every task needs.
    fn only(&self) -> Result<Only, String> {
        let mut wanted: Vec<_> = self.row.iter().map(|text| row(text)).collect::<Result<_, _>>()?;
        wanted.extend(self.proves.iter().map(|id| (RowKind::Attack, Some(id.clone()))));
        Ok(Only::Rows(wanted))
    }

    /// What differs from the expectation.
    fn complaint(&self, ended: &Ended) -> Option<String> {
        let certificate = match ended {
            Ended::Screened(screening, _) => &screening.certificate,
            Ended::Unreadable(why)
                if self.verdict == Wanted::Rejected && self.row.as_deref() == Some("lint") =>
            {
                let _ = why;
                return None;
            }
            Ended::Unsupported(why) | Ended::Unreadable(why) | Ended::LeftOpen(why) => {
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
                // A row of twenty references is called flake.
                let flake = name == "flake" && row.name.parse::<u32>().is_ok();
                row.kind.name() == kind && (named || flake) && row.ok == good
            })
        };
        match self.verdict {
            Wanted::Certified if !certificate.certified => {
                let reasons: Vec<_> =
                    certificate.reasons.iter().map(|reason| reason.message.clone()).collect();
                return Some(format!("sound, and rejected: {}", reasons.join("; ")));
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
            return Some(format!("row {row} does not say so, but {}", reasons.join("; ")));
        }
        let unproven: Vec<_> =
            self.proves.iter().filter(|id| !says(&format!("attack:{id}"), false)).cloned().collect();
        (!unproven.is_empty()).then(|| format!("attack {} does not score", unproven.join(", ")))
    }

    /// The attacks that scored as they should.
    fn proven(&self, ended: &Ended) -> Vec<String> {
        let Some(certificate) = ended.certificate() else { return Vec::new() };
        let scored = certificate.rows.iter().filter(|row| row.kind == RowKind::Attack && !row.ok);
        scored.map(|row| row.name.chars().take("D-00".len()).collect()).collect()
    }
}

pub(super) fn verify_certificate(config: &Config, args: &VerifyCertificateArgs) -> Outcome {
    let mut good = 0;
    let dirs = paths::tasks(&args.tasks)?;
    for dir in &dirs {
        let verdict = certificate_of(dir)?;
        good += usize::from(verdict.is_ok());
        let text = match &verdict {
            Ok(certificate) => {
                format!("certified by termsmith {} ({:?})", certificate.tool, certificate.rigor)
            }
            Err(why) => why.clone(),
        };
        match config.format {
            Format::Json => say::json(&serde_json::json!({
                "task": dir, "certified": verdict.is_ok(), "says": text,
            }))?,
            Format::Text => say::line(format!("{}: {text}", dir.display()))?,
        }
    }
    Ok(if good == dirs.len() { Status::Ok } else { Status::Failed })
}

/// The certificate in a task directory, if it matches the files of the directory.
fn certificate_of(dir: &Path) -> Result<Result<Certificate, String>, Failure> {
    let task = read_task(dir)?;
    let path = dir.join("certificate.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err("no certificate.json".to_owned()));
        }
        Err(error) => {
            let message = format!("failed to read `{}`: {error}", path.display());
            return Err(Failure::message(Status::Io, message));
        }
    };
    let certificate: Certificate = serde_json::from_slice(&text).map_err(|error| {
        Failure::message(
            Status::BadInput,
            format!(
                "`{}` is not a certificate of termsmith: {error}\nhint: `termsmith screen` makes a new one",
                path.display()
            ),
        )
    })?;
    Ok(if certificate.version > Certificate::VERSION {
        Err(format!("certificate of version {}, newer than this termsmith reads", certificate.version))
    } else if certificate.task_digest != task.digest() {
        Err("edited since it was certified: the files differ from those of the certificate".to_owned())
    } else if !certificate.certified {
        Err("screened and rejected".to_owned())
    } else if let Some(why) = super::rollout::revocation(dir) {
        Err(why)
    } else {
        Ok(certificate)
    })
}
