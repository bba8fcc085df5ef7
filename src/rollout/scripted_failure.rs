//! How attempts of a scripted expert fail.

use rand::rngs::ChaCha20Rng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::model::{ExpertScript, FailureMode, Seed};

/// Share of the failing attempts that are wrong in one detail only. Such losers are the most useful in a preference pair.
const NEAR_MISS_PROBABILITY: f64 = 0.6;

/// The failure of an attempt: even attempts try to succeed, odd ones fail in a drawn way. A pure function of seed and attempt, so a larger
/// number of attempts never changes the earlier ones.
pub(super) fn scripted_failure(script: &ExpertScript, seed: Seed, attempt: u32) -> Option<FailureMode> {
    if attempt.is_multiple_of(2) {
        return None;
    }
    let mut rng = ChaCha20Rng::seed_from_u64(seed.derive(&["cast", &attempt.to_string()]).0);
    let mut near: Vec<_> = script.failures.iter().map(|failure| failure.mode).collect();
    near.sort();
    near.dedup();
    let derived = [FailureMode::IgnoredError, FailureMode::GivesUp, FailureMode::Loops];
    let from = if rng.random_bool(NEAR_MISS_PROBABILITY) { near.as_slice() } else { &derived };
    from.choose(&mut rng).copied()
}
