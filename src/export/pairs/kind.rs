//! The kind of a pair: what its two rollouts have in common.

use serde::Serialize;

use crate::export::actions::same_observation;
use crate::model::{ForkPoint, Rollout};

/// Minimum number of turns that both sides of a fork share. All rollouts of a task start in the
/// same state, so without a shared turn that is nothing special.
const LEAST_SHARED_TURNS: usize = 1;

/// Maximum share of failed checks in a near miss. One check may always fail. Most tasks have 5 to
/// 12 checks, so it is 1 to 3 of them.
pub const NEAR_MISS_FAILED: f64 = 0.25;

/// How the sides of a pair are related. The most instructive relation comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairKind {
    /// Both sides were in the same container state when their actions diverged.
    Fork,
    /// The worse side did part of the work, and failed few checks ([`NEAR_MISS_FAILED`]).
    NearMiss,
    /// Any other two rollouts.
    BestWorst,
    /// Two rounds of one rollout: one that failed, and the next one, which passed.
    SelfCorrection,
}

impl PairKind {
    pub const ALL: [Self; 4] = [Self::Fork, Self::NearMiss, Self::BestWorst, Self::SelfCorrection];

    /// The id used in rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::NearMiss => "near_miss",
            Self::BestWorst => "best_worst",
            Self::SelfCorrection => "self_correction",
        }
    }

    /// The kind of a pair. Its rollouts share `shared` turns, and their actions diverge at
    /// `divergence`.
    pub(super) fn of(rejected: &Rollout, divergence: usize, shared: usize) -> Self {
        if shared == divergence && divergence >= LEAST_SHARED_TURNS {
            Self::Fork
        } else if is_near_miss(rejected) {
            Self::NearMiss
        } else {
            Self::BestWorst
        }
    }
}

fn is_near_miss(rollout: &Rollout) -> bool {
    let checks = &rollout.record.verdict.checks;
    let failed = checks.iter().filter(|check| !check.passed).count();
    let most = (checks.len() as f64 * NEAR_MISS_FAILED).max(1.0);
    rollout.rewards.is_some_and(|rewards| rewards.f2p > 0.0) && failed as f64 <= most
}

/// Number of turns before `divergence` with equal actions and equal observations. After these turns
/// both containers were in the same state.
pub(super) fn shared_turns(one: &Rollout, other: &Rollout, divergence: usize) -> usize {
    // A fork starts from an image of its parent's state, so earlier turns need no comparison.
    let known = forked_at(one, other).min(divergence);
    let shown = one.shown.iter().zip(&other.shown).take(divergence).skip(known);
    known + shown.take_while(|(one, other)| same_observation(one, other)).count()
}

/// Number of turns that both share because one was forked from the other, or both from a third.
fn forked_at(one: &Rollout, other: &Rollout) -> usize {
    let from = |fork: &ForkPoint, parent: &Rollout| fork.parent == parent.id;
    match (&one.record.fork, &other.record.fork) {
        (Some(fork), _) if from(fork, other) => fork.turns,
        (_, Some(fork)) if from(fork, one) => fork.turns,
        (Some(fork), Some(sibling)) if fork.parent == sibling.parent => fork.turns.min(sibling.turns),
        (Some(_) | None, Some(_) | None) => 0,
    }
}
