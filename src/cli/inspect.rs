//! Commands that read a run folder: `export`, `report`, `import`, `audit`, `show`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::args::{AuditArgs, ExportArgs, ReportArgs, ShowArgs};
use super::args_import::{ImportArgs, ImportWhat};
use super::config::{Config, Format, existing_run, existing_run_locked, export_options, run_to_write};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::paths::{self, Expected};
use super::{cast, exported, say};
use crate::audit::table;
use crate::export::ExportOptions;
use crate::export::report::text as report_text;
use crate::export::separability::FEWEST_PAIRS;
use crate::folder::shown;
use crate::model::{Actor, Rollout, Tally, one_line};
use crate::pipeline::{
    Fault, Gathered, audit_store, export_store, gather, gather_groups, import_rollouts, publish_report,
    publish_rollouts, report_store,
};
use crate::rollout::{RolloutLog, rollout_id};
use crate::store::ReadStore;

pub(super) fn export(config: &Config, args: &ExportArgs) -> Outcome {
    let store = existing_run_locked(&args.out)?;
    let options = ExportOptions { strict: args.strict, ..export_options(&args.data, &args.out)? };
    let summary = export_store(&store, &options)?;
    exported::note(&summary);
    if args.strict && summary.measured_pairs < FEWEST_PAIRS {
        let pairs = summary.measured_pairs;
        say::note(format!(
            "{pairs} pairs are too few to say whether surface features tell their sides apart: {FEWEST_PAIRS} are needed"
        ));
    }
    match config.format {
        Format::Json => say::json(&summary)?,
        Format::Text => {
            for file in summary.configs.iter().flat_map(|config| &config.files) {
                let place = args.out.join("data").join(&file.path);
                say::line(format!("{:>6} rows  {:>9} bytes  {}", file.rows, file.bytes, place.display()))?;
            }
            if summary.excluded.near_duplicates > 0 {
                let count = summary.excluded.near_duplicates;
                say::line(format!(
                    "{count:>6} passes left out of sft: they ran the same commands as another pass of their task"
                ))?;
            }
        }
    }
    Ok(Status::Ok)
}

pub(super) fn report(config: &Config, args: &ReportArgs) -> Outcome {
    let store = existing_run_locked(&args.out)?;
    let report = report_store(&store)?;
    publish_report(&store, &report)?;
    match config.format {
        Format::Json => say::json(&report)?,
        Format::Text => say::text(&report_text(&report))?,
    }
    Ok(Status::Ok)
}

pub(super) fn import(config: &Config, args: &ImportArgs) -> Outcome {
    if let Some(ImportWhat::Cast(args)) = &args.what {
        return cast::import(config, args);
    }
    for place in &args.rollouts {
        paths::check(place, Expected::Rollouts)?;
    }
    paths::check_output_folder(&args.out, "--out")?;
    let assets = config.pipeline_assets()?;
    let store = run_to_write(&args.out)?;
    let mut refused = 0;
    for place in &args.rollouts {
        let summary = import_rollouts(&store, &assets, place)?;
        refused += summary.refused.len();
        for why in &summary.refused {
            say::note(format!("not imported: {why}"));
        }
        for note in &summary.notes {
            say::note(format!("note: {note}"));
        }
        if let Some(skipped) = skipped(&summary.skipped) {
            say::note(skipped);
        }
        match config.format {
            Format::Json => say::json(&serde_json::json!({
                "place": place,
                "rollouts": summary.rollouts.iter().map(rollout_id).collect::<Vec<_>>(),
                "known": summary.known,
                "refused": summary.refused.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "notes": summary.notes,
                "skipped": summary.skipped,
            }))?,
            Format::Text => say::line(format!(
                "{}: {} rollouts imported ({} imported before), {} refused",
                place.display(),
                summary.rollouts.len(),
                summary.known,
                summary.refused.len()
            ))?,
        }
    }
    if refused > 0 {
        say::note(format!("hint: {} can be imported", Expected::Rollouts.name()));
    }
    for group in gather_groups(&store)? {
        publish_rollouts(&store, &group?.rollouts).map_err(Fault::from)?;
    }
    exported::note(&export_store(&store, &export_options(&args.data, &args.out)?)?);
    Ok(if refused == 0 { Status::Ok } else { Status::Failed })
}

