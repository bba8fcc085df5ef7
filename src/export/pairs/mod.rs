//! Pairs of chosen and rejected rollouts of one task.
//!
//! The selection is a pure function of the task's rollouts and a policy, and every exported row
//! contains the policy.

mod kind;
mod select;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use kind::{NEAR_MISS_FAILED, PairKind};
pub use select::{Selection, Unpaired, select};

use crate::model::{Rewards, Rollout, Shown, Turn};

/// How pairs are made. Every field is written into the rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairPolicy {
    pub name: String,
    /// The reward that is compared.
    pub reward: RewardKind,
    /// Least difference of the two rewards. Even with 0 the chosen reward is strictly greater.
    pub min_margin: f64,
    pub max_pairs_per_task: usize,
    /// Pairs in which one rollout is the rejected side. Their chosen sides differ in what they ran.
    pub max_pairs_per_loser: usize,
    /// The longer side has at most this many times the turns of the shorter one, so that length
    /// does not distinguish the sides.
    pub max_turn_ratio: f64,
    pub looping: Looping,
    pub prefer: Preference,
}

/// A reward that pairs compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// Weighted share of passed F2P checks, and 0 where a P2P check is broken: 0 for doing nothing.
    F2p,
    /// Share of checks that passed, as LiteCoder-Terminal pairs. P2P checks give an untouched
    /// environment a reward above 0.
    PassRatio,
    /// 1 when every check passed, else 0.
    Binary,
}

/// Treatment of trajectories with a mechanical loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Looping {
    /// Loops are left out. As rejected sides they teach little: DMPO's clean losing sides beat
    /// noisy ones by 5 to 11 % (its §5.4). As chosen sides they would teach loops.
    Drop,
    Keep,
}

/// Which pairs come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// The highest rejected reward below the chosen one, so that the two sides differ in few
    /// checks.
    NearMiss,
    /// The lowest rejected reward.
    WidestMargin,
}

impl Default for PairPolicy {
    fn default() -> Self {
        Self {
            name: "near-miss".to_owned(),
            reward: RewardKind::F2p,
            min_margin: 0.0,
            // Limits the weight of a task with many attempts.
            max_pairs_per_task: 4,
            // One loser seen again and again would teach its one mistake and its wording.
            max_pairs_per_loser: 2,
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
            Self::F2p => "f2p",
            Self::PassRatio => "pass_ratio",
            Self::Binary => "binary",
        }
    }

    /// This reward of `rewards`.
    pub fn of(self, rewards: &Rewards) -> f64 {
        match self {
            Self::F2p if breaks_p2p(rewards) => 0.0,
            Self::F2p => rewards.f2p,
            Self::PassRatio => rewards.pass_ratio,
            Self::Binary => rewards.binary,
        }
    }
}

/// Whether a check fails that the untouched environment passes. Such a side is never the chosen
/// one, whatever it adds.
pub(super) fn breaks_p2p(rewards: &Rewards) -> bool {
    rewards.p2p < 1.0
}

/// Two rollouts of one task, or two rounds of one rollout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<'a> {
    pub chosen: &'a Rollout,
    pub rejected: &'a Rollout,
    pub chosen_rewards: Rewards,
    pub rejected_rewards: Rewards,
    /// The reward that was compared.
    pub chosen_reward: f64,
    pub rejected_reward: f64,
    pub kind: PairKind,
    /// The first turn, from 0, at which the sides do different things. Of two rounds, the first
    /// turn of the second one.
    pub divergence: usize,
    /// Turns before it in which the observations are the same as well; they are taken from the
    /// chosen side in both.
    pub shared: usize,
    /// Turns of the rejected rollout that belong to the pair: all, or those up to the end of a
    /// round.
    pub rejected_turns: usize,
}

/// One turn of a side, as the pair shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SideTurn<'a> {
    pub(super) turn: &'a Turn,
    pub(super) shown: &'a [Shown],
}

impl<'a> Pair<'a> {
    /// Chosen minus rejected reward; greater than 0.
    pub fn margin(&self) -> f64 {
        self.chosen_reward - self.rejected_reward
    }

    /// A name that no other pair of an export has.
    pub fn id(&self) -> String {
        match self.kind {
            PairKind::Fork | PairKind::NearMiss | PairKind::BestWorst => {
                format!("{}-{}", self.chosen.id, self.rejected.id)
            }
            PairKind::SelfCorrection => {
                format!("{}-round-{}", self.chosen.id, self.rejected.record.rounds.len())
            }
        }
    }

    /// Turns whose message both sides take from the chosen one. In the turn after the shared ones
    /// the action is still the same, and only its observation differs.
    pub(super) fn common_messages(&self) -> usize {
        (self.shared + 1).min(self.divergence)
    }

    /// The turns of the chosen side.
    pub(super) fn chosen_side(&self) -> Vec<SideTurn<'a>> {
        let chosen = self.chosen;
        chosen.record.turns.iter().zip(&chosen.shown).map(|(turn, shown)| SideTurn { turn, shown }).collect()
    }

    /// The turns of the rejected side, those before the divergence in the words of the chosen one.
    pub(super) fn rejected_side(&self) -> Vec<SideTurn<'a>> {
        let rejected = self.rejected;
        let own = rejected.record.turns.iter().zip(&rejected.shown).take(self.rejected_turns);
        let other =
            self.chosen.record.turns.iter().zip(&self.chosen.shown).map(Some).chain(std::iter::repeat(None));
        let turns = own.zip(other).enumerate().map(|(at, ((turn, shown), other))| match other {
            Some((of_chosen, seen)) => SideTurn {
                turn: if at < self.common_messages() { of_chosen } else { turn },
                shown: if at < self.shared { seen } else { shown },
            },
            None => SideTurn { turn, shown },
        });
        turns.collect()
    }

    /// The first turn of the rejected side that the comparison is about.
    pub(super) fn rejected_from(&self) -> usize {
        match self.kind {
            PairKind::Fork | PairKind::NearMiss | PairKind::BestWorst => self.divergence,
            // The turns of the failed round.
            PairKind::SelfCorrection => {
                let rounds = &self.rejected.record.rounds;
                rounds
                    .len()
                    .checked_sub(2)
                    .and_then(|before| rounds.get(before))
                    .map_or(0, |round| round.turns)
            }
        }
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
    Ok(select(rollouts, policy)?.pairs)
}
