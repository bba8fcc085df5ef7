//! Verdicts: the results of a task's tests.

use serde::{Deserialize, Serialize};

use super::CheckId;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckResult {
    pub id: CheckId,
    pub passed: bool,
}

/// Whether a check tests new work or existing behaviour (LongCLI-Bench §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckClass {
    /// Fail-to-pass: fails on the untouched environment, passes on a solution.
    F2P,
    /// Pass-to-pass: passes on both. It protects existing behaviour.
    P2P,
}

/// A check, with its class from the untouched trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub id: CheckId,
    pub class: CheckClass,
    pub weight: f64,
}

/// How a trial ended. Only the first three carry a reward.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every check passed.
    Pass,
    /// A check failed, or the solver caused the loss of the sandbox.
    Fail,
    /// The solver ran out of time.
    Timeout,
    /// The engine failed. Nothing is known about the solver.
    Infra,
    /// The verifier broke. Its results are missing, malformed or incomplete.
    VerifierError,
}

impl Outcome {
    /// Whether the outcome says something about the solver.
    pub fn is_scored(self) -> bool {
        matches!(self, Self::Pass | Self::Fail | Self::Timeout)
    }
}

/// Results of all checks, and the outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub outcome: Outcome,
    /// One sentence of explanation for `timeout`, `infra`, `verifier_error`, and `fail` without
    /// checks. Empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// In the task's order. Empty if the verifier did not report.
    pub checks: Vec<CheckResult>,
}

/// The rewards of one verdict. All lie in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewards {
    /// 1 if every check passed, else 0.
    pub binary: f64,
    /// Share of checks that passed. LiteCoder-Terminal calls it pass ratio.
    pub pass_ratio: f64,
    /// Weighted share of F2P checks that passed; 1 if there are none. Without known classes it is
    /// the pass ratio. Without checks it is `binary`.
    pub f2p: f64,
    /// Weighted share of P2P checks that passed; 1 if there are none.
    pub p2p: f64,
}

impl Rewards {
    /// The rewards of an exploit.
    pub const NOTHING: Self = Self { binary: 0.0, pass_ratio: 0.0, f2p: 0.0, p2p: 0.0 };
}

impl Verdict {
    /// A verdict from complete per-check results.
    pub fn from_checks(checks: Vec<CheckResult>) -> Self {
        let passed = !checks.is_empty() && checks.iter().all(|check| check.passed);
        let outcome = if passed { Outcome::Pass } else { Outcome::Fail };
        Self { outcome, cause: String::new(), checks }
    }

    /// A verdict without per-check results.
    pub fn without_checks(outcome: Outcome, cause: impl Into<String>) -> Self {
        Self { outcome, cause: cause.into(), checks: Vec::new() }
    }

    /// Whether the tests ran to the end.
    pub fn is_judged(&self) -> bool {
        matches!(self.outcome, Outcome::Pass | Outcome::Fail)
    }