/// A note about files of other formats: their number, and the first names. `None` if there are
/// none.
fn skipped(files: &[PathBuf]) -> Option<String> {
    const NAMED: usize = 5;
    let names: Vec<_> = files.iter().take(NAMED).map(|file| format!("`{}`", shown(file))).collect();
    let more = if files.len() > NAMED { ", …" } else { "" };
    (!files.is_empty()).then(|| {
        format!("skipped: {} files that are no ATIF documents: {}{more}", files.len(), names.join(", "))
    })
}

pub(super) fn audit(config: &Config, args: &AuditArgs) -> Outcome {
    let store = existing_run(&args.out)?;
    let assets = config.pipeline_assets()?;
    let audit = audit_store(&assets, &store)?;
    match config.format {
        Format::Json => say::json(&audit)?,
        Format::Text => say::text(&table(&audit))?,
    }
    Ok(Status::Ok)
}

pub(super) fn show(config: &Config, args: &ShowArgs) -> Outcome {
    let store = existing_run(&args.out)?;
    for unit in gather(&store)? {
        let unit = unit?;
        if unit.draft.task.name.as_str() == args.id {
            show_task(config, &unit)?;
            return Ok(Status::Ok);
        }
        if let Some((rollout, log)) =
            unit.rollouts.iter().find(|(rollout, _)| rollout.id.starts_with(&args.id))
        {
            return show_rollout(config, &store, rollout, log);
        }
    }
    for group in gather_groups(&store)? {
        let group = group?;
        if let Some((rollout, log)) =
            group.rollouts.iter().find(|(rollout, _)| rollout.id.starts_with(&args.id))
        {
            return show_rollout(config, &store, rollout, log);
        }
    }
    Err(Failure::usage(format!(
        "no trajectory or task `{}` in the run folder `{}`\nhint: ids are the file names in its `trajectories/` and `tasks/`",
        args.id,
        args.out.display()
    )))
}

fn show_rollout(config: &Config, store: &ReadStore, rollout: &Rollout, log: &RolloutLog) -> Outcome {
    match config.format {
        Format::Json => {
            let documents = crate::pipeline::trajectory_documents(store, rollout, log)?;
            match documents.as_slice() {
                [only] => say::json(&only.trajectory)?,
                // A rollout with summaries has several documents.
                all => say::json(&all.iter().map(|document| &document.trajectory).collect::<Vec<_>>())?,
            }
        }
        Format::Text => say::text(&transcript(rollout))?,
    }
    Ok(Status::Ok)
}

fn show_task(config: &Config, unit: &Gathered) -> Result<(), Failure> {
    if config.format == Format::Json {
        say::json(&unit.certificate)?;
        return Ok(());
    }
    let task = &unit.draft.task;
    let mut text = format!("{}\n{}\n\n{}\n", task.name, task.title, task.instruction);
    text.push_str(&rows(&unit.certificate));
    for (rollout, _) in &unit.rollouts {
        let reward = rollout.rewards.map_or_else(|| "-".to_owned(), |rewards| rewards.binary.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "rollout {}  {:<28} reward {reward}",
            rollout.id,
            actor_name(&rollout.record.actor)
        );
    }
    say::text(&text)?;
    Ok(())
}

/// The teacher. For a scripted rollout also the failure that was planned. The reward says whether
/// it happened.
fn actor_name(actor: &Actor) -> String {
    let Actor::Scripted { strategy, failure, .. } = actor else { return actor.teacher().to_owned() };
    let how = failure.as_ref().map_or("expert", |failure| failure.mode.as_str());
    format!("{how}, {strategy}")
}

/// A certificate's rows as a table.
pub(super) fn rows(certificate: &crate::model::Certificate) -> String {
    rows_with(certificate, |_| String::new())
}

