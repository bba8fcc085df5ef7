//! Pairs of a chosen and a rejected rollout of one task.
//!
//! The selection is a pure function of the task's rollouts and a policy. Every exported row
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
    /// Minimum difference of the two rewards. Even with 0 the chosen reward must be strictly
    /// greater.
    pub min_margin: f64,
    pub max_pairs_per_task: usize,
    /// Maximum number of pairs with the same rejected rollout. Their chosen sides ran different
    /// commands.
    pub max_pairs_per_loser: usize,
    /// Maximum ratio of the longer side's turns to the shorter side's. So length does not tell the
    /// sides apart.
    pub max_turn_ratio: f64,
    pub looping: Looping,
    pub prefer: Preference,
}

/// A reward that pairs compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// Weighted share of passed F2P checks. It is 0 if a P2P check is broken, and 0 for doing
    /// nothing.
    F2p,
    /// Share of passed checks, as LiteCoder-Terminal pairs. P2P checks give doing nothing a reward
    /// above 0.
    PassRatio,
    /// 1 if every check passed, else 0.
    Binary,
}

/// Treatment of trajectories that repeat the same commands in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Looping {
    /// They are left out. As chosen sides they would teach loops. As rejected sides they teach
    /// little: in the DMPO paper (§5.4), clean losing sides beat noisy ones by 5 to 11 %.
    Drop,
    Keep,
}

/// Which pairs come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// The pair with the highest rejected reward below the chosen one. Its sides differ in few
    /// checks.
    NearMiss,
    /// The pair with the lowest rejected reward.
    WidestMargin,
}

impl Default for PairPolicy {
    fn default() -> Self {
        Self {
            name: "near-miss".to_owned(),
            reward: RewardKind::F2p,
            min_margin: 0.0,
            // So that a task with many attempts does not dominate.
            max_pairs_per_task: 4,
            // So that the mistake and the wording of one loser are not repeated in many pairs.
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
        // Strings, numbers and unit variants always have a JSON form. NaN becomes null.
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

    /// The value of this reward in `rewards`.
    pub fn of(self, rewards: &Rewards) -> f64 {
        match self {
            Self::F2p if breaks_p2p(rewards) => 0.0,
            Self::F2p => rewards.f2p,
            Self::PassRatio => rewards.pass_ratio,
            Self::Binary => rewards.binary,
        }
    }
}

/// Whether a check fails that passes in the untouched environment. Such a side is never chosen.
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
    /// The rewards that were compared.
    pub chosen_reward: f64,
    pub rejected_reward: f64,
    pub kind: PairKind,
    /// The first turn, from 0, at which the sides do different things. For two rounds it is the
    /// first turn of the second round.
    pub divergence: usize,
    /// Number of turns before it with equal observations too. The row takes their messages from the
    /// chosen side.
    pub shared: usize,
    /// Number of turns of the rejected rollout that belong to the pair: all, or those up to the end
    /// of a round.
    pub rejected_turns: usize,
}

/// One turn of a side, as the row shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SideTurn<'a> {
    pub(super) turn: &'a Turn,
    pub(super) shown: &'a [Shown],
}

impl<'a> Pair<'a> {
    /// Chosen minus rejected reward. Greater than 0.
    pub fn margin(&self) -> f64 {
        self.chosen_reward - self.rejected_reward
    }

    /// The pair's name, unique in an export.
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

    /// Number of turns whose message both sides take from the chosen one. It includes the turn
    /// after the shared ones: the action there is still the same, only its observation differs.
    pub(super) fn common_messages(&self) -> usize {
        (self.shared + 1).min(self.divergence)
    }

    /// The turns of the chosen side.
    pub(super) fn chosen_side(&self) -> Vec<SideTurn<'a>> {
        let chosen = self.chosen;
        chosen.record.turns.iter().zip(&chosen.shown).map(|(turn, shown)| SideTurn { turn, shown }).collect()
    }

    /// The turns of the rejected side. Messages before the divergence are the chosen side's.
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

/// The error for rollouts that were passed as one task's, but belong to different tasks or
/// versions.
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
