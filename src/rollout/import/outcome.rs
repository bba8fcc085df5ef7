//! Reads the verdict of a Harbor trial.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{CheckId, CheckResult, Outcome, Verdict};

/// The fields of a trial's `result.json` that are needed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TrialResult {
    #[serde(default)]
    pub(super) task_name: Option<String>,
    #[serde(default)]
    pub(super) task_checksum: Option<String>,
    #[serde(default)]
    verifier_result: Option<VerifierResult>,
    #[serde(default)]
    exception_info: Option<ExceptionInfo>,
    #[serde(default)]
    pub(super) started_at: Option<String>,
    #[serde(default)]
    pub(super) agent_info: Option<AgentInfo>,
    /// Results by test, if the trial has a report of them.
    #[serde(skip)]
    pub(super) tests: Vec<CheckResult>,
}

/// The fields of `verifier/ctrf.json`, a Common Test Report Format file, that are needed.
#[derive(Debug, Deserialize)]
pub(super) struct TestReport {
    results: TestResults,
}

#[derive(Debug, Deserialize)]
struct TestResults {
    tests: Vec<TestResult>,
}

#[derive(Debug, Deserialize)]
struct TestResult {
    name: CheckId,
    status: String,
}

impl TestReport {
    /// The tests that passed or failed. Empty if two tests share a name, because the name becomes a
    /// check's id.
    pub(super) fn checks(&self) -> Vec<CheckResult> {
        let ran = self.results.tests.iter().filter(|test| test.status == "passed" || test.status == "failed");
        let checks: Vec<_> =
            ran.map(|test| CheckResult { id: test.name.clone(), passed: test.status == "passed" }).collect();
        let names: BTreeSet<&CheckId> = checks.iter().map(|check| &check.id).collect();
        if names.len() == checks.len() { checks } else { Vec::new() }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct AgentInfo {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) model_info: Option<ModelInfo>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ModelInfo {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
struct VerifierResult {
    #[serde(default)]
    rewards: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct ExceptionInfo {
    #[serde(default)]
    exception_type: String,
    #[serde(default)]
    exception_message: String,
}

/// Name of the deciding reward. It is also the id of the check that stands for it.
const REWARD: &str = "reward";

/// The cause of a Harbor exception. The name of its class tells it (0.24, 0.25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    /// The agent used up its time.
    Timeout,
    /// The agent failed.
    Agent,
    Verifier,
    /// The engine or the model server failed, or the class is unknown.
    Infra,
}

fn blame(class: &str) -> Blame {
    match class {
        "AgentTimeoutError" => Blame::Timeout,
        "NonZeroAgentExitCodeError"
        | "ContextLengthExceededError"
        | "ContextWindowExceededError"
        | "OutputLengthExceededError"
        | "OutputTokenExceededError"
        | "AgentSafetyRefusalError" => Blame::Agent,
        "VerifierTimeoutError"
        | "VerifierOutputParseError"
        | "RewardFileNotFoundError"
        | "RewardFileEmptyError"
        | "AddTestsDirError"
        | "DownloadVerifierDirError" => Blame::Verifier,
        _ => Blame::Infra,
    }
}

impl TrialResult {
    /// The deciding reward: the one called `reward`, or the only one.
    pub(super) fn reward(&self) -> Option<f64> {
        let rewards = self.verifier_result.as_ref()?.rewards.as_ref()?;
        let only = if rewards.len() == 1 { rewards.values().next() } else { None };
        rewards.get(REWARD).or(only)?.as_f64()
    }

    /// The verdict: pass with a reward of 1, fail with less. An exception or a missing reward
    /// leaves it open.
    pub(super) fn verdict(&self) -> Verdict {
        let reward = self.reward();
        let exception = self.exception_info.as_ref();
        let cause = || {
            let info = exception.map(|info| (info.exception_type.as_str(), info.exception_message.as_str()));
            let (class, message) = info.unwrap_or_default();
            format!("{class}: {message}").trim_end_matches([':', ' ']).to_owned()
        };
        let blame = exception.map(|info| blame(&info.exception_type));
        match (blame, reward) {
            (None | Some(Blame::Timeout | Blame::Agent), Some(reward)) if reward >= 1.0 => {
                self.by_tests(reward)
            }
            (Some(Blame::Timeout), _) => Verdict::without_checks(Outcome::Timeout, cause()),
            (Some(Blame::Agent), _) => Verdict { cause: cause(), ..by_reward(0.0) },
            (Some(Blame::Verifier), _) => Verdict::without_checks(Outcome::VerifierError, cause()),
            (Some(Blame::Infra), _) => Verdict::without_checks(Outcome::Infra, cause()),
            (None, Some(reward)) => self.by_tests(reward),
            (None, None) => unknown(),
        }
    }
}

impl TrialResult {
    /// The verdict of a reward. Results by test are added if they agree with it.
    fn by_tests(&self, reward: f64) -> Verdict {
        let (by_tests, by_reward) = (Verdict::from_checks(self.tests.clone()), by_reward(reward));
        if !self.tests.is_empty() && by_tests.outcome == by_reward.outcome { by_tests } else { by_reward }
    }
}

/// The verdict of a source without a reward.
pub(super) fn unknown() -> Verdict {
    Verdict::without_checks(Outcome::VerifierError, "the source states no reward")
}

/// The verdict of a reward without results by test.
pub(super) fn by_reward(reward: f64) -> Verdict {
    Verdict::from_checks(vec![CheckResult { id: CheckId::reward(), passed: reward >= 1.0 }])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tests_that_agree_with_the_reward() {
        let check = |tests: Value, reward: f64, expect: &[(&str, bool)]| {
            let report: TestReport =
                serde_json::from_value(json!({ "results": { "tests": tests } })).unwrap();
            let result = json!({ "verifier_result": { "rewards": { "reward": reward } } });
            let mut result: TrialResult = serde_json::from_value(result).unwrap();
            result.tests = report.checks();
            let verdict = result.verdict();
            let found: Vec<_> =
                verdict.checks.iter().map(|check| (check.id.as_str(), check.passed)).collect();
            assert_eq!(found, expect);
            assert_eq!(verdict.passed(), reward >= 1.0);
        };
        let test = |name: &str, status: &str| json!({ "name": name, "status": status, "duration": 1 });
        check(json!([test("a", "passed"), test("b", "passed")]), 1.0, &[("a", true), ("b", true)]);
        check(json!([test("a", "passed"), test("b", "failed")]), 0.0, &[("a", true), ("b", false)]);
        check(json!([test("a", "passed"), test("b", "skipped")]), 1.0, &[("a", true)]);
        check(json!([test("a", "passed"), test("b", "failed")]), 1.0, &[("reward", true)]);
        check(json!([test("a", "passed")]), 0.5, &[("reward", false)]);
        check(json!([test("a", "failed"), test("a", "passed")]), 0.0, &[("reward", false)]);
        check(json!([]), 0.0, &[("reward", false)]);
    }

    #[test]
    fn verdicts_of_trials() {
        let check = |rewards: Value, exception: Option<&str>, outcome: Outcome, cause: &str| {
            let exception =
                exception.map(|class| json!({ "exception_type": class, "exception_message": "why" }));
            let result = json!({ "verifier_result": { "rewards": rewards }, "exception_info": exception });
            let result: TrialResult = serde_json::from_value(result).unwrap();
            let verdict = result.verdict();
            assert_eq!((verdict.outcome, verdict.cause.as_str()), (outcome, cause));
        };
        let null = || Value::Null;
        check(json!({ "reward": 1 }), None, Outcome::Pass, "");
        check(json!({ "reward": 1.0 }), None, Outcome::Pass, "");
        check(json!({ "reward": 0.99 }), None, Outcome::Fail, "");
        check(json!({ "reward": 0 }), None, Outcome::Fail, "");
        check(json!({ "score": 1 }), None, Outcome::Pass, "");
        check(json!({ "a": 1, "b": 1 }), None, Outcome::VerifierError, "the source states no reward");
        check(json!({ "a": 1, "reward": 0 }), None, Outcome::Fail, "");
        check(json!({ "reward": "1" }), None, Outcome::VerifierError, "the source states no reward");
        check(json!({}), None, Outcome::VerifierError, "the source states no reward");
        check(null(), None, Outcome::VerifierError, "the source states no reward");
        check(null(), Some("AgentTimeoutError"), Outcome::Timeout, "AgentTimeoutError: why");
        check(json!({ "reward": 0 }), Some("AgentTimeoutError"), Outcome::Timeout, "AgentTimeoutError: why");
        check(json!({ "reward": 1 }), Some("AgentTimeoutError"), Outcome::Pass, "");
        check(json!({ "reward": 1 }), Some("NonZeroAgentExitCodeError"), Outcome::Pass, "");
        check(null(), Some("ContextLengthExceededError"), Outcome::Fail, "ContextLengthExceededError: why");
        check(null(), Some("AgentSafetyRefusalError"), Outcome::Fail, "AgentSafetyRefusalError: why");
        check(
            null(),
            Some("RewardFileNotFoundError"),
            Outcome::VerifierError,
            "RewardFileNotFoundError: why",
        );
        check(null(), Some("VerifierTimeoutError"), Outcome::VerifierError, "VerifierTimeoutError: why");
        check(null(), Some("ApiRateLimitError"), Outcome::Infra, "ApiRateLimitError: why");
        check(null(), Some("CancelledError"), Outcome::Infra, "CancelledError: why");
        check(
            json!({ "reward": 1 }),
            Some("EnvironmentStartTimeoutError"),
            Outcome::Infra,
            "EnvironmentStartTimeoutError: why",
        );
        check(null(), Some("Whatever"), Outcome::Infra, "Whatever: why");
    }
}
