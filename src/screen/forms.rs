//! Variants: correct states in other forms, e.g. JSON with other blanks. A verifier must accept
//! them.

use super::settle::{GroupVerdict, Settled, settle};
use super::table::{Table, trial_row, why};
use super::target::{Only, ScreeningTarget};
use crate::model::{FileTree, Row, RowKind, ShellOutcome, Variant};
use crate::verify::{
    Act, Condition, NOT_APPLICABLE, NamedScript, TrialError, TrialLog, TrialRecord, TrialRunner,
};

/// Tries all variants in one trial. If it fails, bisection finds the rejected ones.
pub(super) async fn variants(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    only: &Only,
    table: &mut Table,
) -> Result<(), TrialError> {
    let Some(solution) = target.task.solution() else { return Ok(()) };
    let wanted: Vec<&Variant> =
        target.variants.iter().filter(|variant| only.wants_row(RowKind::Variant, &variant.name)).collect();
    let try_together = |group| run(runner, target, solution, group);
    let settled = settle(&wanted, &try_together, &group_verdict).await?;
    for variant in wanted {
        let group = settled.iter().find(|group| group.items.iter().any(|item| item.name == variant.name));
        let Some(Settled { verdict: grouped, record: (record, log), .. }) = group else { continue };
        let status = record.ended.iter().find(|(name, _)| *name == variant.name).map(|(_, status)| status);
        let verdict = &record.verdict;
        let row = |ok, note: &str| trial_row(RowKind::Variant, &variant.name, verdict, ok, note);
        let row = match grouped {
            GroupVerdict::Clear => match unapplied(status) {
                None => row(true, ""),
                Some(note) => Row { counts: false, ..row(true, &note) },
            },
            GroupVerdict::Guilty | GroupVerdict::Unknown => {
                let why = why(verdict);
                let (title, legal) = (&variant.title, &variant.legal);
                row(false, &format!("a right state in another form ({title}; {legal}) does not pass: {why}"))
            }
        };
        table.push_timed(row, log);
    }
    Ok(())
}

/// Why a script may have changed nothing, e.g. since it failed.
fn unapplied(status: Option<&ShellOutcome>) -> Option<String> {
    match status {
        Some(ShellOutcome::Exited(0)) => None,
        None | Some(ShellOutcome::Exited(NOT_APPLICABLE)) => {
            Some("not applicable: nothing here to vary".to_owned())
        }
        Some(ShellOutcome::Exited(status)) => {
            Some(format!("not applicable: its script ended with status {status}"))
        }
        Some(ShellOutcome::TimedOut | ShellOutcome::ShellDied(_)) => {
            Some("not applicable: its script did not end".to_owned())
        }
    }
}

async fn run(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    solution: &FileTree,
    group: &[&Variant],
) -> Result<(TrialRecord, TrialLog), TrialError> {
    let scripts: Vec<_> = group
        .iter()
        .map(|variant| NamedScript { name: variant.name.clone(), text: variant.script.clone() })
        .collect();
    let act = Act::Vary { solution, scripts: &scripts };
    let name = format!("{} forms", group.len());
    target.trial(runner, (RowKind::Variant, &name), act, Condition::Ordinary, 0).await
}

/// A group is accepted if all checks pass. A verifier that breaks has rejected a variant.
fn group_verdict((record, _): &(TrialRecord, TrialLog)) -> GroupVerdict {
    if record.verdict.passed() { GroupVerdict::Clear } else { GroupVerdict::Guilty }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_variant_that_was_carried_out_counts() {
        let check = |status: Option<ShellOutcome>, expect: Option<&str>| {
            let note = unapplied(status.as_ref());
            match (&note, expect) {
                (None, None) => {}
                (Some(note), Some(part)) => assert!(note.contains(part), "{note}"),
                (Some(_), None) | (None, Some(_)) => panic!("{status:?} gives {note:?}"),
            }
        };
        check(Some(ShellOutcome::Exited(0)), None);
        check(Some(ShellOutcome::Exited(NOT_APPLICABLE)), Some("nothing here to vary"));
        check(Some(ShellOutcome::Exited(1)), Some("status 1"));
        check(Some(ShellOutcome::TimedOut), Some("did not end"));
        check(None, Some("nothing here to vary"));
    }
}
