//! The twin of mutation: right states in other forms, which a verifier must accept.

use super::exam::{Exam, Only};
use super::isolate::isolate;
use super::table::{Table, fails, trial_row, why};
use crate::model::{Row, RowKind, ShellOutcome, Variant};
use crate::verify::{Act, Condition, Lab, LabError, NOT_APPLICABLE, NamedScript, TrialRecord};

/// Tries all variants in one trial; those that it rejects are found by halves.
pub(super) async fn variants(
    lab: &Lab<'_>,
    exam: &Exam<'_>,
    only: &Only,
    table: &mut Table,
) -> Result<(), LabError> {
    let Some(solution) = exam.solution else { return Ok(()) };
    let wanted: Vec<&Variant> =
        exam.variants.iter().filter(|variant| only.wants_row(RowKind::Variant, &variant.name)).collect();
    let run = async |group: &[&Variant]| {
        let scripts: Vec<_> = group
            .iter()
            .map(|variant| NamedScript { name: variant.name.clone(), text: variant.script.clone() })
            .collect();
        let act = Act::Vary { solution, scripts: &scripts };
        exam.arena.trial(lab, act, Condition::Ordinary, 0).await
    };
    if wanted.is_empty() {
        return Ok(());
    }
    let (together, _) = run(&wanted).await?;
    let refused = isolate(&wanted, |group| {
        let run = &run;
        async move { Ok::<_, LabError>(!run(&group).await?.0.verdict.passed()) }
    })
    .await?;
    for variant in wanted {
        let status = together.ended.iter().find(|(name, _)| *name == variant.name).map(|(_, status)| status);
        let applied = !matches!(status, None | Some(ShellOutcome::Exited(NOT_APPLICABLE)));
        let group = refused.iter().find(|group| group.iter().any(|member| member.name == variant.name));
        let row = match group {
            Some(group) => {
                let (record, _) = run(group).await?;
                let note = format!(
                    "a right state in another form ({}; {}) does not pass: {}",
                    variant.title,
                    variant.legal,
                    why(&record.verdict)
                );
                trial_row(RowKind::Variant, &variant.name, &record.verdict, false, &note)
            }
            None if !applied => {
                let row = passed_with_others(variant, &together);
                Row { counts: false, note: "nothing here that it could vary".to_owned(), ..row }
            }
            None => passed_with_others(variant, &together),
        };
        table.push(row);
    }
    Ok(())
}

fn passed_with_others(variant: &Variant, together: &TrialRecord) -> Row {
    let verdict = &together.verdict;
    trial_row(RowKind::Variant, &variant.name, verdict, !fails(verdict) || verdict.passed(), "")
}