/// A certificate's rows as a table, each followed by the lines that `below` has for it.
pub(super) fn rows_with(
    certificate: &crate::model::Certificate,
    below: impl Fn(&crate::model::Row) -> String,
) -> String {
    let mut text = String::new();
    for row in &certificate.rows {
        let mark = if row.ok { "ok " } else { "BAD" };
        let kind = serde_json::to_value(row.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
        let checks =
            row.passed_of.map_or_else(String::new, |(passed, of)| format!("{passed} of {of} checks"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{mark} {:<18} {:<28} {checks:<16} {}",
            kind.unwrap_or_default(),
            one_line(&row.name),
            row.note.lines().next().unwrap_or_default()
        );
        text.push_str(&below(row));
    }
    text
}

/// The clauses of the instruction as a table: how many violations failed, and the checks that
/// noticed them.
pub(super) fn clauses(certificate: &crate::model::Certificate) -> String {
    let mut text = String::new();
    // At low rigors most clauses are untested for the same reason. So they share a line.
    let mut left_out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for clause in &certificate.clauses {
        if let (0, Some(why)) = (clause.violations.counted, &clause.untested) {
            left_out.entry(why).or_default().push(&clause.id);
            continue;
        }
        let noticed: Vec<_> = clause.noticed_by.iter().map(crate::model::CheckId::as_str).collect();
        let Tally { good, counted } = clause.violations;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "    clause {:<28} {good} of {counted} violations noticed  {}",
            clause.id,
            noticed.join(" ")
        );
        if let Some(why) = &clause.untested {
            let _ = writeln!(text, "           {:<28} not tested: {why}", "");
        }
    }
    for (why, clauses) in left_out {
        let _ = writeln!(text, "    not tested: {}: {why}", clauses.join(" "));
    }
    for sentence in &certificate.uncovered {
        let _ = writeln!(text, "    in no clause: {sentence}");
    }
    text
}

fn transcript(rollout: &Rollout) -> String {
    let record = &rollout.record;
    let mut text =
        format!("# {} · attempt {} · {:?}\n\n{}\n", record.task, record.attempt, record.end, record.prompt);
    add_turns(rollout, &mut text);
    for view in rollout.views().skip(1) {
        let (number, kind) = (view.number, view.kind.as_str());
        let _ = write!(text, "\n── thread {number} ({kind}) ──\n\n{}\n", view.rollout.record.prompt);
        add_turns(&view.rollout, &mut text);
    }
    let verdict = &record.verdict;
    let _ = writeln!(text, "\n── verdict: {:?} {} ──", verdict.outcome, one_line(&verdict.cause));
    for check in &verdict.checks {
        let _ =
            writeln!(text, "{} {}", if check.passed { "pass" } else { "FAIL" }, one_line(check.id.as_str()));
    }
    text
}

/// Adds the turns of one thread.
fn add_turns(rollout: &Rollout, text: &mut String) {
    let record = &rollout.record;
    for (number, (turn, shown)) in record.turns.iter().zip(&rollout.shown).enumerate() {
        for (handoff, shown) in record.handoffs.iter().zip(&rollout.handoffs) {
            if handoff.turns == number {
                let _ = match &handoff.step {
                    Some(step) => write!(text, "\n── step `{}` of the task ──\n", one_line(step)),
                    None => write!(text, "\n── the conversation continues from a summary ──\n"),
                };
                // The prompt was printed above.
                for message in shown.context.iter().skip_while(|message| message.content == record.prompt) {
                    let _ = writeln!(text, "{}", message.content);
                }
            }
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "\n── turn {} ──\n", number + 1);
        if let Some(reasoning) = &turn.reasoning {
            let _ = writeln!(text, "({reasoning})\n");
        }
        let _ = writeln!(text, "{}", turn.content);
        for call in &turn.tool_calls {
            let _ = writeln!(text, "[{} {}]", call.name, call.arguments);
        }
        for shown in shown {
            let _ = writeln!(text, "\n{}", shown.content);
        }
    }
}
