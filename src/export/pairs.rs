//! Pairs of chosen and rejected rollouts of one task.
//!
//! The selection is a pure function of the task's rollouts and a policy, and every exported row contains the policy.

use serde::Serialize;

use super::messages::has_empty_message;
use crate::judge::Label;
use crate::model::{Rewards, Rollout};

/// How pairs are made. Every field is written into the rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairPolicy {
    pub name: String,
    /// The reward that is compared.
    pub reward: RewardKind,
    /// Least difference of the two rewards. Even with 0 the chosen reward is strictly greater.
    pub min_margin: f64,
    pub max_pairs_per_task: usize,
    /// The longer side has at most this many times the turns of the shorter one, so that length does not distinguish the sides.
    pub max_turn_ratio: f64,
    pub looping: Looping,
    pub prefer: Preference,
}

/// A reward that pairs compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// Share of checks that passed, as LiteCoder-Terminal pairs.
    PassRatio,
    /// 1 when every check passed, else 0.
    Binary,
}

/// Treatment of trajectories with a mechanical loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Looping {
    /// Loops are left out. As rejected sides they teach little: DMPO's clean losing sides beat noisy ones by 5 to 11 % (its §5.4).
    /// As chosen sides they would teach loops.
    Drop,
    Keep,
}

/// Which pairs come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// The highest rejected reward below the chosen one, so that the two sides differ in few checks.
    NearMiss,
    /// The lowest rejected reward.
    WidestMargin,
}

impl Default for PairPolicy {
    fn default() -> Self {
        Self {
            name: "near-miss".to_owned(),
            reward: RewardKind::PassRatio,
            min_margin: 0.0,
            // Limits the weight of a task with many attempts.
            max_pairs_per_task: 4,
            max_turn_ratio: 2.0,
            looping: Looping::Drop,
            prefer: Preference::NearMiss,
        }
    }
}

impl PairPolicy {
    /// The policy as rows contain it: JSON with every field, on one line.
    pub fn describe(&self) -> String {
        // A struct of strings, numbers and unit variants always has a JSON form; NaN becomes null.
        serde_json::to_string(self).unwrap_or_else(|_| self.name.clone())
    }
}

impl RewardKind {
    /// The id used in rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PassRatio => "pass_ratio",
            Self::Binary => "binary",
        }
    }

    /// This reward of `rewards`.
    pub fn of(self, rewards: &Rewards) -> f64 {
        match self {
            Self::PassRatio => rewards.pass_ratio,
            Self::Binary => rewards.binary,
        }
    }
}

/// Two rollouts of one task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<'a> {
    pub chosen: &'a Rollout,
    pub rejected: &'a Rollout,
    pub chosen_reward: f64,
    pub rejected_reward: f64,
}

impl Pair<'_> {
    /// Chosen minus rejected reward; greater than 0.
    pub fn margin(&self) -> f64 {
        self.chosen_reward - self.rejected_reward
    }
}

/// Rollouts that were passed as one task's, but belong to different tasks or versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "trajectories `{one}` and `{other}` of task `{task}` differ in task, task digest or environment digest\n\
     hint: only rollouts of one version of a task can be compared"
)]
pub struct MixedTasks {
    pub task: String,
    pub one: String,
    pub other: String,
}

/// The pairs of one task, best first.
pub fn pairs<'a>(rollouts: &'a [Rollout], policy: &PairPolicy) -> Result<Vec<Pair<'a>>, MixedTasks> {
    check_same_task(rollouts)?;
    let sides: Vec<Side<'a>> = rollouts.iter().filter_map(|rollout| Side::of(rollout, policy)).collect();

    let mut candidates: Vec<(Side<'a>, Side<'a>)> = Vec::new();
    for chosen in &sides {
        let losers = sides.iter().filter(|rejected| fits(chosen, rejected, policy));
        candidates.extend(losers.map(|rejected| (*chosen, *rejected)));
    }
    // Ids make the order total, so it does not depend on the order of the attempts.
    candidates.sort_by(|(c1, r1), (c2, r2)| {
        let rejected = match policy.prefer {
            Preference::NearMiss => r2.reward.total_cmp(&r1.reward),
            Preference::WidestMargin => r1.reward.total_cmp(&r2.reward),
        };
        c2.reward
            .total_cmp(&c1.reward)
            .then(rejected)
            .then(turn_ratio(c1, r1).total_cmp(&turn_ratio(c2, r2)))
            .then_with(|| (c1.id(), r1.id()).cmp(&(c2.id(), r2.id())))
    });
    Ok(spread(&candidates, policy.max_pairs_per_task))
}

fn is_looping(rollout: &Rollout) -> bool {
    rollout.labels.iter().any(|label| label == Label::MechanicalLoop.as_str())
}

/// A rollout that may stand in a pair: measured, with turns, and not looping unless the policy keeps loops.
#[derive(Clone, Copy)]
struct Side<'a> {
    rollout: &'a Rollout,
    reward: f64,
    turns: usize,
}