    /// Whether the reward is 1.
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Pass
    }

    /// The rewards. `None` for `infra` and `verifier_error`, which say nothing about the solver.
    pub fn rewards(&self, classes: &[Check]) -> Option<Rewards> {
        match self.outcome {
            Outcome::Pass | Outcome::Fail | Outcome::Timeout => {}
            Outcome::Infra | Outcome::VerifierError => return None,
        }
        // A foreign report may lack some checks. They count as passed if the whole verdict passed.
        let passed = |id: &CheckId| {
            let reported = self.checks.iter().find(|check| check.id == *id);
            reported.map_or(self.passed(), |check| check.passed)
        };
        let share = |class: Option<CheckClass>| {
            let of_class = || classes.iter().filter(|check| class.is_none_or(|class| check.class == class));
            let total: f64 = of_class().map(|check| check.weight).sum();
            let won: f64 = of_class().filter(|check| passed(&check.id)).map(|check| check.weight).sum();
            // An empty sum is −0 in floating point. Readers would print the sign.
            let won = won + 0.0;
            if total > 0.0 { won / total } else { 1.0 }
        };
        let ratio = {
            let won = self.checks.iter().filter(|check| check.passed).count();
            if self.checks.is_empty() { 0.0 } else { won as f64 / self.checks.len() as f64 }
        };
        let binary = if self.passed() { 1.0 } else { 0.0 };
        // Without classes nothing is known of the untouched task, so every check counts as work to
        // do. A verdict without checks counts as one check.
        let f2p = match (classes, self.checks.as_slice()) {
            ([], []) => binary,
            ([], _) => ratio,
            _ => share(Some(CheckClass::F2P)),
        };
        Some(Rewards { binary, pass_ratio: ratio, f2p, p2p: share(Some(CheckClass::P2P)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_are_shares() {
        let class = |id: &str, class| Check { id: CheckId::parse(id).unwrap(), class, weight: 1.0 };
        let classes = [
            class("a", CheckClass::F2P),
            class("b", CheckClass::F2P),
            Check { weight: 2.0, ..class("c", CheckClass::F2P) },
            class("d", CheckClass::P2P),
        ];
        let check = |passed: &str, expect: [f64; 4]| {
            let result =
                |id: &str| CheckResult { id: CheckId::parse(id).unwrap(), passed: passed.contains(id) };
            let verdict = Verdict::from_checks(["a", "b", "c", "d"].map(result).to_vec());
            let Rewards { binary, pass_ratio, f2p, p2p } = verdict.rewards(&classes).unwrap();
            assert_eq!([binary, pass_ratio, f2p, p2p], expect, "{passed:?}");
            // A zero with a sign would be printed as such.
            assert!(f2p.is_sign_positive() && p2p.is_sign_positive(), "{passed:?}");
        };
        check("abcd", [1.0, 1.0, 1.0, 1.0]);
        check("cd", [0.0, 0.5, 0.5, 1.0]);
        check("d", [0.0, 0.25, 0.0, 1.0]);
        check("", [0.0, 0.0, 0.0, 0.0]);
        for outcome in [Outcome::Infra, Outcome::VerifierError] {
            assert_eq!(Verdict::without_checks(outcome, "").rewards(&classes), None);
        }
    }

    #[test]
    fn checks_that_are_not_reported_passed_where_the_reward_is_full() {
        let id = |id: &str| CheckId::parse(id).unwrap();
        let class = |of: &str, class| Check { id: id(of), class, weight: 1.0 };
        let classes = [class("reward", CheckClass::F2P), class("a", CheckClass::P2P)];
        let check = |outcome: Outcome, passed: bool, expect: [f64; 2]| {
            let checks = vec![CheckResult { id: id("a"), passed }];
            let verdict = Verdict { outcome, cause: String::new(), checks };
            let Rewards { f2p, p2p, .. } = verdict.rewards(&classes).unwrap();
            assert_eq!([f2p, p2p], expect, "{verdict:?}");
        };
        check(Outcome::Pass, true, [1.0, 1.0]);
        check(Outcome::Fail, true, [0.0, 1.0]);
        check(Outcome::Fail, false, [0.0, 0.0]);
    }

    #[test]
    fn rewards_without_classes() {
        let check = |verdict: &Verdict, expect: [f64; 4]| {
            let Rewards { binary, pass_ratio, f2p, p2p } = verdict.rewards(&[]).unwrap();
            assert_eq!([binary, pass_ratio, f2p, p2p], expect, "{verdict:?}");
        };
        let of = |passed: &[bool]| {
            let result = |(number, passed): (usize, &bool)| CheckResult {
                id: CheckId::parse(format!("test_{number}")).unwrap(),
                passed: *passed,
            };
            Verdict::from_checks(passed.iter().enumerate().map(result).collect())
        };
        check(&of(&[true, true]), [1.0, 1.0, 1.0, 1.0]);
        check(&of(&[true, false]), [0.0, 0.5, 0.5, 1.0]);
        check(&of(&[false]), [0.0, 0.0, 0.0, 1.0]);
        for outcome in [Outcome::Timeout, Outcome::Fail] {
            check(&Verdict::without_checks(outcome, ""), [0.0, 0.0, 0.0, 1.0]);
        }
        check(&Verdict::without_checks(Outcome::Pass, ""), [1.0, 0.0, 1.0, 1.0]);
    }
}
