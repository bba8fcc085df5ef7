//! Examines a draft, cheapest first.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use super::arbiter::{self, Fault};
use super::at_fault::{Effect, Passing};
use super::working::{SETUP, Working};
use super::{Authoring, StageContext, StageError, at_fault, blind, equivalence, gate, made, quotes};
use crate::harbor::{Publication, write_task};
use crate::lint::lint_draft;
use crate::model::{
    AuthorStage, Certificate, CheckId, ClauseError, Draft, FileTree, Outcome, ShellOutcome, Task,
    WrongSolution,
};
use crate::screen::{Ends, Extent, Material, Only, screen};
use crate::verify::{Act, Condition, HashedTask, Outline, TrialLog, TrialRecord};

/// Bytes of an output that a model is shown: its end, where errors are.
const SHOWN: usize = 3_000;

/// Changed files that a model is told of.
const MAX_PATHS: usize = 100;

/// The first stage with problems, and these.
pub(super) type Found = Option<(AuthorStage, Vec<String>)>;

impl Authoring<'_> {
    /// Examines what is written up to `stage`.
    pub(super) async fn examine(&mut self, stage: AuthorStage) -> Result<Found, StageError> {
        let context = self.context;
        if let Some(problem) = self.machine().await? {
            return Ok(Some((AuthorStage::Environment, vec![problem])));
        }
        let draft = self.working.draft(context)?;
        let hashed = context.hashed(&draft.task)?;
        let examined = Examined { context, working: &self.working, draft: &draft, hashed: &hashed };
        let mut found = None;
        if stage >= AuthorStage::Instruction {
            let problems = gate::problems(&self.working.instruction);
            found = (!problems.is_empty()).then_some((AuthorStage::Instruction, problems));
        }
        if found.is_none() && stage >= AuthorStage::Solution {
            found = examined.solution().await?;
        }
        if found.is_none() && stage >= AuthorStage::Checks {
            found = examined.checks().await?;
        }
        if found.is_none() && stage >= AuthorStage::Attacks {
            let passing = examined.attacks().await?;
            found = at_fault::unstopped(&mut self.survivors, passing);
        }
        if found.is_none() && stage >= AuthorStage::Clauses {
            found = examined.clauses();
        }
        if found.is_none() && stage >= AuthorStage::Mistakes {
            let passing = examined.mistakes().await?;
            found = at_fault::overlooked(&mut self.survivors, &passing);
        }
        if stage >= AuthorStage::Clauses {
            self.working.clauses = quotes::assigned(self.working.clauses.clone(), &self.working.checks);
        }
        if found.is_none() && stage >= AuthorStage::Screening {
            found = self.screened().await?;
        }
        if found.is_none() && stage >= AuthorStage::Blind {
            let solved = blind::solved(context, &self.working, self.history.edition()).await?;
            match solved {
                Ok(second) => self.working.second = second,
                Err((stage, problems)) => found = Some((stage, problems)),
            }
        }
        Ok(found)
    }

    /// Screens the draft, and has surviving mutants judged where they are too many: those that violate nothing are set aside.
    async fn screened(&mut self) -> Result<Found, StageError> {
        let mut violated = BTreeMap::new();
        loop {
            let certificate = self.certificate().await?;
            let open = equivalence::open(&certificate, &self.working.solution, &violated);
            if open.is_empty() {
                let found =
                    at_fault::refused(&certificate, &self.working.clauses, &mut self.survivors, &violated);
                self.working.clauses = quotes::noticed(self.working.clauses.clone(), &certificate.clauses);
                return Ok(found);
            }
            let judged = equivalence::judged(self.context, &self.working, &open).await?;
            self.working.clauses.equivalent.extend(judged.equivalent);
            violated.extend(judged.violated);
        }
    }

    /// Builds the machine, and reads what `setup.sh` made of it. A problem is told to its author.
    async fn machine(&mut self) -> Result<Option<String>, StageError> {
        let context = self.context;
        let task = self.working.task(context)?;
        let hashed = context.hashed(&task)?;
        if let Err(log) = context.runner.build(&hashed).await? {
            return Ok(Some(format!("the image does not build; the end of the log:\n{}", tail(&log))));
        }
        if self.working.machine.get(SETUP).is_some() && self.working.made.is_none() {
            match made::made(context, &hashed).await? {
                Ok(made) => self.working.made = Some(made),
                Err(problem) => return Ok(Some(problem)),
            }
        }
        Ok(None)
    }

    /// Screens the draft, up to the first group of rows that rejects it, beginning with the violations that passed before: where the changed
    /// checks still miss one, the hundred others need not be executed. The pipeline's own screening makes the same trials; at lower rigors it may
    /// draw other violations.
    async fn certificate(&self) -> Result<Certificate, StageError> {
        let missed = at_fault::survived(&self.working.clauses, &self.survivors);
        if !missed.is_empty() {
            let certificate = certificate(self.context, &self.working, &Only::Rows(missed)).await?;
            if !certificate.certified {
                return Ok(certificate);
            }
        }
        certificate(self.context, &self.working, &Only::All).await
    }
}