impl<'a> Side<'a> {
    fn of(rollout: &'a Rollout, policy: &PairPolicy) -> Option<Self> {
        let reward = policy.reward.of(rollout.rewards.as_ref()?);
        let turns = rollout.record.turns.len();
        let kept = !is_looping(rollout) || policy.looping == Looping::Keep;
        // Left out: an adversary's messages, which must not be imitated; empty messages, which chat templates refuse; and rollouts of
        // several conversations, because no single one of them led to the reward.
        let whole = rollout.record.handoffs.is_empty();
        let usable = turns > 0 && whole && !rollout.record.is_adversarial() && !has_empty_message(rollout);
        (kept && usable).then_some(Self { rollout, reward, turns })
    }

    fn id(&self) -> &'a str {
        &self.rollout.id
    }

    /// System message and prompt, which must be equal on both sides of a pair.
    fn instructions(&self) -> (&'a str, &'a str) {
        (&self.rollout.record.system, &self.rollout.record.prompt)
    }
}

fn check_same_task(rollouts: &[Rollout]) -> Result<(), MixedTasks> {
    let identity = |rollout: &Rollout| {
        let record = &rollout.record;
        (record.task.clone(), record.task_digest.clone(), record.environment_digest.clone())
    };
    let Some(first) = rollouts.first() else { return Ok(()) };
    match rollouts.iter().find(|other| identity(other) != identity(first)) {
        None => Ok(()),
        Some(other) => Err(MixedTasks {
            task: first.record.task.to_string(),
            one: first.id.clone(),
            other: other.id.clone(),
        }),
    }
}

fn fits(chosen: &Side<'_>, rejected: &Side<'_>, policy: &PairPolicy) -> bool {
    chosen.reward > rejected.reward
        && chosen.reward - rejected.reward >= policy.min_margin
        && turn_ratio(chosen, rejected) <= policy.max_turn_ratio
        && chosen.instructions() == rejected.instructions()
}

fn turn_ratio(one: &Side<'_>, other: &Side<'_>) -> f64 {
    one.turns.max(other.turns) as f64 / one.turns.min(other.turns) as f64
}

/// The first `limit` candidates; among those with equal rewards the ones whose sides were used least come first, so that
/// several winners and several losers are seen rather than one of them again and again.
fn spread<'a>(candidates: &[(Side<'a>, Side<'a>)], limit: usize) -> Vec<Pair<'a>> {
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    for equal in candidates.chunk_by(|one, two| one.0.reward == two.0.reward && one.1.reward == two.1.reward)
    {
        let mut left = equal.to_vec();
        while pairs.len() < limit && !left.is_empty() {
            let uses = |side: &Side<'_>| {
                pairs
                    .iter()
                    .filter(|pair| pair.chosen.id == side.id() || pair.rejected.id == side.id())
                    .count()
            };
            let least = (0..left.len()).min_by_key(|&at| uses(&left[at].0) + uses(&left[at].1)).unwrap_or(0);
            let (chosen, rejected) = left.remove(least);
            pairs.push(Pair {
                chosen: chosen.rollout,
                rejected: rejected.rollout,
                chosen_reward: chosen.reward,
                rejected_reward: rejected.reward,
            });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::export::fixture;
    use crate::model::TaskName;

    use super::*;

    /// Commands, checks passed of 8, and what is special.
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
        // Ties say nothing.
        check(&policy, &[(5, 8, No), (5, 8, No)], &[]);
        // The near miss comes first.
        check(&policy, &[(5, 8, No), (5, 2, No), (5, 7, No)], &[(0, 2), (0, 1), (2, 1)]);
        // Turn counts: commands and one submission; 6 against 12 is a factor of 2, 6 against 13 is not.
        check(&policy, &[(5, 8, No), (11, 4, No)], &[(0, 1)]);
        check(&policy, &[(5, 8, No), (12, 4, No)], &[]);
        check(&policy, &[(12, 8, No), (5, 4, No)], &[]);
        // Between equal rewards the more even lengths win.
        check(&policy, &[(5, 8, No), (9, 4, No), (6, 4, No)], &[(0, 2), (0, 1)]);
        // A loop is neither an example nor a telling mistake.
        check(&policy, &[(5, 8, No), (5, 4, Loops)], &[]);
        check(&policy, &[(5, 8, Loops), (5, 4, No)], &[]);
        // What was not measured is neither better nor worse.
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
        insta::assert_snapshot!(PairPolicy::default().describe(), @r#"{"name":"near-miss","reward":"pass_ratio","min_margin":0.0,"max_pairs_per_task":4,"max_turn_ratio":2.0,"looping":"drop","prefer":"near_miss"}"#);
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
                reward: if binary { RewardKind::Binary } else { RewardKind::PassRatio },
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
}
