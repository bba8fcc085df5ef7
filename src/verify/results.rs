//! Reads `checks.json` strictly. A report is invalid unless it has exactly one result for every
//! check.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::{CheckId, CheckResult};

/// Version of `checks.json` that `run_checks.py` writes.
pub const CHECKS_FORMAT: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    version: u32,
    checks: Vec<ReportedCheck>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportedCheck {
    id: CheckId,
    passed: bool,
    message: String,
}

/// The checks that a report must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    All,
    /// All checks, or the checks up to a failed one, after which the tests ended.
    UntilOneFails,
}

/// Why a report is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    #[error("the results are not what run_checks.py writes: {0}")]
    Malformed(String),
    #[error("the results have version {0}, not {CHECKS_FORMAT}")]
    Version(u32),
    #[error("check `{0}` is reported twice")]
    Twice(CheckId),
    #[error("check `{0}` is not one of the task's")]
    Unknown(CheckId),
    #[error("check `{0}` is not reported")]
    Missing(CheckId),
}

/// Results in the task's order, and the messages of failed checks. Checks that did not run are left
/// out.
pub fn parse_results(
    text: &[u8],
    expected: &[CheckId],
    extent: Reported,
) -> Result<(Vec<CheckResult>, BTreeMap<CheckId, String>), ResultsError> {
    let report: Report =
        serde_json::from_slice(text).map_err(|error| ResultsError::Malformed(error.to_string()))?;
    if report.version != CHECKS_FORMAT {
        return Err(ResultsError::Version(report.version));
    }
    let mut passed = BTreeMap::new();
    let mut messages = BTreeMap::new();
    for check in report.checks {
        if !expected.contains(&check.id) {
            return Err(ResultsError::Unknown(check.id));
        }
        if passed.insert(check.id.clone(), check.passed).is_some() {
            return Err(ResultsError::Twice(check.id));
        }
        if !check.passed {
            messages.insert(check.id, check.message);
        }
    }
    let ended_early = extent == Reported::UntilOneFails && !messages.is_empty();
    if let Some(missing) = expected.iter().find(|id| !ended_early && !passed.contains_key(*id)) {
        return Err(ResultsError::Missing(missing.clone()));
    }
    let result = |id: &CheckId| passed.get(id).map(|passed| CheckResult { id: id.clone(), passed: *passed });
    Ok((expected.iter().filter_map(result).collect(), messages))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&[bool], &str>) {
        check_extent(Reported::All, text, expect);
    }

    fn check_extent(extent: Reported, text: &str, expect: Result<&[bool], &str>) {
        let expected = [CheckId::parse("test_a").unwrap(), CheckId::parse("test_b").unwrap()];
        match (parse_results(text.as_bytes(), &expected, extent), expect) {
            (Ok((got, _)), Ok(want)) => {
                assert_eq!(got.iter().map(|check| check.passed).collect::<Vec<_>>(), want, "{text}");
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
            (got, want) => panic!("{text}: {got:?} is not {want:?}"),
        }
    }

    #[test]
    fn results_are_complete_or_nothing() {
        let a = r#"{"id":"test_a","passed":true,"message":""}"#;
        let b = r#"{"id":"test_b","passed":false,"message":"no"}"#;
        let report = |version: u32, checks: &str| format!(r#"{{"version":{version},"checks":[{checks}]}}"#);
        check(&report(1, &format!("{a},{b}")), Ok(&[true, false]));
        check(&report(1, &format!("{b},{a}")), Ok(&[true, false]));
        check(&report(1, a), Err("`test_b` is not reported"));
        check(&report(1, &format!("{a},{a},{b}")), Err("twice"));
        check(
            &report(1, &format!("{a},{b},{}", b.replace("test_b", "test_c"))),
            Err("not one of the task's"),
        );
        check(&report(2, &format!("{a},{b}")), Err("version 2"));
        check_extent(Reported::UntilOneFails, &report(1, b), Ok(&[false]));
        check_extent(Reported::UntilOneFails, &report(1, &format!("{b},{a}")), Ok(&[true, false]));
        check_extent(Reported::UntilOneFails, &report(1, a), Err("`test_b` is not reported"));
        check_extent(Reported::UntilOneFails, &report(1, ""), Err("`test_a` is not reported"));
        check("", Err("not what run_checks.py writes"));
        check("=== 2 passed ===", Err("not what run_checks.py writes"));
        check(&report(1, &format!("{a},{b}")).replace("true", "1"), Err("not what run_checks.py writes"));
        check(
            &report(1, &a.replace("\"passed\":true", "\"passed\":true,\"weight\":9")),
            Err("unknown field"),
        );
    }
}
