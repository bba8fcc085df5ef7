//! The reward files of Harbor's verifiers, parsed as in `models/verifier` of harbor 0.25.

use std::collections::BTreeMap;

/// Paths of the reward files.
pub(super) const REWARD_JSON: &str = "/logs/verifier/reward.json";
pub(super) const REWARD_TEXT: &str = "/logs/verifier/reward.txt";

/// Why there is no reward.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewardError {
    #[error("the tests wrote neither reward.json nor reward.txt")]
    Missing,
    #[error("{0} is empty")]
    Empty(&'static str),
    #[error("{file} is no finite number: {text}")]
    Malformed { file: &'static str, text: String },
}

/// Rewards by name. `reward.json` comes first. A single number is `reward`.
pub fn parse_reward(json: Option<&[u8]>, text: Option<&[u8]>) -> Result<BTreeMap<String, f64>, RewardError> {
    if let Some(bytes) = json {
        let malformed = || RewardError::Malformed { file: "reward.json", text: excerpt(bytes) };
        if bytes.trim_ascii().is_empty() {
            return Err(RewardError::Empty("reward.json"));
        }
        let rewards: BTreeMap<String, f64> = serde_json::from_slice(bytes).map_err(|_| malformed())?;
        if rewards.is_empty() || !rewards.values().all(|value| value.is_finite()) {
            return Err(malformed());
        }
        return Ok(rewards);
    }
    let bytes = text.ok_or(RewardError::Missing)?;
    if bytes.trim_ascii().is_empty() {
        return Err(RewardError::Empty("reward.txt"));
    }
    let value = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse::<f64>().ok());
    match value.filter(|value| value.is_finite()) {
        Some(value) => Ok(BTreeMap::from([("reward".to_owned(), value)])),
        None => Err(RewardError::Malformed { file: "reward.txt", text: excerpt(bytes) }),
    }
}

/// Whether the rewards are a full score.
pub fn is_full(rewards: &BTreeMap<String, f64>) -> bool {
    match rewards.get("reward") {
        Some(reward) => *reward >= 1.0,
        None => rewards.values().all(|value| *value >= 1.0),
    }
}

/// The number that a trainer takes: `reward`, or the highest reward if none has this name.
pub(super) fn paid(rewards: &BTreeMap<String, f64>) -> Option<f64> {
    rewards.get("reward").copied().or_else(|| rewards.values().copied().reduce(f64::max))
}

fn excerpt(bytes: &[u8]) -> String {
    const MAX: usize = 80;
    String::from_utf8_lossy(bytes).chars().take(MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reward_that_is_paid() {
        let check = |json: &str, expect: f64| {
            let rewards = parse_reward(Some(json.as_bytes()), None).unwrap();
            assert_eq!(paid(&rewards), Some(expect), "{json}");
        };
        check("{\"reward\": 0.2}", 0.2);
        check("{\"reward\": 0, \"p2p\": 1}", 0.0);
        check("{\"style\": 0.5, \"speed\": 0}", 0.5);
    }

    #[test]
    fn rewards_are_finite_numbers_or_none() {
        let check = |json: Option<&str>, text: Option<&str>, expect: Result<bool, &str>| {
            let got = parse_reward(json.map(str::as_bytes), text.map(str::as_bytes));
            match (got.as_ref().map(is_full), expect) {
                (Ok(full), Ok(want)) => assert_eq!(full, want, "{json:?} {text:?}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (got, want) => panic!("{json:?} {text:?}: {got:?} is not {want:?}"),
            }
        };
        check(None, Some("1\n"), Ok(true));
        check(None, Some(" 1.0 "), Ok(true));
        check(None, Some("0"), Ok(false));
        check(None, Some("-0.5"), Ok(false));
        check(None, Some("nan"), Err("no finite number"));
        check(None, Some("inf"), Err("no finite number"));
        check(None, Some("pass"), Err("no finite number"));
        check(None, Some("\n"), Err("empty"));
        check(None, None, Err("neither"));
        check(Some("{\"reward\": 1}"), Some("0"), Ok(true));
        check(Some("{\"reward\": 0, \"style\": 1}"), Some("1"), Ok(false));
        check(Some("{\"a\": 1, \"b\": 0.5}"), None, Ok(false));
        check(Some("{\"a\": 1, \"b\": 1}"), None, Ok(true));
        check(Some("{}"), None, Err("no finite number"));
        check(Some("{\"reward\": \"1\"}"), None, Err("no finite number"));
        check(Some(""), Some("1"), Err("empty"));
        check(Some("[1]"), Some("1"), Err("no finite number"));
    }
}
