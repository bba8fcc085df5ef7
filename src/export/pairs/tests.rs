use proptest::prelude::*;

use crate::export::fixture;
use crate::judge::Label;
use crate::model::{ForkPoint, TaskName};

use super::select::is_looping;
use super::*;

/// Number of commands, number of passed checks (of 8), and a special property.
type AttemptShape = (usize, u32, Special);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Special {
    No,
    Loops,
    Unmeasured,
}
use Special::{Loops, No, Unmeasured};

fn rollouts(attempts: &[AttemptShape]) -> Vec<Rollout> {
    let make = |(attempt, &(commands, passed, special)): (usize, &AttemptShape)| {
        let mut rollout = fixture::rollout("games", 1, attempt as u32, commands, passed);
        if special == Loops {
            rollout.labels.push(Label::MechanicalLoop.as_str().to_owned());
        }
        if special == Unmeasured { fixture::unmeasured(rollout) } else { rollout }
    };
    attempts.iter().enumerate().map(make).collect()
}

#[track_caller]
fn check(policy: &PairPolicy, attempts: &[AttemptShape], expect: &[(u32, u32)]) {
    let rollouts = rollouts(attempts);
    let found = pairs(&rollouts, policy).unwrap();
    let numbers = |pair: &Pair<'_>| (pair.chosen.record.attempt, pair.rejected.record.attempt);
    let found: Vec<_> = found.iter().map(numbers).collect();
    assert_eq!(found, expect, "{attempts:?}");
}

#[test]
fn the_default_policy() {
    let policy = PairPolicy::default();
    check(&policy, &[], &[]);
    check(&policy, &[(5, 8, No)], &[]);
    check(&policy, &[(5, 8, No), (5, 4, No)], &[(0, 1)]);
    check(&policy, &[(5, 4, No), (5, 8, No)], &[(1, 0)]);
    // Equal rewards give no pair.
    check(&policy, &[(5, 8, No), (5, 8, No)], &[]);
    // The near miss comes first.
    check(&policy, &[(5, 8, No), (5, 2, No), (5, 7, No)], &[(0, 2), (0, 1), (2, 1)]);
    // A side's turns are its commands and one submission. 6 against 12 is a factor of 2, 6 against
    // 13 is more.
    check(&policy, &[(5, 8, No), (11, 4, No)], &[(0, 1)]);
    check(&policy, &[(5, 8, No), (12, 4, No)], &[]);
    check(&policy, &[(12, 8, No), (5, 4, No)], &[]);
    // Among pairs with equal rewards, the pair with more similar lengths comes first.
    check(&policy, &[(5, 8, No), (9, 4, No), (6, 4, No)], &[(0, 2), (0, 1)]);
    // A loop is on neither side.
    check(&policy, &[(5, 8, No), (5, 4, Loops)], &[]);
    check(&policy, &[(5, 8, Loops), (5, 4, No)], &[]);
    // An unmeasured rollout is on neither side.
    check(&policy, &[(5, 8, No), (5, 0, Unmeasured)], &[]);
    // Four at most, spread over winners and losers.
    check(
        &policy,
        &[(5, 8, No), (5, 8, No), (5, 8, No), (5, 4, No), (5, 4, No), (5, 4, No)],
        &[(0, 3), (1, 4), (2, 5), (0, 4)],
    );
}

#[test]
fn the_knobs() {
    let shapes: &[AttemptShape] = &[(5, 8, No), (5, 2, No), (5, 7, No), (5, 6, Loops), (20, 5, No)];
    let base = PairPolicy::default();
    check(&base, shapes, &[(0, 2), (0, 1), (2, 1)]);
    check(&PairPolicy { max_pairs_per_task: 1, ..base.clone() }, shapes, &[(0, 2)]);
    check(&PairPolicy { max_pairs_per_task: 0, ..base.clone() }, shapes, &[]);
    check(&PairPolicy { min_margin: 0.5, ..base.clone() }, shapes, &[(0, 1), (2, 1)]);
    check(&PairPolicy { reward: RewardKind::Binary, ..base.clone() }, shapes, &[(0, 1), (0, 2)]);
    check(
        &PairPolicy { prefer: Preference::WidestMargin, ..base.clone() },
        shapes,
        &[(0, 1), (0, 2), (2, 1)],
    );
    let keep = PairPolicy { looping: Looping::Keep, ..base.clone() };
    check(&keep, shapes, &[(0, 2), (0, 3), (0, 1), (2, 3)]);
    check(&PairPolicy { max_turn_ratio: 4.0, max_pairs_per_task: 2, ..base }, shapes, &[(0, 2), (0, 4)]);
}

