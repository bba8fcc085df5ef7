//! Examines a draft: runs its trials, and turns their results into texts for models.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::stage::AuthorStage;
use super::working::{ENTRY, WORKDIR, Working, Wrong, rel};
use super::{StageContext, StageError};
use crate::model::{File, FileTree, Outcome, ShellOutcome, Verdict};
use crate::verify::{Act, Condition, Fingerprint, HashedTask, TrialLog, TrialRecord, VerifierLog};

/// Bytes of an output that a model is shown. It is the output's end, because errors are there.
const SHOWN: usize = 3_000;

/// Number of changed files that a model is told.
const MAX_PATHS: usize = 100;

/// A draft that is examined, stage by stage.
#[derive(Debug)]
pub(super) struct Examination<'a> {
    pub(super) context: &'a StageContext<'a>,
    pub(super) working: &'a mut Working,
    /// Wrong solutions that no check noticed, by identity or row. If one passes again, its own
    /// author is asked about it.
    pub(super) survivors: &'a mut BTreeSet<String>,
    /// How often the instruction or the machine was rewritten. Solvers try each version anew.
    pub(super) edition: u32,
}

/// Whether a solution's final state differs from the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Some,
    None,
}

impl Examination<'_> {
    pub(super) async fn trial(
        &self,
        task: &HashedTask<'_>,
        act: Act<'_>,
        condition: Condition<'_>,
    ) -> Result<(TrialRecord, TrialLog), StageError> {
        Ok(Box::pin(self.context.runner.trial(task, act, condition, 0)).await?)
    }

    /// The wrong solutions of `stage` that pass every check. Screening finds these trials in the
    /// store. Only if a clause names the solution, screening tries the clause's checks first, which
    /// is another trial.
    pub(super) async fn passing(&self, stage: &dyn AuthorStage) -> Result<Vec<(Wrong, Effect)>, StageError> {
        let task = self.working.task(self.context)?;
        let hashed = self.context.hashed(&task)?;
        let all = self.working.wrong_of(stage.name());
        let first = Condition::FirstFailure { likely: &[], known: &[] };
        let trials = all.iter().map(|wrong| self.trial(&hashed, Act::Solve(&wrong.solution.files), first));
        // All are awaited, so that an interrupted run commits the trials in progress.
        let ended: Vec<_> = join_all(trials).await.into_iter().collect::<Result<_, _>>()?;
        let (_, reference) = self.trial(&hashed, Act::Solve(&task.solution), Condition::Ordinary).await?;
        let passing = all.iter().zip(&ended).filter(|(_, (record, _))| record.verdict.passed());
        let passing = passing.map(|(wrong, (_, log))| {
            let has_effect = log.state.is_none() || log.state != reference.state;
            (wrong.clone(), if has_effect { Effect::Some } else { Effect::None })
        });
        Ok(passing.collect())
    }
}

/// How a script ended, in words.
pub(super) fn ended(exit: Option<ShellOutcome>) -> String {
    match exit {
        Some(ShellOutcome::Exited(status)) => format!("ended with status {status}"),
        Some(ShellOutcome::TimedOut) => "did not end in time".to_owned(),
        Some(ShellOutcome::ShellDied(status)) => format!("ended its shell with status {status}"),
        None => "could not be run".to_owned(),
    }
}

/// `problems`, with the reason why this stage must mend them.
pub(super) fn with_reason(mut problems: Vec<String>, reason: &str) -> Vec<String> {
    problems.push(format!("A judge who saw the instruction, the checks and these messages says: {reason}"));
    problems
}

/// Why the tests gave no verdict.
pub(super) fn no_verdict(record: &TrialRecord, log: &TrialLog) -> Option<String> {
    match record.verdict.outcome {
        Outcome::VerifierError => Some(format!(
            "the checks could not be run ({}); the end of pytest's output:\n{}",
            record.verdict.cause,
            tail(&log.verifier.output)
        )),
        Outcome::Timeout => Some(format!("the checks did not end: {}", record.verdict.cause)),
        Outcome::Pass | Outcome::Fail | Outcome::Infra => None,
    }
}

/// Names of the files that a correct solution added, changed and removed. Contents are left out, so
/// that no check can copy a value of the solution.
pub(super) fn changed_paths(before: &Fingerprint, after: &Fingerprint) -> Option<String> {
    let added = after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("added {path}"));
    let changed = after.iter().filter(|(path, file)| before.get(*path).is_some_and(|old| old != *file));
    let changed = changed.map(|(path, _)| format!("changed {path}"));
    let removed =
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("removed {path}"));
    let mut all: Vec<_> = added.chain(changed).chain(removed).collect();
    if let more @ 1.. = all.len().saturating_sub(MAX_PATHS) {
        all.truncate(MAX_PATHS);
        all.push(format!("and {more} more"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// The failed checks with their messages.
pub(super) fn failures(verdict: &Verdict, log: &VerifierLog) -> Vec<String> {
    let failed = verdict.checks.iter().filter(|check| !check.passed);
    let message = |id| log.messages.get(id).map_or("", String::as_str);
    failed.map(|check| format!("`{}`: {}", check.id, tail(message(&check.id)))).collect()
}

/// The end of a text.
pub(super) fn tail(text: &str) -> &str {
    let text = text.trim_end();
    let from = text.len().saturating_sub(SHOWN);
    let from = (from..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
    &text[from..]
}

/// A script that replays `commands`, as a solution's files.
pub(super) fn script(commands: &[String]) -> Result<FileTree, StageError> {
    let text = format!("#!/bin/bash\ncd {WORKDIR}\n{}\n", commands.join("\n"));
    Ok(FileTree::from_iter([(rel(ENTRY)?, File { bytes: text.into_bytes(), executable: true })]))
}
