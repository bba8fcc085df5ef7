//! φ: the weight of one turn in the loss of DMPO (Direct Multi-Turn Preference Optimization, arXiv
//! 2406.14868).
//!
//! φ(t, T) = γ^t (1 − γ^(T−t)) / (1 − γ^T), and (T − t) / T for γ = 1. T is the number of assistant
//! turns of one side, and t the index of a turn, from 0. This is the formula in the authors' code.
//! Equation 16 of the paper lacks γ^t, but only the formula with it satisfies the paper's Corollary
//! 4.0.2 (for γ → 0 only the first turn has weight).

use std::fmt;

use serde::Serialize;

/// The discount factor γ of DMPO, in (0, 1].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Gamma(f64);

/// The error for a number outside of γ's range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("γ must be greater than 0 and at most 1, not {0}")]
pub struct GammaError(pub f64);

impl Gamma {
    /// The discount of the whole dataset. All pairs share it, so that they have the same objective.
    ///
    /// The authors' 0.7 suits short games. At 27 turns, the mean length of LiteCoder-Terminal's
    /// trajectories, it leaves turn 10 a weight of 0.03; 0.95 leaves it 0.46. The paper advises a
    /// larger γ if the losing side is clean. Ours is, because loops are left out.
    pub const DEFAULT: Gamma = Gamma(0.95);

    /// Checks that `gamma` is in range.
    pub fn new(gamma: f64) -> Result<Self, GammaError> {
        if gamma > 0.0 && gamma <= 1.0 { Ok(Self(gamma)) } else { Err(GammaError(gamma)) }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for Gamma {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Gamma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// φ(t, T) for t = 0 … T − 1, where T is `turns`.
///
/// With S(n) = 1 + γ + … + γ^(n−1), φ(t, T) = γ^t S(T − t) / S(T). This form only adds and
/// multiplies positive numbers. So it loses no digits near γ = 1, and γ = 1 is no special case. It
/// uses neither `exp` nor `ln`, so the bits are the same on every machine.
pub fn weights(gamma: Gamma, turns: usize) -> Vec<f64> {
    let powers: Vec<f64> =
        std::iter::successors(Some(1.0), |power| Some(power * gamma.0)).take(turns).collect();
    let mut sums = Vec::with_capacity(turns);
    let mut sum = 0.0;
    for power in &powers {
        sum += power;
        sums.push(sum);
    }
    // `sums` holds S(1) … S(T). Read backwards it is S(T − t). Its last entry, S(T), is the
    // divisor.
    powers.iter().zip(sums.iter().rev()).map(|(power, rest)| power * rest / sum).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The golden values are printed with four decimals.
    const PRINTED: f64 = 5e-5;

    fn phi(gamma: f64, turns: usize) -> Vec<f64> {
        weights(Gamma::new(gamma).unwrap(), turns)
    }

    #[track_caller]
    fn check(gamma: f64, turns: usize, t: usize, expect: f64, tolerance: f64) {
        let got = phi(gamma, turns)[t];
        assert!((got - expect).abs() <= tolerance, "φ({t}, {turns}) at γ = {gamma} is {got}, not {expect}");
    }

    #[test]
    fn golden_values() {
        for (t, expect) in [1.0, 0.6394, 0.3870, 0.2103, 0.0866].into_iter().enumerate() {
            check(0.7, 5, t, expect, PRINTED);
        }
        check(0.7, 27, 10, 0.028, 5e-4);
        check(0.95, 27, 10, 0.4647, PRINTED);
        check(0.99, 27, 10, 0.5977, PRINTED);
        // γ = 1 is (T − t) / T.
        for t in 0..7 {
            check(1.0, 7, t, (7 - t) as f64 / 7.0, 1e-15);
        }
        // Near γ = 1 the closed form loses digits by cancellation. The limit is known.
        check(1.0 - 1e-12, 27, 10, 17.0 / 27.0, 1e-11);
        check(1.0 - f64::EPSILON, 1000, 999, 1e-3, 1e-12);
        // Near γ = 0 only the first turn counts.
        check(1e-9, 4, 1, 1e-9, 1e-17);
        check(0.5, 1, 0, 1.0, 0.0);
        assert!(phi(0.5, 0).is_empty());
    }

    #[test]
    fn invalid_gammas_are_refused() {
        for bad in [0.0, -0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Gamma::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Gamma::new(0.0).unwrap_err().to_string(), "γ must be greater than 0 and at most 1, not 0");
    }

    proptest! {
        #[test]
        fn weights_start_at_one_and_fall(gamma in 1e-3_f64..=1.0, turns in 1_usize..200) {
            let weights = phi(gamma, turns);
            prop_assert_eq!(weights.len(), turns);
            prop_assert_eq!(weights[0], 1.0);
            prop_assert!(weights.windows(2).all(|pair| pair[0] > pair[1] || pair[1] < f64::MIN_POSITIVE));
            prop_assert!(weights.iter().all(|weight| (0.0..=1.0).contains(weight)));
        }

        #[test]
        fn the_closed_form_agrees_where_it_is_sound(gamma in 0.05_f64..0.999, turns in 1_usize..100) {
            for (t, got) in phi(gamma, turns).into_iter().enumerate() {
                let power = |n: usize| gamma.powi(n as i32);
                let closed = power(t) * (1.0 - power(turns - t)) / (1.0 - power(turns));
                prop_assert!((got - closed).abs() <= 1e-12, "t = {}: {} and {}", t, got, closed);
            }
        }
    }
}
