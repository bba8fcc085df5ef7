//! The twin of mutation: right states in other forms, which a verifier must accept.

use super::settle::{Says, Settled, settle};
use super::table::{Table, trial_row, why};
use super::target::{Only, ScreeningTarget};
use crate::model::{FileTree, Row, RowKind, ShellOutcome, Variant};
use crate::verify::{
    Act, Condition, NOT_APPLICABLE, NamedScript, TrialError, TrialLog, TrialRecord, TrialRunner,
};

/// Tries all variants in one trial; those that it rejects are found by halves.
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
    let settled = settle(&wanted, &try_together, &says).await?;
    for variant in wanted {
        let speaks = settled.iter().find(|group| group.items.iter().any(|item| item.name == variant.name));
        let Some(Settled { says, record: (record, log), .. }) = speaks else { continue };
        let status = record.ended.iter().find(|(name, _)| *name == variant.name).map(|(_, status)| status);
        let applied = !matches!(status, None | Some(ShellOutcome::Exited(NOT_APPLICABLE)));
        let verdict = &record.verdict;
        let said = |ok, note: &str| trial_row(RowKind::Variant, &variant.name, verdict, ok, note);
        let row = match says {
            Says::Clear if applied => said(true, ""),
            Says::Clear => Row { counts: false, ..said(true, "nothing here that it could vary") },
            Says::Guilty | Says::Nothing => {
                let why = why(verdict);
                let (title, legal) = (&variant.title, &variant.legal);
                said(false, &format!("a right state in another form ({title}; {legal}) does not pass: {why}"))
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

/// All pass, or one of them is refused; a verifier that breaks has refused it.
fn says((record, _): &(TrialRecord, TrialLog)) -> Says {
    if record.verdict.passed() { Says::Clear } else { Says::Guilty }
}
