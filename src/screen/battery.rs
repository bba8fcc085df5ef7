//! The attack battery: work that was not done, and must not be paid for.

use futures_util::future::join_all;

use super::exam::{Exam, Exploit, Only};
use super::isolate::isolate;
use super::table::{Table, trial_row};
use crate::model::{FileTree, Rigor, RowKind};
use crate::verify::{Act, Condition, Lab, LabError, NamedScript, TrialRecord, knowledge};

/// Tries the attacks: those that do not disturb each other in one trial, the others each in one of its own.
pub(super) async fn attacks(
    lab: &Lab<'_>,
    exam: &Exam<'_>,
    rigor: Rigor,
    only: &Only,
    table: &mut Table,
) -> Result<(), LabError> {
    let knows = knowledge(exam.instruction, exam.tests);
    let wanted = exam.attacks.iter().filter(|attack| {
        only.wants_row(RowKind::Attack, &attack.name)
            && (!attack.alone || rigor == Rigor::Full || matches!(only, Only::Rows(_)))
    });
    let (alone, together): (Vec<&Exploit>, Vec<&Exploit>) = wanted.partition(|attack| attack.alone);
    let knows = &knows;
    let singles = join_all(alone.iter().map(|attack| async move { run(lab, exam, knows, &[*attack]).await }));
    let shared = run(lab, exam, knows, &together);
    let (singles, shared) =
        tokio::join!(singles, async { if together.is_empty() { Ok(None) } else { shared.await.map(Some) } });
    for (attack, record) in alone.iter().zip(singles) {
        push(table, attack, &record?);
    }
    let Some(shared) = shared? else { return Ok(()) };
    let scoring = isolate(&together, |group| async move {
        Ok::<_, LabError>(run(lab, exam, knows, &group).await?.verdict.passed())
    })
    .await?;
    for attack in together {
        match scoring.iter().find(|group| group.iter().any(|member| member.name == attack.name)) {
            Some(group) => push(table, attack, &run(lab, exam, knows, group).await?),
            // No group with it in it scored, or one that did contains a smaller one that does.
            None if shared.verdict.passed() => {
                push(table, attack, &run(lab, exam, knows, &[attack]).await?);
            }
            None => push(table, attack, &shared),
        }
    }
    Ok(())
}

async fn run(
    lab: &Lab<'_>,
    exam: &Exam<'_>,
    knows: &FileTree,
    group: &[&Exploit],
) -> Result<TrialRecord, LabError> {
    let scripts: Vec<_> = group
        .iter()
        .map(|attack| NamedScript { name: attack.name.clone(), text: attack.script.clone() })
        .collect();
    let act = Act::Attack { scripts: &scripts, knows };
    Ok(exam.arena.trial(lab, act, Condition::Ordinary, 0).await?.0)
}

/// A verifier that breaks under an attack has not paid for it, and says so: a missing verdict is never a reward.
fn push(table: &mut Table, attack: &Exploit, record: &TrialRecord) {
    let verdict = &record.verdict;
    let note = if verdict.passed() {
        format!("scores without doing the work ({})", attack.name)
    } else {
        attack.stopped_by.clone()
    };
    table.push(trial_row(RowKind::Attack, &attack.name, verdict, !verdict.passed(), &note));
}