#[test]
fn the_policy_on_a_row() {
    insta::assert_snapshot!(PairPolicy::default().describe(), @r#"{"name":"near-miss","reward":"f2p","min_margin":0.0,"max_pairs_per_task":4,"max_pairs_per_loser":2,"max_turn_ratio":2.0,"looping":"drop","prefer":"near_miss"}"#);
}

#[test]
fn only_one_task_at_a_time() {
    let check = |change: fn(&mut Rollout)| {
        let mut rollouts = rollouts(&[(5, 8, No), (5, 4, No)]);
        change(&mut rollouts[1]);
        let error = pairs(&rollouts, &PairPolicy::default()).unwrap_err();
        assert_eq!((error.one.as_str(), error.other.as_str()), ("0000000100000000", "0000000100000001"));
    };
    check(|rollout| rollout.record.task = TaskName::parse("other").unwrap());
    check(|rollout| rollout.record.task_digest = None);
    check(|rollout| rollout.record.environment_digest = None);
}

#[test]
fn only_answers_to_the_same_prompt_are_compared() {
    let check = |change: fn(&mut Rollout), expect: usize| {
        let mut rollouts = rollouts(&[(5, 8, No), (5, 4, No)]);
        change(&mut rollouts[1]);
        assert_eq!(pairs(&rollouts, &PairPolicy::default()).unwrap().len(), expect);
    };
    check(|_| {}, 1);
    check(|rollout| rollout.record.prompt.push('x'), 0);
    check(|rollout| rollout.record.system.push('x'), 0);
}

/// A change to the rollouts of a row.
type Change = fn(&mut [Rollout]);

#[test]
fn kinds() {
    let check = |passed: u32, change: Change, expect: (PairKind, usize, usize)| {
        let mut rollouts = rollouts(&[(5, 8, No), (5, passed, No)]);
        change(&mut rollouts);
        let found = pairs(&rollouts, &PairPolicy::default()).unwrap();
        let found: Vec<_> = found.iter().map(|pair| (pair.kind, pair.divergence, pair.shared)).collect();
        assert_eq!(found, [expect]);
    };
    let other_output: Change = |rollouts| rollouts[1].shown[0][0].content.push('!');
    let forked: Change = |rollouts| {
        // E.g. a clock shows another time in the same state.
        rollouts[1].shown[0][0].content.push('!');
        rollouts[1].record.fork = Some(ForkPoint { parent: rollouts[0].id.clone(), turns: 1 });
    };
    let siblings: Change = |rollouts| {
        rollouts[1].shown[0][0].content.push('!');
        for rollout in rollouts {
            rollout.record.fork = Some(ForkPoint { parent: "another".to_owned(), turns: 1 });
        }
    };
    let other_start: Change = |rollouts| rollouts[1].record.turns.swap(0, 1);
    check(2, |_| {}, (PairKind::Fork, 1, 1));
    check(2, forked, (PairKind::Fork, 1, 1));
    check(2, siblings, (PairKind::Fork, 1, 1));
    check(7, other_output, (PairKind::NearMiss, 1, 0));
    // Two failed checks of eight are a near miss, three are not. A side without any passed check is
    // none either.
    check(6, other_output, (PairKind::NearMiss, 1, 0));
    check(5, other_output, (PairKind::BestWorst, 1, 0));
    check(0, other_output, (PairKind::BestWorst, 1, 0));
    // Without a shared action, the same state does not make a fork.
    check(6, other_start, (PairKind::NearMiss, 0, 0));
    for kind in PairKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}

#[test]
fn what_breaks_existing_behaviour_is_never_chosen() {
    let check = |reward: RewardKind, expect: &[(u32, u32)]| {
        // The first did all of the work, and broke a P2P check.
        let mut rollouts = rollouts(&[(5, 7, No), (5, 6, No), (5, 2, No)]);
        rollouts[0].rewards = Some(Rewards { binary: 0.0, pass_ratio: 0.875, f2p: 1.0, p2p: 0.5 });
        let policy = PairPolicy { reward, ..PairPolicy::default() };
        let found = pairs(&rollouts, &policy).unwrap();
        let found: Vec<_> =
            found.iter().map(|pair| (pair.chosen.record.attempt, pair.rejected.record.attempt)).collect();
        assert_eq!(found, expect, "{reward:?}");
    };
    check(RewardKind::F2p, &[(1, 2), (1, 0), (2, 0)]);
    check(RewardKind::PassRatio, &[(1, 2)]);
    check(RewardKind::Binary, &[]);
}

#[test]
fn pairs_differ_in_what_was_run() {
    let same = |rollouts: &mut [Rollout], one: usize, other: usize| {
        rollouts[other].record.turns = rollouts[one].record.turns.clone();
        for turn in &mut rollouts[other].record.turns {
            turn.content.insert_str(0, "In other words: ");
        }
    };
    let check = |attempts: &[AttemptShape], equal: &[(usize, usize)], expect: &[(u32, u32)]| {
        let mut rollouts = rollouts(attempts);
        equal.iter().for_each(|&(one, other)| same(&mut rollouts, one, other));
        let found = pairs(&rollouts, &PairPolicy::default()).unwrap();
        let numbers = |pair: &Pair<'_>| (pair.chosen.record.attempt, pair.rejected.record.attempt);
        assert_eq!(found.iter().map(numbers).collect::<Vec<_>>(), expect);
    };
    let three = [(5, 8, No), (5, 8, No), (5, 4, No)];
    check(&three, &[], &[(0, 2), (1, 2)]);
    // The winners ran the same commands, then the losers, then both sides.
    check(&three, &[(0, 1)], &[(0, 2)]);
    check(&[(5, 8, No), (5, 4, No), (5, 4, No)], &[(1, 2)], &[(0, 1)]);
    check(&[(5, 8, No), (5, 4, No)], &[(0, 1)], &[]);
    // A loser is in at most two pairs.
    check(&[(5, 8, No), (5, 8, No), (5, 8, No), (5, 4, No)], &[], &[(0, 3), (1, 3)]);
}

#[test]
fn why_a_rollout_is_in_no_pair() {
    let check = |attempts: &[AttemptShape], change: Change, expect: &[(u32, Unpaired)]| {
        let mut rollouts = rollouts(attempts);
        change(&mut rollouts);
        let selection = select(&rollouts, &PairPolicy::default()).unwrap();
        let found: Vec<_> =
            selection.unpaired.iter().map(|(rollout, why)| (rollout.record.attempt, *why)).collect();
        assert_eq!(found, expect, "{attempts:?}");
    };
    check(&[(5, 8, No), (5, 4, No)], |_| {}, &[]);
    check(&[(5, 8, No)], |_| {}, &[(0, Unpaired::Alone)]);
    check(&[(5, 8, No), (5, 4, Loops)], |_| {}, &[(0, Unpaired::Alone), (1, Unpaired::NoSide)]);
    check(&[(5, 8, No), (5, 8, No)], |_| {}, &[(0, Unpaired::EqualReward), (1, Unpaired::EqualReward)]);
    check(&[(5, 8, No), (20, 4, No)], |_| {}, &[(0, Unpaired::Lengths), (1, Unpaired::Lengths)]);
    check(
        &[(5, 8, No), (5, 4, No)],
        |rollouts| rollouts[1].record.prompt.push('x'),
        &[(0, Unpaired::OtherPrompt), (1, Unpaired::OtherPrompt)],
    );
    // Only one side could call functions, or both could call the same.
    check(
        &[(5, 8, No), (5, 4, No)],
        |rollouts| rollouts[1] = fixture::calling(rollouts[1].clone()),
        &[(0, Unpaired::OtherPrompt), (1, Unpaired::OtherPrompt)],
    );
    check(
        &[(5, 8, No), (5, 4, No)],
        |rollouts| rollouts.iter_mut().for_each(|rollout| *rollout = fixture::calling(rollout.clone())),
        &[],
    );
    check(
        &[(5, 8, No), (5, 4, No)],
        |rollouts| rollouts[1].record.turns = rollouts[0].record.turns.clone(),
        &[(0, Unpaired::SameActions), (1, Unpaired::SameActions)],
    );
    check(&[(5, 8, No), (5, 8, No), (5, 8, No), (5, 4, No)], |_| {}, &[(2, Unpaired::LimitReached)]);
    assert!(Unpaired::ALL.is_sorted());
}

proptest! {
    #[test]
    fn invariants(
        attempts in proptest::collection::vec(
            (1_usize..30, 0_u32..=8, prop_oneof![4 => Just(No), 1 => Just(Loops), 1 => Just(Unmeasured)]),
            0..12,
        ),
        margin in 0.0_f64..0.6,
        limit in 0_usize..10,
        binary in any::<bool>(),
    ) {
        let policy = PairPolicy {
            min_margin: margin,
            max_pairs_per_task: limit,
            reward: if binary { RewardKind::Binary } else { RewardKind::F2p },
            ..PairPolicy::default()
        };
        let rollouts = rollouts(&attempts);
        let found = pairs(&rollouts, &policy).unwrap();
        prop_assert!(found.len() <= limit);
        for (at, pair) in found.iter().enumerate() {
            let (chosen, rejected) = (pair.chosen, pair.rejected);
            let reward = |rollout: &Rollout| policy.reward.of(&rollout.rewards.unwrap());
            prop_assert_eq!(reward(chosen), pair.chosen_reward);
            prop_assert_eq!(reward(rejected), pair.rejected_reward);
            prop_assert!(pair.chosen_reward > pair.rejected_reward);
            prop_assert!(pair.margin() >= margin);
            prop_assert!(!is_looping(chosen) && !is_looping(rejected));
            let (long, short) = (chosen.record.turns.len(), rejected.record.turns.len());
            prop_assert!(long.max(short) <= 2 * long.min(short));
            let again = found[..at].contains(pair);
            prop_assert!(!again);
        }
        // The order of the attempts does not matter: ids decide.
        let mut reversed = rollouts.clone();
        reversed.reverse();
        prop_assert_eq!(pairs(&reversed, &policy).unwrap(), found);
    }
}
