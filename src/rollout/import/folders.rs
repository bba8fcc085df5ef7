//! Finds rollouts in files, trials and jobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::outcome::{TestReport, TrialResult};
use super::{ImportError, Imports, Problem, atif, logs, malformed, read_text, refused};
use crate::folder::{Fault, WalkError, replace_lone_surrogates};
use crate::model::TaskName;

/// Levels of folders above a trajectory: a folder of jobs, a job, a trial.
const DEPTH: usize = 3;
/// Largest number of entries of one folder. The largest known jobs have tens of thousands of
/// trials.
const MOST_ENTRIES: usize = 500_000;

pub(super) fn read(path: &Path) -> Result<Imports, ImportError> {
    let mut imports = Imports::default();
    if path.is_dir() {
        visit(path, DEPTH, &mut imports)?;
        if imports.rollouts.is_empty() && imports.refused.is_empty() {
            single_files(path, DEPTH, &mut imports);
        }
    } else if let Some(text) = read_text(path)? {
        imports.add(atif::read(path, &text, None));
    }
    if imports.rollouts.is_empty() && imports.refused.is_empty() {
        return Err(ImportError::Nothing(path.to_owned()));
    }
    imports.number();
    Ok(imports)
}

impl Imports {
    fn add(&mut self, found: Result<super::Imported, ImportError>) {
        match found {
            Ok(imported) => self.rollouts.push(imported),
            Err(error) => self.refused.push(error),
        }
    }

    /// Numbers the attempts at each task in their order, if the source has no numbers. Harbor has
    /// none.
    fn number(&mut self) {
        let mut next: BTreeMap<(TaskName, String, String), u32> = BTreeMap::new();
        for imported in &mut self.rollouts {
            let record = &mut imported.record;
            let key = (record.task.clone(), record.actor.teacher().to_owned(), record.scaffold.clone());
            let next = next.entry(key).or_default();
            record.attempt = record.attempt.max(*next);
            *next = record.attempt.saturating_add(1);
        }
    }
}

/// Adds the trials at or below `folder`.
fn visit(folder: &Path, depth: usize, imports: &mut Imports) -> Result<(), ImportError> {
    if is_folder(&folder.join("agent")) {
        trial(folder, imports);
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in entries(folder)? {
        // One unreadable folder does not stop the others.
        if is_folder(&entry)
            && let Err(error) = visit(&entry, depth - 1, imports)
        {
            imports.refused.push(error);
        }
    }
    Ok(())
}

/// Adds the ATIF files at or below `folder`. A continuation is a part of the rollout that it
/// continues.
fn single_files(folder: &Path, depth: usize, imports: &mut Imports) {
    let entries = match entries(folder) {
        Ok(entries) => entries,
        Err(error) => return imports.refused.push(error),
    };
    for path in entries {
        if is_folder(&path) {
            if depth > 0 {
                single_files(&path, depth - 1, imports);
            }
            continue;
        }
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        match if is_json { read_text(&path) } else { Ok(None) } {
            Ok(Some(text)) if text.contains("\"ATIF-v") => match atif::read(&path, &text, None) {
                Err(ImportError::Refused { problem: Problem::Part | Problem::Aside, .. }) => {}
                found => imports.add(found),
            },
            Ok(Some(text)) if is_torn(&text) => imports.refused.push(refused(&path, Problem::Torn)),
            Ok(_) => imports.skipped.push(path),
            Err(error) => imports.refused.push(error),
        }
    }
}

/// Whether a text is JSON without its end, e.g. after an interrupted copy.
fn is_torn(text: &str) -> bool {
    let parsed = serde_json::from_str::<serde::de::IgnoredAny>(text);
    !text.trim().is_empty() && parsed.is_err_and(|error| error.is_eof())
}

/// Adds the rollout of the trial in `folder`. It is read from the trajectory and its continuations,
/// or else from the episodes.
fn trial(folder: &Path, imports: &mut Imports) {
    let result = match trial_result(folder) {
        Ok(result) => result,
        Err(error) => return imports.refused.push(error),
    };
    let agent = folder.join("agent");
    let mut documents = vec![agent.join("trajectory.json")];
    match entries(&agent) {
        Ok(entries) => documents.extend(entries.into_iter().filter(|path| is_continuation(path))),
        Err(error) => return imports.refused.push(error),
    }
    let mut found = false;
    for path in documents {
        // This file was added as a part of another rollout.
        if imports.rollouts.last().is_some_and(|last| last.parts.contains(&path)) {
            continue;
        }
        match read_text(&path) {
            Ok(None) => {}
            Ok(Some(text)) => {
                found = true;
                imports.add(atif::read(&path, &text, result.as_ref()));
            }
            Err(error) => {
                found = true;
                imports.refused.push(error);
            }
        }
    }
    if found {
        return;
    }
    match logs::read(folder, result.as_ref()) {
        Ok(Some(imported)) => imports.rollouts.push(imported),
        Ok(None) => imports.refused.push(refused(folder, Problem::NoTrajectory)),
        Err(error) => imports.refused.push(error),
    }
}

fn trial_result(folder: &Path) -> Result<Option<TrialResult>, ImportError> {
    let path = folder.join("result.json");
    let Some(text) = read_text(&path)? else { return Ok(None) };
    let mut result: TrialResult =
        serde_json::from_str(&replace_lone_surrogates(&text)).map_err(malformed(&path))?;
    // In shared mode the solver can spoil the tests' report. The report is ignored then, because
    // the reward decides.
    let report = read_text(&folder.join("verifier").join("ctrf.json")).ok().flatten();
    let report: Option<TestReport> =
        report.and_then(|text| serde_json::from_str(&replace_lone_surrogates(&text)).ok());
    result.tests = report.map(|report| report.checks()).unwrap_or_default();
    Ok(Some(result))
}

/// Harbor writes `trajectory.cont-1.json` after a summary with `linear_history`.
fn is_continuation(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("trajectory.cont-") && name.ends_with(".json")
}

/// Whether `path` is a folder and not a link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// The entries of `folder`, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let fault = |fault| WalkError { path: folder.to_owned(), fault };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| fault(Fault::Io(error)))? {
        found.push(entry.map_err(|error| fault(Fault::Io(error)))?.path());
        if found.len() > MOST_ENTRIES {
            return Err(fault(Fault::TooManyFiles(MOST_ENTRIES)).into());
        }
    }
    found.sort();
    Ok(found)
}