/// Screens these rows of the draft, up to the first group that rejects it.
async fn certificate(
    context: &StageContext<'_>,
    working: &Working,
    only: &Only,
) -> Result<Certificate, StageError> {
    let draft = working.draft(context)?;
    let hashed = context.hashed(&draft.task)?;
    let directory = write_task(&draft.task, &Publication::default())?;
    let findings = lint_draft(context.rules, &directory, &draft);
    let extent = Extent { ends: Ends::Rejected, ..Extent::of(context.rigor) };
    let material = Material::of_draft(&draft, &hashed, &directory);
    let screening = screen(context.runner, context.suite, &material, &findings, extent, only).await?;
    let (certificate, _) = screening.conclusive()?;
    Ok(certificate)
}

/// One state of the draft.
struct Examined<'a> {
    context: &'a StageContext<'a>,
    working: &'a Working,
    draft: &'a Draft,
    hashed: &'a HashedTask<'a>,
}

impl Examined<'_> {
    fn task(&self) -> &Task {
        &self.draft.task
    }

    async fn trial(
        &self,
        act: Act<'_>,
        condition: Condition<'_>,
    ) -> Result<(TrialRecord, TrialLog), StageError> {
        Ok(Box::pin(self.context.runner.trial(self.hashed, act, condition, 0)).await?)
    }

    async fn solution(&self) -> Result<Found, StageError> {
        let (record, log) = self.trial(Act::Solve(&self.task().solution), Condition::Ordinary).await?;
        if record.exit == Some(ShellOutcome::Exited(0)) {
            return Ok(None);
        }
        let problem = match record.exit {
            None => format!("`solve.sh` could not be run: {}", record.verdict.cause),
            exit => format!("`solve.sh` {}; the end of its output:\n{}", ended(exit), tail(&log.output)),
        };
        Ok(Some((AuthorStage::Solution, vec![problem])))
    }

    async fn checks(&self) -> Result<Found, StageError> {
        let quoted = quotes::problems(&self.task().checks, &self.working.checks, &self.working.instruction);
        if !quoted.is_empty() {
            return Ok(Some((AuthorStage::Checks, quoted)));
        }
        let (untouched, before) = self.trial(Act::Nothing, Condition::Ordinary).await?;
        if let Some(problem) = no_verdict(&untouched, &before) {
            return Ok(Some((AuthorStage::Checks, vec![problem])));
        }
        if untouched.verdict.passed() {
            let problem =
                "every check passes on the untouched machine, where nothing has been done".to_owned();
            return Ok(Some((AuthorStage::Checks, vec![problem])));
        }
        let (reference, log) = self.trial(Act::Solve(&self.task().solution), Condition::Ordinary).await?;
        if let Some(problem) = no_verdict(&reference, &log) {
            return Ok(Some((AuthorStage::Checks, vec![problem])));
        }
        let failures = failures(&reference, &log);
        if failures.is_empty() {
            return Ok(None);
        }
        let changed = changed_paths(&before.outline, &log.outline);
        let judged = arbiter::judged(self.context, self.working, changed.as_deref(), &failures).await?;
        let of = |what: &str| failures.iter().map(|failure| format!("{what} fails {failure}")).collect();
        Ok(Some(match judged.fault {
            Fault::Solution => {
                let mut problems = told(of("your solution"), &judged.reason);
                let ended = ended(reference.exit);
                problems
                    .push(format!("your solution {ended}; the end of its output:\n{}", tail(&log.output)));
                problems.extend(changed.map(|changed| format!("what it did to files: {changed}")));
                (AuthorStage::Solution, problems)
            }
            Fault::Environment => (AuthorStage::Environment, told(of("a solution"), &judged.reason)),
            Fault::Checks => {
                let mut problems: Vec<_> = told(of("a correct solution"), &judged.reason);
                problems.extend(changed.map(|changed| format!("what that solution did to files: {changed}")));
                (AuthorStage::Checks, problems)
            }
            Fault::Instruction => {
                let problem =
                    format!("it can be read in two ways, or leaves something open: {}", judged.reason);
                (AuthorStage::Instruction, vec![problem])
            }
        }))
    }

    /// The attacks that pass every check.
    async fn attacks(&self) -> Result<Vec<WrongSolution>, StageError> {
        let ended = self.wrong(self.working.attacks.iter()).await?;
        let all = self.working.attacks.iter().zip(&ended);
        Ok(all.filter(|(_, (record, _))| record.verdict.passed()).map(|(attack, _)| attack.clone()).collect())
    }

    /// The mistakes that pass every check.
    async fn mistakes(&self) -> Result<Vec<Passing<'_>>, StageError> {
        let mistakes = &self.working.mistakes;
        let ended = self.wrong(mistakes.iter().map(|mistake| &mistake.wrong)).await?;
        let (_, reference) = self.trial(Act::Solve(&self.task().solution), Condition::Ordinary).await?;
        let all = mistakes.iter().zip(&ended).filter(|(_, (record, _))| record.verdict.passed());
        let passing = all.map(|(mistake, (_, log))| {
            let has_effect = log.state.is_none() || log.state != reference.state;
            Passing { mistake, effect: if has_effect { Effect::Some } else { Effect::None } }
        });
        Ok(passing.collect())
    }

    /// The trials of wrong solutions. The screening makes the same ones, except where a clause names one of these.
    async fn wrong(
        &self,
        all: impl Iterator<Item = &WrongSolution>,
    ) -> Result<Vec<(TrialRecord, TrialLog)>, StageError> {
        let first = Condition::FirstFailure { likely: &[] };
        let trials = all.map(|wrong| self.trial(Act::Solve(&wrong.files), first));
        // All are awaited, so that an interrupted run commits the trials in progress.
        join_all(trials).await.into_iter().collect()
    }

    /// Contradictions between the clauses, the instruction and the solution. Checks are not their author's concern.
    fn clauses(&self) -> Found {
        let Draft { task, clauses, .. } = self.draft;
        let mut problems =
            clauses.problems(&task.instruction, &task.solution, &task.checks, &Default::default());
        problems
            .retain(|problem| !matches!(problem, ClauseError::NoCheck(_) | ClauseError::UnknownCheck { .. }));
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        (!problems.is_empty()).then_some((AuthorStage::Clauses, problems))
    }
}

