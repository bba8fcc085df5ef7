//! Who plays which attempt.

use rand::rngs::ChaCha20Rng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::model::{Actor, ExpertScript, FailureMode, Seed};

/// How often a failing attempt is one that only goes wrong in a detail: such losers teach most in a preference pair.
const NEAR_MISS_PROBABILITY: f64 = 0.6;

/// The actor of one attempt at a task: even attempts mean to succeed, odd ones fail in a drawn way. It is a pure function
/// of seed and attempt, so more attempts never change the earlier ones.
pub fn scripted_actor(script: &ExpertScript, seed: Seed, attempt: u32) -> Actor {
    if attempt.is_multiple_of(2) {
        return Actor::Scripted { failure: None };
    }
    let mut rng = ChaCha20Rng::seed_from_u64(seed.derive(&["cast", &attempt.to_string()]).0);
    let mut near: Vec<_> = script.failures.iter().map(|failure| failure.mode).collect();
    near.sort();
    near.dedup();
    let derived = [FailureMode::IgnoredError, FailureMode::GivesUp, FailureMode::Loops];
    let from = if rng.random_bool(NEAR_MISS_PROBABILITY) { near.as_slice() } else { &derived };
    Actor::Scripted { failure: from.choose(&mut rng).copied() }
}
