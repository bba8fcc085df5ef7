//! What two rollouts of a pair have in common, and the kind of pair that this makes.

use serde::Serialize;

use crate::export::actions::same_observation;
use crate::model::{ForkPoint, Rollout};

/// Turns that both sides of a fork share, at least. Every two rollouts of a task begin in the same
/// state: without a shared action that says nothing.
const LEAST_SHARED_TURNS: usize = 1;

/// Failed checks of a near miss, as a share of all: a quarter of the checks, and always at least
/// one. Most tasks have 5 to 12 checks, so it is 1 to 3 of them.
pub const NEAR_MISS_FAILED: f64 = 0.25;

/// How the sides of a pair are related, from the most instructive relation to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairKind {
    /// Both sides were in the same container state when their actions diverged.
    Fork,
    /// The worse side did part of the work and failed few checks ([`NEAR_MISS_FAILED`]).
    NearMiss,
    /// Any other two rollouts.
    BestWorst,
    /// One rollout: a round that failed, and the next one, which passed.
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

    /// The kind of a pair of two rollouts that share `shared` turns and whose actions diverge at
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

/// Turns before `divergence` that both sides share, actions and observations: after them the
/// containers of both were in the same state.
pub(super) fn shared_turns(one: &Rollout, other: &Rollout, divergence: usize) -> usize {
    // A fork begins in an image of its parent's state, so what was executed before it needs no
    // comparison.
    let known = forked_at(one, other).min(divergence);
    let shown = one.shown.iter().zip(&other.shown).take(divergence).skip(known);
    known + shown.take_while(|(one, other)| same_observation(one, other)).count()
}

/// Turns that both have by construction: one was forked from the other, or both from a third.
fn forked_at(one: &Rollout, other: &Rollout) -> usize {
    let from = |fork: &ForkPoint, parent: &Rollout| fork.parent == parent.id;
    match (&one.record.fork, &other.record.fork) {
        (Some(fork), _) if from(fork, other) => fork.turns,
        (_, Some(fork)) if from(fork, one) => fork.turns,
        (Some(fork), Some(sibling)) if fork.parent == sibling.parent => fork.turns.min(sibling.turns),
        (Some(_) | None, Some(_) | None) => 0,
    }
}