/// How a script ended.
fn ended(exit: Option<ShellOutcome>) -> String {
    match exit {
        Some(ShellOutcome::Exited(status)) => format!("ended with status {status}"),
        Some(ShellOutcome::TimedOut) => "did not end in time".to_owned(),
        Some(ShellOutcome::ShellDied(status)) => format!("ended its shell with status {status}"),
        None => "could not be run".to_owned(),
    }
}

/// `problems`, and why they were found to be this stage's.
fn told(mut problems: Vec<String>, reason: &str) -> Vec<String> {
    problems.push(format!("A judge who saw the instruction, the checks and these messages says: {reason}"));
    problems
}

/// Why the tests gave no verdict.
fn no_verdict(record: &TrialRecord, log: &TrialLog) -> Option<String> {
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

/// Which files a correct solution added, changed and removed: names only, so that no value of its own gets into a check.
fn changed_paths(before: &Outline, after: &Outline) -> Option<String> {
    let added = after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("added {path}"));
    let changed = after.iter().filter(|(path, trace)| before.get(*path).is_some_and(|old| old != *trace));
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
pub(super) fn failures(record: &TrialRecord, log: &TrialLog) -> Vec<String> {
    let failed = record.verdict.checks.iter().filter(|check| !check.passed);
    failed.map(|check| failure(&check.id, log.verifier.messages.get(&check.id))).collect()
}

/// One failed check with its message.
pub(super) fn failure(check: &CheckId, message: Option<&String>) -> String {
    format!("`{check}`: {}", tail(message.map_or("", String::as_str)))
}

/// The end of a text.
fn tail(text: &str) -> &str {
    let text = text.trim_end();
    let from = text.len().saturating_sub(SHOWN);
    let from = (from..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
    &text[from..]
}

/// The files of a script that replays `commands`.
pub(super) fn script(commands: &[String]) -> Result<FileTree, StageError> {
    let text = format!("#!/bin/bash\ncd {}\n{}\n", super::working::WORKDIR, commands.join("\n"));
    let file = crate::model::File { bytes: text.into_bytes(), executable: true };
    Ok(FileTree::from_iter([(super::working::rel("solve.sh")?, file)]))
}
