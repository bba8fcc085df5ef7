//! The attack battery: scripts that try to get a reward without doing the work.

use futures_util::future::join_all;

use super::settle::{GroupVerdict, settle};
use super::table::Table;
use super::target::{Exploit, Only, ScreeningTarget, WatchPlace};
use crate::lint::attack::Alone;
use crate::model::{FileTree, Judging, Rigor, Row, RowKind, ShellOutcome, Verdict};
use crate::verify::{
    Act, Condition, NOT_APPLICABLE, NamedScript, TrialError, TrialLog, TrialRecord, TrialRunner, knowledge,
};

/// A trial with its observations.
type Tried = (TrialRecord, TrialLog);

/// Tries the attacks. Independent ones share a trial. Each of the others has a trial of its own.
pub(super) async fn attacks(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    rigor: Rigor,
    only: &Only,
    table: &mut Table,
) -> Result<(), TrialError> {
    let knows = knowledge(target.instruction, target.task.tests());
    let Groups { alone, together, apart } = Groups::wanted(target, rigor, only);
    let battery = Battery { runner, target, knows: &knows };
    let battery = &battery;
    let singles = join_all(alone.iter().map(|attack| async move { battery.run(&[*attack]).await }));
    let try_together = |group| battery.run(group);
    let (singles, settled, settled_apart) = tokio::join!(
        singles,
        settle(&together, &try_together, &group_verdict),
        settle(&apart, &try_together, &group_verdict)
    );
    for (attack, record) in alone.iter().zip(singles) {
        push(target, table, attack, &record?);
    }
    let settled: Vec<_> = settled?.into_iter().chain(settled_apart?).collect();
    for attack in together.iter().chain(&apart) {
        let group = settled.iter().find(|group| group.items.iter().any(|item| item.name == attack.name));
        if let Some(group) = group {
            push(target, table, attack, &group.record);
        }
    }
    watched(target, only, table);
    Ok(())
}

/// The number of trials if no attack passes.
pub(super) fn trials(target: &ScreeningTarget<'_>, rigor: Rigor, only: &Only) -> usize {
    let Groups { alone, together, apart } = Groups::wanted(target, rigor, only);
    alone.len() + usize::from(!together.is_empty()) + usize::from(!apart.is_empty())
}

/// The attacks, grouped by the trials that they share.
#[derive(Debug, PartialEq, Eq)]
struct Groups<'a> {
    /// Each attack has a trial of its own.
    alone: Vec<&'a Exploit>,
    together: Vec<&'a Exploit>,
    /// These attacks would mask those of `together`. E.g. an exploit that makes pytest run no tests
    /// hides another that would make them pass.
    apart: Vec<&'a Exploit>,
}

impl<'a> Groups<'a> {
    fn wanted(target: &ScreeningTarget<'a>, rigor: Rigor, only: &Only) -> Self {
        let singly = rigor == Rigor::Full || matches!(only, Only::Rows(_));
        let wanted = target.attacks.iter().filter(|attack| {
            only.wants_row(RowKind::Attack, &attack.name) && (attack.alone != Alone::Always || singly)
        });
        Self::of(wanted, target.task.judging())
    }

    fn of(attacks: impl Iterator<Item = &'a Exploit>, judging: Judging) -> Self {
        let mut groups = Self { alone: Vec::new(), together: Vec::new(), apart: Vec::new() };
        for attack in attacks {
            let group = match (attack.alone, judging) {
                (Alone::Always, _) => &mut groups.alone,
                (Alone::Shared, Judging::Shared) => &mut groups.apart,
                (Alone::Shared, Judging::CleanRoom | Judging::Separate) | (Alone::Nowhere, _) => {
                    &mut groups.together
                }
            };
            group.push(attack);
        }
        groups
    }
}

/// Adds rows for attacks that are only patterns. No trial was made, so they count for no rate.
fn watched(target: &ScreeningTarget<'_>, only: &Only, table: &mut Table) {
    for watch in target.watches.iter().filter(|watch| only.wants_row(RowKind::Attack, &watch.name)) {
        let found = target.findings.iter().find(|finding| finding.rule == watch.name);
        let note = match (watch.place, found) {
            (WatchPlace::Trajectory, _) => "no trial: searched for in the commands of rollouts".to_owned(),
            (WatchPlace::Task, None) => "no trial: no file of the task invites it".to_owned(),
            (WatchPlace::Task, Some(finding)) => {
                format!("no trial: invited by {}: {}", finding.location(), finding.message)
            }
        };
        table.skipped(RowKind::Attack, &watch.name, &note);
    }
}

/// A group whose verification breaks gets no reward. But its other attacks have not been tested.
fn group_verdict((record, _): &Tried) -> GroupVerdict {
    match &record.verdict {
        verdict if verdict.passed() => GroupVerdict::Guilty,
        verdict if verdict.is_judged() && !verdict.checks.is_empty() => GroupVerdict::Clear,
        _ => GroupVerdict::Unknown,
    }
}

/// Everything that the trials of attacks share.
struct Battery<'a> {
    runner: &'a TrialRunner<'a>,
    target: &'a ScreeningTarget<'a>,
    knows: &'a FileTree,
}

