//! Counts of scored and unscored rollouts. A rollout without a verdict about its solver is not a
//! failure: no rate counts it. Every printed rate also states the number of such rollouts.

use std::fmt;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, FailureKind, wilson};

/// Counts of rollouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    /// Rollouts whose verdict says something about the solver.
    pub scored: u64,
    /// Rollouts without such a verdict, e.g. because the engine failed.
    pub unscored: u64,
    /// Scored rollouts that passed.
    pub passed: u64,
}

impl Scores {
    /// The count for one rollout with this result.
    pub fn of(kind: FailureKind) -> Self {
        let unscored = kind.masks();
        Self {
            scored: u64::from(!unscored),
            unscored: u64::from(unscored),
            passed: u64::from(kind == FailureKind::None),
        }
    }

    /// The counts for `count` rollouts without a verdict.
    pub fn unscored(count: usize) -> Self {
        Self { unscored: count as u64, ..Self::default() }
    }

    /// Scored and unscored rollouts.
    pub fn total(self) -> u64 {
        self.scored + self.unscored
    }

    /// Share of scored rollouts that passed, with Wilson's 95 % interval. `None` if none was
    /// scored.
    pub fn pass_rate(self) -> Option<Estimate> {
        // With no scored rollout the quotient is NaN. `wilson` then returns `None`, because `size`
        // is 0.
        wilson(self.passed as f64 / self.scored as f64, self.scored)
    }

    /// Share of rollouts that were scored. `None` without any rollout.
    pub fn coverage(self) -> Option<f64> {
        (self.total() > 0).then(|| self.scored as f64 / self.total() as f64)
    }
}

impl AddAssign for Scores {
    fn add_assign(&mut self, other: Self) {
        self.scored += other.scored;
        self.unscored += other.unscored;
        self.passed += other.passed;
    }
}

impl std::iter::Sum for Scores {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// E.g. `3 of 4 scored passed: 75 % (95 % interval 30 to 96 %); 1 unscored, coverage 80 %`.
impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} scored passed", self.passed, self.scored)?;
        if let Some(Estimate { mean, low, high }) = self.pass_rate() {
            let (low, high) = ((100.0 * low).floor(), (100.0 * high).ceil());
            write!(f, ": {:.0} % (95 % interval {low:.0} to {high:.0} %)", 100.0 * mean)?;
        }
        write!(f, "; {} unscored", self.unscored)?;
        match self.coverage() {
            Some(coverage) => write!(f, ", coverage {}", floored_percent(coverage)),
            None => Ok(()),
        }
    }
}

/// A share as a percentage, rounded down. So 999 of 1,000 is not printed as 100 %.
pub fn floored_percent(share: f64) -> String {
    format!("{:.0} %", (100.0 * share).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unscored_rollouts_are_named_and_counted_in_no_rate() {
        let check = |(scored, unscored, passed), expect: &str| {
            assert_eq!(Scores { scored, unscored, passed }.to_string(), expect);
        };
        check((0, 0, 0), "0 of 0 scored passed; 0 unscored");
        check((0, 2, 0), "0 of 0 scored passed; 2 unscored, coverage 0 %");
        check((4, 1, 3), "3 of 4 scored passed: 75 % (95 % interval 30 to 96 %); 1 unscored, coverage 80 %");
        check(
            (999, 1, 999),
            "999 of 999 scored passed: 100 % (95 % interval 99 to 100 %); 1 unscored, coverage 99 %",
        );
    }

    #[test]
    fn a_rollout_is_scored_unless_its_failure_is_not_about_the_solver() {
        let check = |kind: FailureKind, (scored, unscored, passed): (u64, u64, u64)| {
            assert_eq!(Scores::of(kind), Scores { scored, unscored, passed }, "{kind:?}");
        };
        check(FailureKind::None, (1, 0, 1));
        check(FailureKind::Policy, (1, 0, 0));
        check(FailureKind::Exploit, (1, 0, 0));
        check(FailureKind::Sandbox, (0, 1, 0));
        check(FailureKind::Verifier, (0, 1, 0));
    }
}
