//! Parsers for reports in XML and JSON.

use serde::Deserialize;

use super::ReportError;

/// `<testcase classname name>`. It passed unless it contains a `failure`, `error` or `skipped`.
pub(super) fn junit(text: &str) -> Result<Vec<(String, bool)>, ReportError> {
    let malformed = |error: roxmltree::Error| ReportError::Malformed("JUnit XML", error.to_string());
    let document = roxmltree::Document::parse(text).map_err(malformed)?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    Ok(cases
        .map(|case| {
            let name = case.attribute("name").unwrap_or_default();
            let name = match case.attribute("classname") {
                Some(class) if !class.is_empty() => format!("{class}::{name}"),
                _ => name.to_owned(),
            };
            let bad = ["failure", "error", "skipped"];
            let passed = !case.children().any(|child| bad.iter().any(|tag| child.has_tag_name(*tag)));
            (name, passed)
        })
        .collect())
}

#[derive(Deserialize)]
struct Ctrf {
    results: CtrfResults,
}

#[derive(Deserialize)]
struct CtrfResults {
    tests: Vec<CtrfTest>,
}

#[derive(Deserialize)]
struct CtrfTest {
    name: String,
    status: String,
}

/// `results.tests[].{name, status}` of ctrf.io's schema.
pub(super) fn ctrf(text: &str) -> Result<Vec<(String, bool)>, ReportError> {
    let report: Ctrf =
        serde_json::from_str(text).map_err(|error| ReportError::Malformed("CTRF", error.to_string()))?;
    Ok(report.results.tests.into_iter().map(|test| (test.name, test.status == "passed")).collect())
}
