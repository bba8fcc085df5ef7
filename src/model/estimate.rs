//! Success rates over attempts, with confidence intervals. All are closed formulas, so a report
//! draws no random number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 97.5 % quantile of the standard normal distribution, for two-sided 95 % intervals.
const Z: f64 = 1.959_963_984_540_054;

/// A share with its 95 % confidence interval. All three lie in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// E.g. `75 % [30, 95]`.
impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [mean, low, high] = [self.mean, self.low, self.high].map(|share| 100.0 * share);
        write!(f, "{mean:.0} % [{:.0}, {:.0}]", low.floor(), high.ceil())
    }
}

/// pass@k: the probability that at least one of `k` attempts passes, from `passed` of `attempts`.
/// The estimator is 1 − C(n−c, k) / C(n, k). It is unbiased (Chen et al. 2021, arXiv 2107.03374,
/// §2.1). `None` with fewer than `k` attempts.
pub fn pass_at(attempts: u64, passed: u64, k: u64) -> Option<f64> {
    all_of(attempts, attempts.checked_sub(passed)?, k).map(|none| 1.0 - none)
}

/// pass^k: the probability that all of `k` attempts pass, C(c, k) / C(n, k) (τ-bench, arXiv
/// 2406.12045, §3). `None` with fewer than `k` attempts.
pub fn pass_all(attempts: u64, passed: u64, k: u64) -> Option<f64> {
    all_of(attempts, passed, k)
}

/// C(some, k) / C(all, k): the probability that `k` items, drawn without replacement, are all among
/// `some`. It is computed as a product, so that nothing overflows.
fn all_of(all: u64, some: u64, k: u64) -> Option<f64> {
    (k >= 1 && k <= all && some <= all)
        .then(|| (0..k).map(|at| some.saturating_sub(at) as f64 / (all - at) as f64).product())
}

/// Wilson's score interval for a mean of `size` values in [0, 1]. `None` if `size` is 0.
///
/// For values that are 0 or 1 this is the usual interval. For other values it is too wide, since
/// their variance is smaller than mean × (1 − mean). But it stays within [0, 1], and it does not
/// shrink to a point where all values are equal, as a t interval does.
pub fn wilson(mean: f64, size: u64) -> Option<Estimate> {
    if size == 0 {
        return None;
    }
    let n = size as f64;
    let shrink = 1.0 + Z * Z / n;
    let centre = (mean + Z * Z / (2.0 * n)) / shrink;
    let half = Z / shrink * (mean * (1.0 - mean) / n + Z * Z / (4.0 * n * n)).sqrt();
    // Rounding may move a bound past the mean.
    Some(Estimate { mean, low: (centre - half).clamp(0.0, mean), high: (centre + half).clamp(mean, 1.0) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: f64 = 1e-12;

    #[test]
    fn at_least_one_of_k() {
        let check = |(n, c, k), expect: Option<f64>| match (pass_at(n, c, k), expect) {
            (Some(found), Some(expect)) => assert!((found - expect).abs() < SMALL, "{n} {c} {k}: {found}"),
            (found, expect) => assert_eq!(found, expect, "{n} {c} {k}"),
        };
        check((1, 0, 1), Some(0.0));
        check((1, 1, 1), Some(1.0));
        check((10, 3, 1), Some(0.3));
        check((10, 3, 4), Some(1.0 - 35.0 / 210.0)); // C(7,4) / C(10,4)
        check((10, 3, 8), Some(1.0)); // Only 7 failed.
        check((4, 2, 2), Some(1.0 - 1.0 / 6.0));
        check((200, 1, 100), Some(0.5));
        check((5, 0, 4), Some(0.0));
        check((3, 1, 4), None);
        check((0, 0, 1), None);
        check((3, 1, 0), None);
        check((3, 4, 1), None);
    }

    #[test]
    fn all_of_k() {
        let check = |(n, c, k), expect: Option<f64>| match (pass_all(n, c, k), expect) {
            (Some(found), Some(expect)) => assert!((found - expect).abs() < SMALL, "{n} {c} {k}: {found}"),
            (found, expect) => assert_eq!(found, expect, "{n} {c} {k}"),
        };
        check((10, 3, 1), Some(0.3));
        check((10, 3, 2), Some(3.0 / 45.0)); // C(3,2) / C(10,2)
        check((10, 3, 4), Some(0.0));
        check((8, 8, 8), Some(1.0));
        check((8, 6, 4), Some(15.0 / 70.0)); // C(6,4) / C(8,4)
        check((2, 2, 4), None);
        check((2, 3, 1), None);
    }

    #[test]
    fn intervals() {
        let check = |(mean, size), expect: Option<(f64, f64)>| {
            let found = wilson(mean, size).map(|found| (found.low, found.high));
            let close = |one: f64, other: f64| (one - other).abs() < 5e-7;
            assert!(
                match (found, expect) {
                    (Some(found), Some(expect)) => close(found.0, expect.0) && close(found.1, expect.1),
                    (found, expect) => found == expect,
                },
                "{mean} {size}: {found:?}"
            );
        };
        // From the formula, by another program.
        check((0.0, 10), Some((0.0, 0.277_533)));
        check((1.0, 10), Some((0.722_467, 1.0)));
        check((0.5, 10), Some((0.236_593, 0.763_407)));
        check((0.3, 10), Some((0.107_791, 0.603_222)));
        check((0.5, 1), Some((0.054_621, 0.945_379)));
        check((0.15, 60), Some((0.080_974, 0.261_146)));
        check((0.5, 0), None);
    }

    proptest! {
        #[test]
        fn estimates_are_in_order(n in 1_u64..300, part in 0.0..=1.0_f64, k in 1_u64..300) {
            let c = (n as f64 * part) as u64;
            if let (Some(any), Some(all)) = (pass_at(n, c, k), pass_all(n, c, k)) {
                let mean = c as f64 / n as f64;
                prop_assert!(0.0 <= all && all <= mean + SMALL && mean <= any + SMALL && any <= 1.0);
            }
            let interval = wilson(c as f64 / n as f64, n).unwrap();
            prop_assert!(0.0 <= interval.low && interval.low <= interval.mean);
            prop_assert!(interval.mean <= interval.high && interval.high <= 1.0);
        }
    }
}
