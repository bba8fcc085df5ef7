//! The attack battery: attempts to get a reward without doing the work.

use futures_util::future::join_all;

use super::settle::{GroupVerdict, settle};
use super::table::{Table, trial_row};
use super::target::{Exploit, Only, ScreeningTarget, WatchPlace};
use crate::model::{FileTree, Judging, Rigor, RowKind};
use crate::verify::{Act, Condition, NamedScript, TrialError, TrialLog, TrialRecord, TrialRunner, knowledge};

/// A trial with its observations.
type Tried = (TrialRecord, TrialLog);

/// Tries the attacks: independent ones together in one trial, each of the others in a trial of its own.
pub(super) async fn attacks(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    rigor: Rigor,
    only: &Only,
    table: &mut Table,
) -> Result<(), TrialError> {
    let knows = knowledge(target.instruction, target.tests);
    let wanted = target.attacks.iter().filter(|attack| {
        only.wants_row(RowKind::Attack, &attack.name)
            && (!attack.alone || rigor == Rigor::Full || matches!(only, Only::Rows(_)))
    });
    let (alone, together): (Vec<&Exploit>, Vec<&Exploit>) = wanted.partition(|attack| attack.alone);
    let knows = &knows;
    let singles =
        join_all(alone.iter().map(|attack| async move { run(runner, target, knows, &[*attack]).await }));
    let try_together = |group| run(runner, target, knows, group);
    let (singles, settled) = tokio::join!(singles, settle(&together, &try_together, &group_verdict));
    for (attack, record) in alone.iter().zip(singles) {
        push(target, table, attack, &record?);
    }
    let settled = settled?;
    for attack in &together {
        let group = settled.iter().find(|group| group.items.iter().any(|item| item.name == attack.name));
        if let Some(group) = group {
            push(target, table, attack, &group.record);
        }
    }
    watched(target, only, table);
    Ok(())
}

/// Rows of the attacks that are patterns. They count for no rate, since no trial was made.
fn watched(target: &ScreeningTarget<'_>, only: &Only, table: &mut Table) {
    for watch in target.watches.iter().filter(|watch| only.wants_row(RowKind::Attack, &watch.name)) {
        let found = target.findings.iter().find(|finding| finding.rule == watch.name);
        let note = match (watch.place, found) {
            (WatchPlace::Trajectory, _) => "no trial: looked for in the commands of trajectories".to_owned(),
            (WatchPlace::Task, None) => "no trial: the task's files show nothing of it".to_owned(),
            (WatchPlace::Task, Some(finding)) => {
                format!("no trial: invited by {}: {}", finding.location(), finding.message)
            }
        };
        table.skipped(RowKind::Attack, &watch.name, &note);
    }
}

/// A group whose verification breaks gets no reward, but its other attacks have not been tested.
fn group_verdict((record, _): &Tried) -> GroupVerdict {
    match &record.verdict {
        verdict if verdict.passed() => GroupVerdict::Guilty,
        verdict if verdict.is_judged() && !verdict.checks.is_empty() => GroupVerdict::Clear,
        _ => GroupVerdict::Unknown,
    }
}

async fn run(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    knows: &FileTree,
    group: &[&Exploit],
) -> Result<Tried, TrialError> {
    let scripts: Vec<_> = group
        .iter()
        .map(|attack| NamedScript { name: attack.name.clone(), text: attack.script.clone() })
        .collect();
    let act = Act::Attack { scripts: &scripts, knows };
    target.evaluation.trial(runner, act, Condition::Ordinary, 0).await
}

/// The row of an attack. The reasons that stop attacks in our clean room do not apply to a task that is judged as it declares: its row
/// states what was planted and what was observed.
fn push(target: &ScreeningTarget<'_>, table: &mut Table, attack: &Exploit, tried: &Tried) {
    let verdict = &tried.0.verdict;
    let note = if verdict.passed() {
        format!("scores without doing the work ({})", attack.name)
    } else if group_verdict(tried) == GroupVerdict::Unknown {
        format!(
            "planted {}; no check was reported, which is never a reward: {}",
            attack.plants, verdict.cause
        )
    } else {
        match target.evaluation.judging() {
            Judging::CleanRoom => format!("planted {}; stopped: {}", attack.plants, attack.stopped_by),
            Judging::Shared | Judging::Separate => {
                format!("planted {}; the reward stayed below 1", attack.plants)
            }
        }
    };
    table.push_timed(trial_row(RowKind::Attack, &attack.name, verdict, !verdict.passed(), &note), &tried.1);
}
