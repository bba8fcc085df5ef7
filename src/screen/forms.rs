//! The complement of mutation: correct states in other forms, which a verifier must accept.

use super::settle::{GroupVerdict, Settled, settle};
use super::table::{Table, trial_row, why};
use super::target::{Only, ScreeningTarget};
use crate::model::{FileTree, Row, RowKind, ShellOutcome, Variant};
use crate::verify::{
    Act, Condition, NOT_APPLICABLE, NamedScript, TrialError, TrialLog, TrialRecord, TrialRunner,
};

/// Tries all variants in one trial; rejected ones are found by bisection.
pub(super) async fn variants(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    only: &Only,
    table: &mut Table,
) -> Result<(), TrialError> {
    let Some(solution) = target.solution else { return Ok(()) };
    let wanted: Vec<&Variant> =
        target.variants.iter().filter(|variant| only.wants_row(RowKind::Variant, &variant.name)).collect();
    let try_together = |group| run(runner, target, solution, group);
    let settled = settle(&wanted, &try_together, &group_verdict).await?;
    for variant in wanted {
        let group = settled.iter().find(|group| group.items.iter().any(|item| item.name == variant.name));
        let Some(Settled { verdict: grouped, record: (record, log), .. }) = group else { continue };
        let status = record.ended.iter().find(|(name, _)| *name == variant.name).map(|(_, status)| status);
        let applied = !matches!(status, None | Some(ShellOutcome::Exited(NOT_APPLICABLE)));
        let verdict = &record.verdict;
        let row = |ok, note: &str| trial_row(RowKind::Variant, &variant.name, verdict, ok, note);
        let row = match grouped {
            GroupVerdict::Clear if applied => row(true, ""),
            GroupVerdict::Clear => Row { counts: false, ..row(true, "not applicable: nothing here to vary") },
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
    target.evaluation.trial(runner, act, Condition::Ordinary, 0).await
}

/// Accepted if all pass. A verifier that breaks has rejected a variant.
fn group_verdict((record, _): &(TrialRecord, TrialLog)) -> GroupVerdict {
    if record.verdict.passed() { GroupVerdict::Clear } else { GroupVerdict::Guilty }
}