impl Battery<'_> {
    async fn run(&self, group: &[&Exploit]) -> Result<Tried, TrialError> {
        let scripts: Vec<_> = group
            .iter()
            .map(|attack| NamedScript { name: attack.name.clone(), text: attack.script.clone() })
            .collect();
        let act = Act::Attack { scripts: &scripts, knows: self.knows };
        let name = match group {
            [attack] => attack.name.clone(),
            _ => format!("{} attacks", group.len()),
        };
        // All checks run, since a later check may start a program that rewrites the results of
        // earlier ones.
        self.target.trial(self.runner, (RowKind::Attack, &name), act, Condition::Ordinary, 0).await
    }
}

/// Adds the row of an attack. If the task is judged as it declares, the row states what was planted
/// and observed, because our clean room's defences do not apply there.
fn push(target: &ScreeningTarget<'_>, table: &mut Table, attack: &Exploit, tried: &Tried) {
    let verdict = &tried.0.verdict;
    if !verdict.passed() && found_nothing(attack, &tried.0.ended) {
        table.push_timed(unplanted(table, attack, verdict), &tried.1);
        return;
    }
    let note = if verdict.passed() {
        format!("scores without doing the work ({})", attack.name)
    } else if group_verdict(tried) == GroupVerdict::Unknown {
        format!("planted {}; no check was reported, so there is no reward: {}", attack.plants, verdict.cause)
    } else {
        match target.task.judging() {
            Judging::CleanRoom => format!("planted {}; stopped: {}", attack.plants, attack.stopped_by),
            Judging::Shared | Judging::Separate => {
                format!("planted {}; the reward stayed below 1", attack.plants)
            }
        }
    };
    let row = table.trial_row(RowKind::Attack, &attack.name, verdict, !verdict.passed(), &note);
    table.push_timed(row, &tried.1);
}

/// Whether the attack's script had nothing to plant in this container. Then nothing was repelled
/// either.
fn found_nothing(attack: &Exploit, ended: &[(String, ShellOutcome)]) -> bool {
    ended.iter().any(|(name, how)| *name == attack.name && *how == ShellOutcome::Exited(NOT_APPLICABLE))
}

fn unplanted(table: &Table, attack: &Exploit, verdict: &Verdict) -> Row {
    let note = "not applicable: the container has nothing that it needs";
    Row { counts: false, ..table.trial_row(RowKind::Attack, &attack.name, verdict, true, note) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Assets;
    use crate::lint::attack::{Kind, attacks};

    fn exploit(name: &str, alone: Alone) -> Exploit {
        Exploit {
            id: name.to_owned(),
            name: name.to_owned(),
            script: String::new(),
            alone,
            plants: String::new(),
            stopped_by: String::new(),
        }
    }

    #[test]
    fn attacks_that_hide_others_have_a_trial_of_their_own_in_shared_mode() {
        let all = [
            exploit("a", Alone::Nowhere),
            exploit("b", Alone::Shared),
            exploit("c", Alone::Always),
            exploit("d", Alone::Shared),
            exploit("e", Alone::Nowhere),
        ];
        let check = |judging: Judging, alone: &[&str], together: &[&str], apart: &[&str]| {
            let groups = Groups::of(all.iter(), judging);
            for (group, expect) in [(groups.alone, alone), (groups.together, together), (groups.apart, apart)]
            {
                let names: Vec<_> = group.iter().map(|attack| attack.name.as_str()).collect();
                assert_eq!(names, expect, "{judging:?}");
            }
        };
        check(Judging::Shared, &["c"], &["a", "e"], &["b", "d"]);
        check(Judging::Separate, &["c"], &["a", "b", "d", "e"], &[]);
        check(Judging::CleanRoom, &["c"], &["a", "b", "d", "e"], &[]);
    }

    #[test]
    fn attacks_that_keep_tests_from_running_share_no_trial_with_those_that_change_their_results() {
        for attack in attacks(&Assets::embedded()).unwrap() {
            let Kind::Execute { script, alone } = attack.kind else { continue };
            let collects_only = script.contains("--collect-only");
            assert!(!collects_only || alone != Alone::Nowhere, "{}", attack.name);
        }
    }

    #[test]
    fn an_attack_without_anything_to_plant_does_not_count() {
        let check = |how: Option<ShellOutcome>, expect: bool| {
            let attack = exploit("a", Alone::Nowhere);
            let other = ("b".to_owned(), ShellOutcome::Exited(NOT_APPLICABLE));
            let ended: Vec<_> = how.map(|how| ("a".to_owned(), how)).into_iter().chain([other]).collect();
            assert_eq!(found_nothing(&attack, &ended), expect, "{ended:?}");
            let row = unplanted(
                &Table::default(),
                &attack,
                &Verdict::without_checks(crate::model::Outcome::Fail, ""),
            );
            assert_eq!((row.ok, row.counts), (true, false));
        };
        check(Some(ShellOutcome::Exited(NOT_APPLICABLE)), true);
        check(Some(ShellOutcome::Exited(0)), false);
        check(Some(ShellOutcome::Exited(1)), false);
        check(Some(ShellOutcome::TimedOut), false);
        check(None, false);
    }
}
